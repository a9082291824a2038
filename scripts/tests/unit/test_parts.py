"""`make without`: what is declared, and what would be left of this project without its parts."""

import ast
import re
import subprocess
import sys
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from functools import cache
from pathlib import Path

import pytest

from scripts.changes import CHECKOUT, ChangeError, list_tracked
from scripts.parts import __main__ as command
from scripts.parts.declared import Part, PartsError, choose_parts, load_parts, recognize
from scripts.parts.removal import SKIPPED, Cut, apply_cut, plan_cut, read_written
from test_support.first_and_long import first_and_long
from test_support.left_out import PARTS, SELECTIONS
from test_support.waits import HANGS_AFTER_SECONDS

RUFF = [sys.executable, "-m", "ruff", "check", "-q"]
Without = Callable[..., tuple[int, str, str]]
VERB = re.compile(r"^([a-z0-9-]+):", re.MULTILINE)
WORD = re.compile(r"\w+")
MARKED = re.compile(r"# part: ([\w, -]+)$", re.MULTILINE)
DEPENDENCY = re.compile(r'^    "([a-z][\w-]*)', re.MULTILINE)


def test_the_parts_that_need_one_go_with_it(tmp_path: Path) -> None:
    declare(tmp_path, sea={"needs": ["moon"]}, moon={}, tide={"needs": ["sea"]})
    parts = load_parts(tmp_path)

    assert [part.name for part in choose_parts(parts, ["moon"])] == ["sea", "moon", "tide"]
    assert [part.name for part in choose_parts(parts, ["tide"])] == ["tide"]
    with pytest.raises(PartsError, match="'sun' is no part; there are: sea, moon, tide"):
        choose_parts(parts, ["sun"])


def declare(root: Path, **parts: Mapping[str, list[str]]) -> None:
    lines = []
    for name, lists in parts.items():
        lines += [f"[{name}]", f'title = "the {name}"', f'paths = ["{name}"]']
        lines += [f"{key} = {value}" for key, value in lists.items()]
    (root / "parts.toml").write_text("\n".join(lines))


@pytest.mark.parametrize(
    ("text", "complaint"),
    [
        ("[moon]\npaths = []\n", "parts.toml: moon.title: Field required"),
        ('[moon]\ntitle = "x"\npaths = []\nrocks = []\n', "moon.rocks: Extra inputs"),
        ('[moon]\ntitle = "x"\npaths = []\nneeds = ["sun"]\n', "needs sun, which is no part"),
        ('[moon]\ntitle = "x"\npaths = []\nwords = ["("]\n', "moon.words.0: .*regular expression"),
        ('[moon]\ntitle = "x"\npaths = "a"\n', "moon.paths: Input should be a valid tuple"),
        ("moon = 1\n", "moon is no table"),
        ("[moon\n", "cannot be read"),
    ],
)
def test_a_wrong_declaration_is_one_line(tmp_path: Path, text: str, complaint: str) -> None:
    (tmp_path / "parts.toml").write_text(text)

    with pytest.raises(PartsError, match=complaint) as refused:
        load_parts(tmp_path)

    assert "\n" not in str(refused.value)


@pytest.fixture
def sky(tmp_path: Path) -> Path:
    """A small project with a part, `moon`."""
    declare(tmp_path, moon={"words": ["moon"]})
    files: dict[str, str | bytes] = {
        "moon/sea.py": "dry = True\n",
        "sky.py": "import sun\nfrom moon import sea\n",
        "README.md": "# Sky\n\nThe sun. The moon.\n",
        "Dockerfile": "COPY moon .\nCOPY sun .\nRUN sun \\\n  moon\n",
        "sky.sql": "SELECT moon\nSELECT tide -- # part: moon\n",
        "sky.bin": b"\xff\xfe moon",
        ".gitignore": "ignored\n",
        "ignored": "the moon\n",
    }
    for path, text in files.items():
        (tmp_path / path).parent.mkdir(exist_ok=True)
        (tmp_path / path).write_bytes(text if isinstance(text, bytes) else text.encode())
    subprocess.run(["git", "init", "-q"], cwd=tmp_path, check=True, timeout=HANGS_AFTER_SECONDS)
    return tmp_path


