"""What a donor has of a thing is grafted where its neighbours are, and nothing else is."""

import re
import subprocess
import sys

import pytest

from scripts.changes import CHECKOUT
from scripts.new.grafting import Donor, graft, graft_cases
from scripts.new.skeletons import OF_COMMAND, OF_REACTION, OF_READ_MODEL, read_skeleton
from scripts.new.words import NewError
from scripts.parts.removal import cut_file
from test_support.waits import HANGS_AFTER_SECONDS

MOON = re.compile("moon", re.IGNORECASE)
OTHERS = {OF_COMMAND: OF_REACTION, OF_REACTION: OF_COMMAND, OF_READ_MODEL: OF_COMMAND}
"""What stands behind the thing in the same union, and is not there when that is made."""
MODULES = [
    (path, pattern)
    for path, text in read_skeleton().items()
    for pattern in OTHERS
    if path.endswith(".py") and pattern.search(text) and not pattern.search(path)
]


def format_code(text: str) -> str:
    """As the steps after a graft do."""
    for command in (["check", "--select=F401,I", "--fix"], ["format"]):
        options = ["--quiet", "--stdin-filename", "scripts/new/skeleton/things-svc/src/a.py", "-"]
        text = subprocess.run(
            [sys.executable, "-m", "ruff", *command, *options],
            cwd=CHECKOUT,
            input=text,
            capture_output=True,
            text=True,
            check=True,
            timeout=HANGS_AFTER_SECONDS,
        ).stdout
    return text


def graft_moon(target: str, donor: str, renamed: str | None = None) -> str:
    return graft(target, Donor.parse(donor, renamed or donor, MOON))


@pytest.mark.parametrize(("path", "pattern"), MODULES)
def test_what_is_cut_out_of_the_skeleton_is_grafted_where_it_was(
    path: str, pattern: re.Pattern[str]
) -> None:
    whole = format_code(cut_file(path, read_skeleton()[path], (), OTHERS[pattern]))
    without = cut_file(path, whole, (), pattern)
    assert without != whole

    assert format_code(graft(without, Donor.parse(whole, whole, pattern))) == whole


SUN_MATCH = "def f(a):\n    match a:\n        case Sun():\n            pass\n"
TWO = f"{SUN_MATCH}    match b:\n        case Sea():\n            pass\n"
ANY_CASE = "        case _:\n            raise\n"
MOON_CASE = "        case Moon():\n            pass\n"


@pytest.mark.parametrize(
    ("target", "donor", "grafted"),
    [
        ("U = Sun\n", "U = Sun | Moon\n", "U = Sun | Moon\n"),
        ("U = Sun | Sky\n", "U = Sun | Moon\n", "U = Sun | Sky | Moon\n"),
        ("U = (\n    Sun | Sky\n)\n", "U = Sun | Moon\n", "U = (\n    Sun | Sky | Moon\n)\n"),
        ('U = {"sun": 1}\n', 'U = {"moon": 2}\n', 'U = {"sun": 1,"moon": 2}\n'),
        ("U = C({})\n", 'U = C({"moon": 2})\n', 'U = C({"moon": 2})\n'),
        ("U: T = C({})\n", 'U: S = C({"moon": 2})\n', 'U: T = C({"moon": 2})\n'),
        ("U = (sun,)\n", "U = (sun, moon)\n", "U = (sun,moon)\n"),
        ("U = (a, (b,))\n", "U = (a, moon)\n", "U = (a, (b,),moon)\n"),
        (TWO, TWO + MOON_CASE, TWO + MOON_CASE),
        (SUN_MATCH, SUN_MATCH + MOON_CASE, SUN_MATCH + MOON_CASE),
        (SUN_MATCH + ANY_CASE, SUN_MATCH + MOON_CASE, SUN_MATCH + MOON_CASE + ANY_CASE),
        ("a = 1\nc = 3\n", "a = 1\nmoon = 2\nc = 3\n", "a = 1\nmoon = 2\nc = 3\n"),
        ("a = 1\nother = 3\n", "a = 1\nmoon = 2\nc = 3\n", "a = 1\nmoon = 2\nother = 3\n"),
        ("other = 3\n", "moon = 2\n", "other = 3\nmoon = 2\n"),
        ("a = 1\n", "a = 1\ndef g():\n    return moon\n", "a = 1\n"),
        ("import sky\n", "import moon\nx = moon\n", "import sky\n"),
    ],
)
def test_a_part_of_a_definition_is_added_to_the_one_of_its_name(
    target: str, donor: str, grafted: str
) -> None:
    assert graft_moon(target, donor) == grafted


