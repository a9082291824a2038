"""What goes with a line that mentions a part: the smallest unit around it, and nothing else."""

import re

import pytest

from scripts.parts.declared import Part, recognize, recognize_marks
from scripts.parts.documents import cut_document
from scripts.parts.entries import cut_dockerfile, cut_entries, cut_makefile, cut_toml
from scripts.parts.python_code import cut_python

PART = Part(name="moon", title="the moon", paths=(), words=(re.compile(r"\bmoons?\b"),))
MARK = recognize_marks([PART])
MOON = recognize([PART], names=())

MATCH = "match a:\n    case 1:\n        f()\n"
BRANCHES = "if a:\n    f()\nelif {}:\n    g()\nelse:\n    h()\n"
CHAIN = """\
if a:
    f()
elif moon == 1:
    g()
elif moon == 2:
    g()
elif b:
    h([1, moon])
"""
LONG = 'text = f"""\nthe sun\nthe {moon}\n"""\n'
RAISES = """\
def f():
    \"\"\"Rise.

    Raises:
        SunError: hot.
        moon.Error: cold,
            or dark.
        SkyError: high.
    \"\"\"
"""
TABLE = "# Sky\n\n| a | b |\n| --- | --- |\n"
SUN = "# Sky\n\n## Sun\n\nHot.\n"


def cut_code(text: str, is_test: bool = False) -> str:
    return cut_python(text, MOON, MARK, is_test)


@pytest.mark.parametrize(
    ("text", "left"),
    [
        ("import sun\nfrom moon import rise\n", "import sun\n"),
        ("from sky import moon, sun\n", "from sky import sun\n"),
        ("import moon\nimport sun\n", "import sun\n"),
        ("from sky import (\n    moon,\n    sun,\n)\n", "from sky import (\n    sun,\n)\n"),
        ("import sun\n\nmoon = 1\nsun.shine()\n", "import sun\nsun.shine()\n"),
        ("def f():\n    if moon:\n        b = 2\n    return a\n", "def f():\n    return a\n"),
        ("if a:\n    moon = 1\nstay = 1\n", "stay = 1\n"),
        ("def moon():\n    pass\n\n\nstay = 1\n", "\n\nstay = 1\n"),
        ("@moon\ndef f():\n    pass\n\n\nstay = 1\n", "\n\nstay = 1\n"),
        ("U = moon | sun\n", "U = sun\n"),
        ("U = sun | moon | sky\n", "U = sun | sky\n"),
        ("U = moon | moons | sky\n", "U = sky\n"),
        ("U = sky | moon | moons\n", "U = sky\n"),
        ("U = (\n    sun | moon\n)\n", "U = (\n    sun\n)\n"),
        ("U = sky | (moon | moons)\n", "U = sky\n"),
        ("U = moon | moons\nstay = 1\n", "stay = 1\n"),
        ("U = moon | None\nstay = 1\n", "stay = 1\n"),
        ("U = a({sun} | {moon})\nstay = 1\n", "stay = 1\n"),
        ("class A:\n    def moon(self):\n        pass\n\n\nstay = 1\n", "\n\nstay = 1\n"),
        ("match a:\n    case 1:\n        f()\n    case 'moon':\n        g()\n", MATCH),
        (BRANCHES.format("moon"), "if a:\n    f()\nelse:\n    h()\n"),
        (CHAIN, "if a:\n    f()\nelif b:\n    h([1, ])\n"),
        ("from sky import sun, moon\n", "from sky import sun\n"),
        ("import sun, moon\n", "import sun\n"),
        ("a, moon = pair()\nstay = 1\n", "stay = 1\n"),
        ("def f():\n    a = 1\n    return a, moon\n", "def f():\n    a = 1\n"),
    ],
)
def test_a_statement_goes_by_its_first_line(text: str, left: str) -> None:
    assert cut_code(text) == left