def test_files_and_mentions_of_a_part_go_and_what_is_not_understood_is_named(sky: Path) -> None:
    cut = plan_cut(sky, ["moon"])

    apply_cut(sky, cut)

    assert not (sky / "moon").exists()
    assert (sky / "sky.py").read_text() == "import sun\n"
    assert (sky / "README.md").read_text() == "# Sky\n\nThe sun.\n"
    assert (sky / "Dockerfile").read_text() == "COPY sun .\nRUN sun \\\n  moon\n"
    # Of a kind of file that is not understood, only marked lines go.
    assert (sky / "sky.sql").read_text() == "SELECT moon\n"
    assert (sky / "ignored").read_text() == "the moon\n"
    assert (sky / "parts.toml").read_text() == ""
    assert [str(each) for each in cut.left] == ["Dockerfile:3: moon", "sky.sql:1: SELECT moon"]


def test_a_path_without_a_file_is_refused(sky: Path) -> None:
    (sky / "moon/sea.py").unlink()

    with pytest.raises(PartsError, match="moon has moon, and there is no such file"):
        plan_cut(sky, ["moon"])


def test_code_that_is_none_is_refused(sky: Path) -> None:
    (sky / "sky.py").write_text("import moon(\n")

    with pytest.raises(PartsError, match=r"sky\.py is no Python"):
        plan_cut(sky, ["moon"])


def test_what_git_ignores_is_not_forgotten_while_it_is_there(sky: Path) -> None:
    (sky / ".gitignore").write_text("ignored\n/moon/secrets/\n/moon/other/\n")
    (sky / "moon/secrets").mkdir()

    with pytest.raises(PartsError, match="git ignores moon/secrets, and would not any more"):
        plan_cut(sky, ["moon"])

    (sky / "moon/secrets").rmdir()

    assert plan_cut(sky, ["moon"]).changed[".gitignore"] == "ignored\n"


def test_a_file_with_nothing_left_goes_but_that_of_a_package(sky: Path) -> None:
    (sky / "stars").mkdir()
    (sky / "stars/__init__.py").write_text('"""Stars and a moon."""\n')
    (sky / "stars/tide.py").write_text("import moon\n")

    cut = plan_cut(sky, ["moon"])

    assert "stars/tide.py" in cut.removed
    assert cut.changed["stars/__init__.py"].strip() == ""


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("sky.toml", 'a = ["sun",\n     "moon"]\n'),
        ("sky.json", '{"a": ["sun"],\n "b": ["moon"]}\n'),
        ("sky.yml", "a: [sun,\n  moon]\n"),
    ],
)
def test_settings_that_would_be_malformed_stay_and_are_named(
    sky: Path, name: str, text: str
) -> None:
    (sky / name).write_text(text)

    cut = plan_cut(sky, ["moon"])

    assert name not in cut.changed
    assert name in {mention.path for mention in cut.left}


def test_a_link_is_neither_read_nor_written(sky: Path) -> None:
    (sky / "moon/link").symlink_to("sea.py")
    (sky / "to-sky.py").symlink_to("sky.py")

    cut = plan_cut(sky, ["moon"])
    apply_cut(sky, cut)

    assert cut.removed == ["moon/link", "moon/sea.py"]
    assert "to-sky.py" not in cut.changed
    assert not (sky / "moon").exists()


@pytest.mark.parametrize(
    ("text", "mentions"),
    [
        ("COPY stars/ .", True),
        ("`stars`", True),
        ('paths = ["stars"]', True),
        ("from stars import orbit", True),
        ("python -m stars", True),
        ("stars.orbit", True),
        ("The stars. All stars are short", False),
        ("make shine", True),
        ("make -s shine", True),
        ("$(MAKE) in=cluster shine", True),
        ('    "shine",', True),
        ('    "shine"', True),
        ("make shineer", False),
        ("shine: int = 1", False),
        ("docs/star.md", True),
        ("see orbit.py", True),
        ("see myorbit.py and data", False),
    ],
)
def test_a_path_a_verb_or_a_file_is_a_mention_and_a_word_of_prose_is_not(
    text: str, mentions: bool
) -> None:
    part = Part(name="x", title="x", paths=("stars", "docs/star.md"), verbs=("shine",))

    assert bool(recognize([part], {"orbit.py", "data"}).search(text)) is mentions


def test_a_folder_that_is_no_checkout_is_refused(tmp_path: Path) -> None:
    with pytest.raises(ChangeError, match="no checkout of git: git init"):
        list_tracked(tmp_path)