def test_what_is_grafted_has_the_names_of_the_target() -> None:
    donor = "U = Sun | Moon\ndef get_moon(): return Moon\n"
    renamed = donor.replace("Sun", "Sky").replace("Moon", "Star").replace("moon", "star")

    grafted = graft_moon("U = Sky\n", donor, renamed)

    assert grafted == "U = Sky | Star\ndef get_star(): return Star\n"


def test_what_it_uses_is_imported_unless_it_is_known() -> None:
    donor = "import b.c\nfrom d import e, f as g, h\nfrom i import j\nmoon = b.c(e, g, h, j)\n"
    target = '"""A text."""\nfrom i import j\ndef h(): pass\n'

    grafted = graft_moon(target, donor)

    assert grafted == (
        '"""A text."""\nfrom i import j\nimport b.c\nfrom d import e\nfrom d import f as g\n'
        "def h(): pass\nmoon = b.c(e, g, h, j)\n"
    )


def test_a_module_without_an_import_gets_one_below_its_text() -> None:
    assert graft_moon('"""A text."""\n', "from a import b\nmoon = b\n") == (
        '"""A text."""\nfrom a import b\nmoon = b\n'
    )


@pytest.mark.parametrize("there", ["moon = 1\n", "def moon(): pass\n", "from a import moon\n"])
def test_a_definition_that_is_there_is_refused(there: str) -> None:
    with pytest.raises(NewError, match="moon is there already"):
        graft_moon(there, "def moon(): pass\n")


@pytest.mark.parametrize(
    ("target", "donor"),
    [
        ("", "U = Sun | Moon\n"),
        ("U = 1\n", "U = Sun | Moon\n"),
        ("U = Sun()\n", "U = Sun | Moon\n"),
        ("U = {1: sun}\n", "U = (sun, moon)\n"),
        ("U = (sun,)\n", "U = {1: sun, 2: moon}\n"),
        ("U = (sun,)\n", 'U = {"sky": [moon]}\n'),
    ],
)
def test_a_definition_that_is_not_there_or_has_another_form_is_named(
    target: str, donor: str
) -> None:
    with pytest.raises(NewError, match="U is missing, or has another form"):
        graft_moon(target, donor)


EACH = "match b:\n    case Sun() | Sky():\n        pass\n    case Sea(depth=1):\n        pass\n"
DONOR = "from s import Moon\ndef f(b):\n    match b:\n        case Moon():\n            pass\n"


@pytest.mark.parametrize(
    ("classes", "count"), [(["Sun", "Sky", "Sea"], 1), (["Sun"], 1), (["Sun", "Air"], 0)]
)
def test_a_case_is_added_to_each_match_of_all_classes(classes: list[str], count: int) -> None:
    grafted = graft_cases(EACH, Donor.parse(DONOR, DONOR, MOON), classes)

    assert grafted.count("case Moon():") == count
    assert grafted.count("from s import Moon") == count


def test_a_comment_behind_the_last_entry_would_be_that_of_the_next_one() -> None:
    target = "def f():\n    return (\n        sun(),  # it shines\n    )\n"

    with pytest.raises(NewError, match="ends with a comment: put that above its line"):
        graft_moon(target, "def f():\n    return (moon(),)\n")