@pytest.mark.parametrize(
    ("text", "left"),
    [
        ("a = ['sun', 'moon', 'star']\n", "a = ['sun', 'star']\n"),
        ("a = ['sun', 'moon']\n", "a = ['sun', ]\n"),
        ("a = ('moon', 'sun')\n", "a = ('sun',)\n"),
        ("a = ('sun', 'moon')\n", "a = ('sun', )\n"),
        ("a = {'sun': 1, 'moon': 2}\n", "a = {'sun': 1, }\n"),
        ("a = [\n    'sun',\n    'moon',  # cold\n]\n", "a = [\n    'sun',\n    \n]\n"),
        (
            "a = {\n    's': 1,\n    'b': (\n        moon\n    ),\n}\n",
            "a = {\n    's': 1,\n    \n}\n",
        ),
        ("f(\n    [1, moon],\n)\n", "f(\n    [1, ],\n)\n"),
        ("a = {*b, *('sun', 'moon')}\n", "a = {*b, *('sun', )}\n"),
        ("a = {*b, *('moon', 'moons')}\n", "a = {*b, }\n"),
        ("a = [('sun', 1), ('moon', 2)]\n", "a = [('sun', 1), ]\n"),
        ("a = [['moon', 1], ['sun', 2]]\n", "a = [['sun', 2]]\n"),
        ("a = [{'b': 'moon'}, {'b': 'sun'}]\n", "a = [{'b': 'sun'}]\n"),
        ("a = (*b, 'moon', 'sun')\n", "a = (*b, 'sun')\n"),
        ("a = {'sky': ('moon', 1)}\nstay = 1\n", "stay = 1\n"),
        ("a = {'sky': ('sun', 'moon')}\n", "a = {'sky': ('sun', )}\n"),
        ("a = {'moon'}\nstay = 1\n", "stay = 1\n"),
        ("a = (\n    'moon',\n)\nstay = 1\n", "stay = 1\n"),
    ],
)
def test_an_element_goes_alone_and_a_row_of_a_table_as_a_whole(text: str, left: str) -> None:
    assert cut_code(text) == left


@pytest.mark.parametrize(
    "text",
    [
        LONG,
        "f(\n    1,\n    moon,\n)\n",
        "a = f(\n    {'moon'},\n)\n",
        "a = f(\n    ['moon'],\n)\n",
        "def f(\n    a: int,\n    b: moon,\n) -> None:\n    pass\n",
        "if moon:\n    f()\nelse:\n    g()\n",
        "for a in moon:\n    f()\n",
        "a = 1; moon = 2\n",
        "def f():\n    global sun, moon\n    sun = 1\n",
        "try:\n    f()\nexcept moon:\n    g()\n",
        "match a:\n    case moon():\n        f()\n",
        'class MoonError(Exception):\n    """The moon is down."""\n',
        'text = """\n# The sun.\n# The moon.\n"""\n',
        "f(\n    1,\n)  # part: moon\n",
        "if a:\n    f()\nelse:  # part: moon\n    g()\n",
        "import sun  # noqa: F401, the moon needs it\n",
        "# ruff: noqa, for the moon\nstay = 1\n",
    ],
)
def test_what_more_would_go_with_stays_and_is_left_to_a_mark(text: str) -> None:
    assert cut_code(text) == text


@pytest.mark.parametrize(
    ("text", "left"),
    [
        ("def f():  # part: moon\n    return 1\n\n\nstay = 1\n", "\n\nstay = 1\n"),
        ("f(\n    1,\n    tide=2,  # part: moon\n)\n", "f(\n    1,\n    )\n"),
        ("tide = f(  # part: moon\n    1,\n)\nstay = 1\n", "stay = 1\n"),
        ("tide = f()  # part: sun, moon\nstay = 1\n", "stay = 1\n"),
    ],
)
def test_a_mark_cuts_what_begins_in_its_line(text: str, left: str) -> None:
    assert cut_code(text) == left


def test_a_text_goes_with_what_it_describes() -> None:
    text = 'moon = 1\n"""Of rock."""\nsun = 1\n"""Of gas."""\n'

    assert cut_code(text) == 'sun = 1\n"""Of gas."""\n'