@pytest.fixture
def without(
    sky: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> Without:
    """The command in the small project: its exit status, and what it printed where."""
    monkeypatch.setattr(command, "CHECKOUT", sky)

    def run(*arguments: str) -> tuple[int, str, str]:
        monkeypatch.setattr(sys, "argv", ["without", *arguments])
        return command.main(), *capsys.readouterr()

    return run


def test_an_unknown_part_is_one_line(without: Without) -> None:
    assert without("sun") == (1, "", "hometown: 'sun' is no part; there are: moon\n")


def test_without_a_name_all_are_listed(without: Without, sky: Path) -> None:
    assert without() == (0, "  moon           the moon\n", "")

    (sky / "parts.toml").write_text("# none\n")

    assert without() == (0, "there is no part that can be left out\n", "")


def test_a_dry_run_shows_each_file_and_changes_nothing(without: Without, sky: Path) -> None:
    before = {path: path.read_bytes() for path in sky.rglob("*") if path.is_file()}

    status, printed, _ = without("moon", "--dry-run")

    assert status == 0
    assert printed.splitlines() == [
        "  - moon/sea.py",
        "  ~ Dockerfile (-1 lines)",
        "  ~ README.md (+0 lines)",
        "  ~ sky.py (-1 lines)",
        "  ~ sky.sql (-1 lines)",
        "  ~ parts.toml (-4 lines)",
        "  ? Dockerfile:3: moon",
        "  ? sky.sql:1: SELECT moon",
        "without moon: 1 files would go (-), 5 would change (~), 2 lines are left to you (?);"
        " nothing was changed",
    ]
    assert {path: path.read_bytes() for path in sky.rglob("*") if path.is_file()} == before


def test_changes_that_are_not_committed_are_not_mixed_with_a_removal(
    without: Without, sky: Path
) -> None:
    complaint = "there are uncommitted changes: git commit or git stash them first"

    assert without("moon") == (1, "", f"hometown: {complaint}\n")
    assert (sky / "moon").exists()


@pytest.fixture(params=first_and_long(SELECTIONS[::-1], pytest.mark.verify(part="copies")))
def cut(request: pytest.FixtureRequest) -> Cut:
    return plan(request.param)


@cache
def plan(names: str) -> Cut:
    return plan_cut(CHECKOUT, names.split(","))


@cache
def texts_before() -> Mapping[str, str]:
    return read_written(CHECKOUT, [name for name in list_tracked(CHECKOUT) if name not in SKIPPED])


def texts_after(cut: Cut) -> dict[str, str]:
    return {
        file: cut.changed.get(file, text)
        for file, text in texts_before().items()
        if file not in cut.removed
    }


def test_every_mark_names_a_part() -> None:
    marked = {
        name
        for file, text in texts_before().items()
        if not file.startswith("scripts/")
        for names in MARKED.findall(text)
        for name in names.split(", ")
    }

    assert marked <= {*PARTS}


def test_no_line_mentions_a_part_that_is_gone(cut: Cut) -> None:
    assert [str(mention) for mention in cut.left] == []


def test_no_verb_goes_but_those_of_the_parts(cut: Cut) -> None:
    before, after = (
        VERB.findall(texts["Makefile"]) for texts in (texts_before(), texts_after(cut))
    )

    assert {*before} - {*after} == {verb for part in cut.parts for verb in part.verbs}


def test_no_name_is_left_that_nothing_binds(cut: Cut, tmp_path: Path) -> None:
    """Of the files that are cut; `make check` in a copy without the parts looks at all of them."""
    for file, text in cut.changed.items():
        if file.endswith(".py"):
            (tmp_path / file).parent.mkdir(parents=True, exist_ok=True)
            (tmp_path / file).write_text(text)

    assert find_undefined(tmp_path) == ""


def find_undefined(folder: Path) -> str:
    return subprocess.run(
        [*RUFF, "--isolated", "--no-cache", "--select=F821,E9", "."],
        cwd=folder,
        capture_output=True,
        text=True,
        timeout=HANGS_AFTER_SECONDS,
    ).stdout


def test_a_name_that_nothing_binds_is_found(tmp_path: Path) -> None:
    """The negative control."""
    (tmp_path / "sky.py").write_text("print(moon)\n")

    assert "moon" in find_undefined(tmp_path)


def test_nothing_imports_what_is_gone(cut: Cut) -> None:
    gone = {to_module(file) for file in cut.removed if file.endswith(".py")}

    assert list(find_imports(texts_after(cut), gone)) == []


def to_module(path: str) -> str:
    name = re.sub(r"^[\w-]+/src/", "", path).removesuffix(".py").replace("/", ".")
    return name.removesuffix(".__init__")


def find_imports(texts: Mapping[str, str], modules: set[str]) -> Iterator[tuple[str, str]]:
    for file, text in texts.items():
        if file.endswith(".py"):
            for node in ast.walk(ast.parse(text)):
                yield from ((file, name) for name in imported(node) if name in modules)


def imported(node: ast.AST) -> Iterator[str]:
    """Yield the modules that a statement imports, or can import."""
    match node:
        case ast.Import(names=names):
            yield from (each.name for each in names)
        case ast.ImportFrom(module=str(module), names=names):
            yield module
            yield from (f"{module}.{each.name}" for each in names)


@pytest.mark.parametrize(
    "line", ["from moon.sea import dry", "from moon import sea", "import os, moon.sea as sea"]
)
def test_an_import_of_what_is_gone_is_found(line: str) -> None:
    """The negative control."""
    assert ("sky.py", "moon.sea") in [*find_imports({"sky.py": line}, {"moon.sea", "moon"})]


def test_nothing_is_left_that_only_the_parts_used(cut: Cut) -> None:
    """Functions, classes, constants, modules and packages."""
    before, after = texts_before(), texts_after(cut)

    assert find_dead(before, after) == set()
    assert find_lonely(before, after) == set()


def find_dead(before: Mapping[str, str], after: Mapping[str, str]) -> set[str]:
    """Return what was used besides where it is bound or declared, and is not any more."""
    used_before = count_words(before)
    used_after = used_before.copy()
    for file in before.keys() | after.keys():
        if before.get(file) != after.get(file):
            used_after.subtract(count_words({file: before.get(file, "")}))
            used_after.update(count_words({file: after.get(file, "")}))
    return {
        name
        for file, text in after.items()
        for name, times in find_names(file, text)
        if used_after[name] <= times < used_before[name]
    }


def find_lonely(before: Mapping[str, str], after: Mapping[str, str]) -> set[tuple[str, str]]:
    """Return what a changed file used of its own, and neither it nor an import does any more.

    A name that is a word elsewhere is not found by counting all of them.
    """
    imported_names = {
        (node.module, each.name)
        for file, text in after.items()
        if file.endswith(".py")
        for node in ast.walk(ast.parse(text))
        if isinstance(node, ast.ImportFrom)
        for each in node.names
    }
    return {
        (file, name)
        for file, text in after.items()
        if file.endswith(".py") and before[file] != text
        for name, times in find_names(file, text)
        if times
        and WORD.findall(text).count(name) == 1 < WORD.findall(before[file]).count(name)
        and (to_module(file), name) not in imported_names
    }


def count_words(texts: Mapping[str, str]) -> Counter[str]:
    """Count how often each word is used, in code as in commands and settings."""
    return Counter(
        word
        for file, text in texts.items()
        if not file.endswith((".md", ".diff", ".json", ".lock"))
        for word in WORD.findall(text)
    )


def find_names(file: str, text: str) -> Iterator[tuple[str, int]]:
    """Yield modules, names that these bind, and packages, with how often the file says each."""
    if file.endswith("pyproject.toml"):
        for package in DEPENDENCY.findall(text):
            yield package.replace("-", "_"), int("-" not in package)
    if file.endswith(".py"):
        yield Path(file).stem, 0
        for statement in ast.parse(text).body:
            match statement:
                case ast.FunctionDef(name=name) | ast.ClassDef(name=name):
                    if not name.startswith("test_"):
                        yield name, 1
                case ast.Assign(targets=[ast.Name(id=name)]):
                    yield name, 1


def test_what_only_a_part_used_is_found() -> None:
    """The negative control."""
    left = {
        "sky.py": "def tide(): ...\ndef shine(): ...\n",
        "wave.py": "",
        "pyproject.toml": '    "rocks-of-moon>=1",\n    "sun",\n',
    }
    moon = {"moon.py": "import wave, rocks_of_moon, sun\nfrom sky import tide, shine\nshine()\n"}
    sun = {"sun.py": "import sun\nfrom sky import shine\nshine()\n"}

    assert find_dead({**left, **moon, **sun}, {**left, **sun}) == {"tide", "wave", "rocks_of_moon"}


def test_what_a_file_used_of_its_own_is_found_whatever_other_files_say() -> None:
    """The negative control."""
    used = {"sky.py": "def sea(): ...\ndef sun(): ...\nsea()\nsun()\n", "b.py": "sea = 1\n"}
    after = {**used, "sky.py": "def sea(): ...\ndef sun(): ...\nsun()\n"}
    imported = {**after, "c.py": "from sky import sea\n"}

    assert find_lonely(used, after) == {("sky.py", "sea")}
    assert find_lonely({**used, "c.py": ""}, imported) == set()
