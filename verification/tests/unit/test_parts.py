"""`make without`: what is cut with a part, and what is left of every part of this project."""

import ast
import re
import subprocess
import sys
from collections.abc import Iterator, Mapping
from functools import cache
from pathlib import Path

import pytest
import yaml

from scripts.checkout_files import list_files, read_texts
from scripts.parts.declared import PartsError, choose_parts, load_parts
from scripts.parts.documents import cut_document
from scripts.parts.python_code import cut_python, find_bound
from scripts.parts.removal import SKIPPED, Cut, apply_cut, find_mentions, plan_cut
from scripts.parts.renaming import rename_project
from scripts.parts.text import cut_entries, cut_makefile, cut_patch, cut_toml
from test_support.left_out import COMBINATIONS, PARTS

CHECKOUT = Path(__file__).resolve().parents[3]
MOON = re.compile(r"\bmoons?\b|part: moon")
MATCH = "match a:\n    case 1:\n        f()\n"
TABLE = "# Sky\n\n| a | b |\n| --- | --- |\n"
SUN = "# Sky\n\n## Sun\n\nHot.\n"
RUFF = [sys.executable, "-m", "ruff", "check", "-q"]
RUFF_SECONDS_MAX = 120

TRACKED = list_files(CHECKOUT)


def cut_code(text: str, whole_functions: bool = False) -> str:
    return cut_python(text, MOON, whole_functions)


@pytest.mark.parametrize(
    ("text", "left"),
    [
        ("import sun\nfrom moon import rise\n", "import sun\n"),
        ("import sun\n\nmoon = 1\nsun.shine()\n", "import sun\n\nsun.shine()\n"),
        ("bodies = [\n    'sun',\n    'moon',\n]\n", "bodies = [\n    'sun',\n]\n"),
        ("a = {\n    's': 1,\n    'moon': (\n        2\n    ),\n}\n", "a = {\n    's': 1,\n}\n"),
        ("f(\n    1,\n    moon=2,\n)\n", "f(\n    1,\n)\n"),
        ("bodies = ['sun', 'moon']\nstay = 1\n", "stay = 1\n"),
        ("def f():\n    if moon:\n        b = 2\n    return a\n", "def f():\n    return a\n"),
        ("def f():  # part: moon\n    return 1\n\n\nstay = 1\n", "stay = 1\n"),
        ("@cached\ndef f():  # part: moon\n    return 1\n\n\nstay = 1\n", "stay = 1\n"),
        ("class A:\n    def moon(self):\n        pass\n\n\nstay = 1\n", "stay = 1\n"),
        ("match a:\n    case 1:\n        f()\n    case 'moon':\n        g()\n", MATCH),
        ("# About the moon.\nstay = 1\n", "stay = 1\n"),
        ("# The sun. The moon.\nstay = 1\n", "# The sun.\nstay = 1\n"),
        ('"""The sun.\n\nThe moon is round.\n"""\n\nstay = 1\n', '"""The sun."""\n\nstay = 1\n'),
        ("# Why.\nmoon = 1\nstay = 1\n", "stay = 1\n"),
    ],
)
def test_the_smallest_statement_or_element_is_cut_out_of_code(text: str, left: str) -> None:
    assert cut_code(text) == left


def test_what_uses_a_name_that_was_cut_is_cut_too() -> None:
    text = "from moon import rise\n\nsun = 1\ntide = rise()\nwave = tide + 1\n"

    assert cut_code(text) == "sun = 1\n"


def test_a_name_that_is_still_bound_is_kept() -> None:
    text = "from moon import rise\n\nrise = 1\ntide = rise\n"

    assert cut_code(text) == "rise = 1\ntide = rise\n"


def test_in_tests_a_function_goes_as_a_whole_unless_the_line_is_marked() -> None:
    text = "def test_a():\n    assert sun\n    assert moon\n\n\ndef test_b():\n    assert sun\n"
    marked = "def test_a():\n    assert sun\n    assert tide  # part: moon\n"

    assert cut_code(text, whole_functions=True) == "def test_b():\n    assert sun\n"
    assert cut_code(marked, whole_functions=True) == "def test_a():\n    assert sun\n"


def test_a_test_goes_with_the_fixture_that_it_asks_for() -> None:
    text = "@pytest.fixture\ndef tide():\n    return moon\n\n\ndef test_a(tide):\n    pass\n"

    assert cut_code(text + "\n\ndef test_b():\n    pass\n", whole_functions=True) == (
        "def test_b():\n    pass\n"
    )