@pytest.mark.parametrize(
    ("text", "left"),
    [
        ("# About the moon.\nstay = 1\n", "stay = 1\n"),
        ("# The sun. The moon.\nstay = 1\n", "# The sun.\nstay = 1\n"),
        ('"""The sun.\n\nThe moon is round.\n"""\n\nstay = 1\n', '"""The sun."""\n\nstay = 1\n'),
        ("stay = 1  # not the moon\n", "stay = 1\n"),
        (RAISES, RAISES.replace("        moon.Error: cold,\n            or dark.\n", "")),
        ("a = 1\n# Why.\nmoon = 1\nstay = 1\n", "a = 1\nstay = 1\n"),
    ],
)
def test_of_comments_and_docstrings_sentences_go(text: str, left: str) -> None:
    assert cut_code(text) == left


def test_of_tests_the_function_goes_unless_an_element_or_a_marked_line_is_enough() -> None:
    two = "def test_a():\n    assert sun\n    assert moon\n\n\ndef test_b():\n    assert sun\n"
    marked = "def test_a():\n    assert sun\n    assert tide  # part: moon\n"
    listed = "def test_a():\n    assert sky == {'sun', 'moon'}\n"
    decorated = "@mark(part='moon')\ndef test_a():\n    assert sun\n\n\nstay = 1\n"
    helper = "def help():\n    moon()\n    sun()\n"

    assert cut_code(two, is_test=True).strip() == "def test_b():\n    assert sun"
    assert cut_code(marked, is_test=True) == "def test_a():\n    assert sun\n"
    assert cut_code(listed, is_test=True) == "def test_a():\n    assert sky == {'sun', }\n"
    assert cut_code(decorated, is_test=True).strip() == "stay = 1"
    assert cut_code(helper, is_test=True) == "def help():\n    sun()\n"


@pytest.mark.parametrize(
    ("text", "left"),
    [
        ("# Sky\n\nThe sun. The moon. A star.\n", "# Sky\n\nThe sun. A star.\n"),
        ("# Sky\n\nThe sun; the moon.\n", "# Sky\n\nThe sun.\n"),
        ("# Sky\n\nThe moon; the sun.\n", "# Sky\n\nThe sun.\n"),
        ("# Sky\n\nThe\nmoon\nrises. The sun.\n", "# Sky\n\nThe sun.\n"),
        ("# Sky\n\n**Why.** The moon. The sun.\n", "# Sky\n\n**Why.** The sun.\n"),
        ("# Sky\n\n**Why.** The moon.\n\nThe sun.\n", "# Sky\n\nThe sun.\n"),
        ("# Sky\n\nThe sky has:\n- sun\n- moon\n", "# Sky\n\nThe sky has:\n- sun\n"),
        ("# Sky\n\nRun.\n```sh\nsun\nmoon\n```\n", "# Sky\n\nRun.\n```sh\nsun\n```\n"),
        ("# Sky\n\n1. The moon.\n\n   Wait.\n\n2. The sun.\n", "# Sky\n\n2. The sun.\n"),
        ("# Sky\n\n1. Sun.\n\n   Moon. Star.\n", "# Sky\n\n1. Sun.\n\n   Star.\n"),
        (f"{TABLE}| sun | | it; the moon |\n", f"{TABLE}| sun | | it. |\n"),
        ("# Sky\n\n## Night\n\n### Sea\n\nThe moon.\n\n## Sun\n\nHot.\n", SUN),
        ("# Sky\n\n> The moon.\n\n<!-- moon -->\n", "# Sky\n\n> The moon.\n\n<!-- moon -->\n"),
        ("# Sky\n\nThe sun; the moon. A star.\n", "# Sky\n\nThe sun. A star.\n"),
        ("# Sky\n\n- sun\n- moon\n  - its sea\n- star\n", "# Sky\n\n- sun\n- star\n"),
        ("# Sky\n\n- The sun. Not the\n  moon.\n", "# Sky\n\n- The sun.\n"),
        (f"{TABLE}| moon | 1 |\n| sun | 2 |\n", f"{TABLE}| sun | 2 |\n"),
        (f"{TABLE}| sun | it; the moon |\n", f"{TABLE}| sun | it. |\n"),
        (f"{TABLE}| sun | `a`, `moon`, [b](c) |\n", f"{TABLE}| sun | `a`, [b](c) |\n"),
        ("# Sky\n\n| a | moon |\n| --- | --- |\n| 1 | 2 |\n\nSun.\n", "# Sky\n\nSun.\n"),
        ("# Sky\n\n```sh\nsun\nmoon --of \\\n  saturn\n```\n", "# Sky\n\n```sh\nsun\n```\n"),
        ("# Sky\n\n## The moon\n\nRound.\n\n### Sea\n\nDry.\n\n## Sun\n\nHot.\n", SUN),
        ("# Sky\n\n## Night\n\nThe moon.\n\n## Sun\n\nHot.\n", SUN),
        ("# Sky\n\nThe\nsun  is hot.\n\n\n\n- a\n", "# Sky\n\nThe\nsun  is hot.\n\n\n\n- a\n"),
    ],
)
def test_of_a_document_the_smallest_sentence_row_or_section_goes(text: str, left: str) -> None:
    assert cut_document(text, MOON) == left