@pytest.mark.parametrize(
    ("text", "left"),
    [
        ("# Sky\n\nThe sun. The moon. A star.\n", "# Sky\n\nThe sun. A star.\n"),
        ("# Sky\n\nThe sun; the moon.\n", "# Sky\n\nThe sun.\n"),
        ("# Sky\n\n- sun\n- moon\n  - its sea\n- star\n", "# Sky\n\n- sun\n- star\n"),
        ("# Sky\n\n- The sun. Not the\n  moon.\n", "# Sky\n\n- The sun.\n"),
        (f"{TABLE}| moon | 1 |\n| sun | 2 |\n", f"{TABLE}| sun | 2 |\n"),
        (f"{TABLE}| sun | it; the moon |\n", f"{TABLE}| sun | it. |\n"),
        ("# Sky\n\n```sh\nsun\nmoon --of \\\n  saturn\n```\n", "# Sky\n\n```sh\nsun\n```\n"),
        ("# Sky\n\n## The moon\n\nRound.\n\n### Sea\n\nDry.\n\n## Sun\n\nHot.\n", SUN),
        ("# Sky\n\n## Night\n\nThe moon.\n\n## Sun\n\nHot.\n", SUN),
    ],
)
def test_the_smallest_sentence_row_or_section_is_cut_out_of_a_document(
    text: str, left: str
) -> None:
    assert cut_document(text, MOON) == left


def test_a_document_that_does_not_mention_it_is_not_touched() -> None:
    text = "# Sky\n\nThe\nsun  is hot.\n\n\n\n- a\n"

    assert cut_document(text, MOON) == text


def test_a_target_goes_with_its_name_and_a_line_of_a_recipe_alone() -> None:
    moon = "moon: ## rises\n\t@rise\n\n"
    text = f".PHONY: sun moon\n\n{moon}sun: moon ## shines\n\t@shine\n\t@see moon\n"

    assert cut_makefile(text, re.compile(r"^moon:|see moon")) == (
        ".PHONY: sun \n\nsun: ## shines\n\t@shine\n"
    )


def test_entries_go_with_what_is_indented_below_them() -> None:
    assert cut_entries("a:\n  moon:\n    - 1\n  b: 2\n", MOON) == "a:\n  b: 2\n"
    assert cut_toml("[sun]\na = 1\n\n[moon]\nb = 2\n\n# next\n[star]\nc = 3\n", MOON) == (
        "[sun]\na = 1\n\n# next\n[star]\nc = 3\n"
    )


def test_files_and_hunks_go_out_of_a_patch() -> None:
    sun = "diff --git a/sun b/sun\n@@ -1 +1 @@\n-a\n+b\n"
    moon = "diff --git a/moon b/moon\n@@ -1 +1 @@\n-a\n+b\n"

    assert cut_patch(sun + "@@ -9 +9 @@\n moon\n+c\n" + moon, MOON) == sun


def test_the_parts_that_need_one_go_with_it() -> None:
    parts = load_parts(CHECKOUT)

    assert [part.name for part in choose_parts(parts, ["faust"])] == ["lessons", "faust"]
    with pytest.raises(PartsError, match="'moon' is no part; there are: benchmarks, "):
        choose_parts(parts, ["moon"])


@pytest.mark.parametrize(
    ("text", "complaint"),
    [
        ("[moon]\n", "must be a table with a title"),
        ('[moon]\ntitle = "x"\nrocks = []\n', "moon has rocks"),
        ('[moon]\ntitle = "x"\nneeds = ["sun"]\n', "moon needs sun, which is no part"),
        ('[moon]\ntitle = "x"\nwords = ["("]\n', "is no pattern"),
        ('[moon]\ntitle = "x"\nwords = "a"\n', "must be a list of strings"),
        ("[moon\n", "cannot be read"),
    ],
)
def test_a_wrong_declaration_is_refused(tmp_path: Path, text: str, complaint: str) -> None:
    (tmp_path / "parts.toml").write_text(text)

    with pytest.raises(PartsError, match=complaint):
        load_parts(tmp_path)


def test_copier_asks_for_each_part_and_keeps_all_unless_told_otherwise() -> None:
    asked = yaml.safe_load((CHECKOUT / "copier.yml").read_text())["keep"]

    assert asked["choices"] == asked["default"] == PARTS


@pytest.fixture(params=COMBINATIONS)
def cut(request: pytest.FixtureRequest) -> Cut:
    return plan(request.param)


@cache
def plan(names: str) -> Cut:
    return plan_cut(CHECKOUT, names.split(","))


def test_no_line_mentions_a_part_that_is_gone(cut: Cut) -> None:
    """What `make generate` writes is left to it."""
    left = [
        f"{file}:{number}: {line}"
        for file, text in read_texts(CHECKOUT, TRACKED, skipped={*SKIPPED, *cut.removed})
        if not file.startswith("docs/requests/")
        for number, line in enumerate(cut.changed.get(file, text).splitlines(), 1)
        if cut.pattern.search(line)
    ]

    assert left == []


def test_no_verb_goes_but_those_of_the_parts(cut: Cut) -> None:
    before = find_verbs((CHECKOUT / "Makefile").read_text())
    after = find_verbs(cut.changed.get("Makefile", (CHECKOUT / "Makefile").read_text()))

    assert before - after == {verb for part in cut.parts for verb in part.verbs}


def find_verbs(makefile: str) -> set[str]:
    return set(re.findall(r"^([a-z0-9-]+):", makefile, re.MULTILINE))


def test_no_name_is_left_that_nothing_binds(cut: Cut, tmp_path: Path) -> None:
    """Of the files that are cut; `make check` in a copy without the part looks at all of them."""
    for file, text in cut.changed.items():
        if file.endswith(".py") and text.strip():
            (tmp_path / file).parent.mkdir(parents=True, exist_ok=True)
            (tmp_path / file).write_text(text)

    assert find_undefined(tmp_path) == ""


def test_nothing_is_imported_from_a_module_that_lost_it(cut: Cut) -> None:
    texts = {
        file: cut.changed.get(file, text)
        for file, text in read_texts(CHECKOUT, TRACKED, skipped=cut.removed)
        if file.endswith(".py")
    }
    lost = {
        to_module(file): bound(CHECKOUT / file) - find_names(text)
        for file, text in texts.items()
        if file in cut.changed
    }

    assert list(find_imported(texts, lost)) == []


def to_module(path: str) -> str:
    return re.sub(r"^[\w-]+/src/", "", path).removesuffix(".py").replace("/", ".")


@cache
def bound(file: Path) -> set[str]:
    return find_names(file.read_text())


def find_names(text: str) -> set[str]:
    return {name for node in ast.parse(text).body for name in find_bound(node)}


def find_imported(
    texts: Mapping[str, str], lost: Mapping[str, set[str]]
) -> Iterator[tuple[str, str]]:
    """Each file that imports a lost name, and the name."""
    for file, text in texts.items():
        if any(module in text for module, names in lost.items() if names):
            for node in ast.walk(ast.parse(text)):
                if isinstance(node, ast.ImportFrom):
                    names = {each.name for each in node.names} & lost.get(node.module or "", set())
                    yield from ((file, name) for name in sorted(names))


def test_an_import_of_a_lost_name_is_found() -> None:
    """The negative control."""
    texts = {"sky.py": "from space.moon import rise, sea\n"}

    assert list(find_imported(texts, {"space.moon": {"rise"}})) == [("sky.py", "rise")]


def find_undefined(folder: Path) -> str:
    return subprocess.run(
        [*RUFF, "--isolated", "--no-cache", "--select=F821,E9", "."],
        cwd=folder,
        capture_output=True,
        text=True,
        timeout=RUFF_SECONDS_MAX,
    ).stdout


def test_a_name_that_nothing_binds_is_found(tmp_path: Path) -> None:
    """The negative control."""
    (tmp_path / "sky.py").write_text("print(moon)\n")

    assert "moon" in find_undefined(tmp_path)


@pytest.fixture
def sky(tmp_path: Path) -> Path:
    """A small project with a part, `moon`."""
    for path, text in {
        "parts.toml": '[moon]\ntitle = "the moon"\npaths = ["moon"]\nwords = [\'\\bmoon\\b\']\n',
        "moon/sea.py": "dry = True\n",
        "sky.py": "import sun\nfrom moon import sea\n",
        "README.md": "# Sky\n\nThe sun. The moon.\n",
        "Dockerfile": "COPY moon .\nCOPY sun .\nRUN sun \\\n  moon\n",
        "sky.sql": "SELECT moon\nSELECT tide -- part: moon\n",
    }.items():
        (tmp_path / path).parent.mkdir(exist_ok=True)
        (tmp_path / path).write_text(text)
    return tmp_path


def test_files_and_mentions_of_a_part_are_gone_and_what_is_unknown_is_reported(sky: Path) -> None:
    cut = plan_cut(sky, ["moon"])

    apply_cut(sky, cut)

    assert not (sky / "moon").exists()
    assert (sky / "sky.py").read_text() == "import sun\n"
    assert (sky / "README.md").read_text() == "# Sky\n\nThe sun.\n"
    assert (sky / "Dockerfile").read_text() == "COPY sun .\nRUN sun \\\n  moon\n"
    # A kind of file that is not understood is not cut, except where a line is marked.
    assert (sky / "sky.sql").read_text() == "SELECT moon\n"
    assert [str(each) for each in find_mentions(sky, cut.pattern)] == [
        "Dockerfile:3: moon",
        "sky.sql:1: SELECT moon",
    ]


def test_a_path_that_does_not_exist_is_refused(sky: Path) -> None:
    (sky / "moon/sea.py").unlink()

    with pytest.raises(PartsError, match="moon has moon, and there is no such file"):
        plan_cut(sky, ["moon"])


def test_a_project_has_its_own_name_in_texts_and_paths_but_not_in_migrations(
    tmp_path: Path,
) -> None:
    (tmp_path / "hometown.py").write_text("class Hometown: HOMETOWN_DIR = 'hometown-x'\n")
    (tmp_path / "0001.sql").write_text("-- hometown\n")

    assert rename_project(tmp_path, "hometown", "shop", ["hometown.py", "0001.sql"]) == 1

    assert (tmp_path / "shop.py").read_text() == "class Shop: SHOP_DIR = 'shop-x'\n"
    assert (tmp_path / "0001.sql").read_text() == "-- hometown\n"
    assert not (tmp_path / "hometown.py").exists()


@pytest.mark.parametrize("name", ["My", "my-shop", "ninechars", "1st", ""])
def test_a_name_that_would_break_the_project_is_refused(tmp_path: Path, name: str) -> None:
    with pytest.raises(PartsError, match="2 to 8 small letters"):
        rename_project(tmp_path, "hometown", name, [])