def test_code_is_not_broken_where_a_paragraph_is_filled_again() -> None:
    words = "sun " * 30

    assert cut_document(f"# Sky\n\nThe moon. {words}`a b c d e f g`.\n", MOON) == (
        f"# Sky\n\n{words.strip()}\n`a b c d e f g`.\n"
    )


def test_a_rule_goes_with_its_verb_and_a_line_of_a_recipe_alone() -> None:
    text = """\
.PHONY: sun moon \\
\tstar

ALL := sun moon
# It rises.
moon: star ## rises
\t@rise

.venv/sun: setup
\t@touch moon.txt
sun: moon star moon.txt ## shines, as the moon
\t@shine
\t@see \\
\t\tmoon
night: sun
\t@moon
"""
    left = """\
.PHONY: sun \\
\tstar

ALL := sun moon

sun: star moon.txt ## shines, as the moon
\t@shine
"""

    assert cut_makefile(text, MOON, ["moon"]) == left


@pytest.mark.parametrize(
    ("text", "left"),
    [
        ("a:\n  moon:\n    - 1\n  b: 2\n", "a:\n  b: 2\n"),
        ("# The moon.\n#MOON=1\nSUN=2\n", "SUN=2\n"),
        ("# Why.\nmoon: 1\n\nsun: 2\n", "sun: 2\n"),
        ("# Both.\nmoon: 1\nsun: 2\n", "# Both.\nsun: 2\n"),
        ("a: [sun, moon]\nb: [moon]\n", "a: [sun]\n"),
        ("a: {b: [sun, moon]}\n", "a: {b: [sun]}\n"),
        ('a = [{ b = "moon" }, { b = "sun" }]\n', 'a = [{ b = "sun" }]\n'),
        ('a = [{ b = "moon", c = 1 }]\nd = 1\n', "d = 1\n"),
        ('a = ["sun, moon", "star"]\n', 'a = ["star"]\n'),
        ("a: 1 # not the moon\n", "a: 1\n"),
        ('a: "Sun #1"\nb: "Sun #1, the moon"\n', 'a: "Sun #1"\n'),
        ("moon:\n- 1\n- 2\nsun: 2\n", "sun: 2\n"),
        ("needs:\n  - moon\nsun: 2\n", "sun: 2\n"),
        ("- moon:\n    - 1\n- sun: 2\n", "- sun: 2\n"),
        ("a:\n  - moons:\n      - moon\n  - sun\n", "a:\n  - sun\n"),
        ('    "sun", "moon",\n', '    "sun",\n'),
        ("# shellcheck disable=moon\na: 1\n", "a: 1\n"),
        ("a: 1 # part: moon\nb: 1\n", "b: 1\n"),
        ("# The sun. The\n# moon.\na: 1\n", "# The sun.\na: 1\n"),
    ],
)
def test_of_settings_an_entry_goes_with_what_is_indented_below_it(text: str, left: str) -> None:
    assert cut_entries(text, MOON) == left


def test_of_toml_a_section_goes_by_its_header() -> None:
    text = "[sun]\na = 1\n\n[moon]\nb = 2\n\n# next\n[star]\nc = 3\n"

    assert cut_toml(text, MOON) == "[sun]\na = 1\n\n# next\n[star]\nc = 3\n"


def test_of_a_dockerfile_an_instruction_of_one_line_goes() -> None:
    text = "COPY moon .\nCOPY sun .\nRUN sun \\\n  moon\n"

    assert cut_dockerfile(text, MOON) == "COPY sun .\nRUN sun \\\n  moon\n"
