"""`make rename`: which names can be used, and what the project would be with another one."""

import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from scripts import rename as command
from scripts.answers import read_answers, write_answers
from scripts.changes import CHECKOUT, ChangeError, copy_files, list_tracked, read_texts
from scripts.rename import (
    KEPT,
    apply_renaming,
    demand_usable,
    plan_renaming,
    read_name,
    rename_project,
)
from test_support.other_name import LONGEST, OLD, SHORTEST
from test_support.waits import HANGS_AFTER_SECONDS

RUFF = [sys.executable, "-m", "ruff"]
Run = Callable[..., tuple[int, str, str]]

LETTERS_MIN = 8
"""Of a name from which on lines leave room for the longest one: a formatter joins two texts that
fit into one line, and parts none."""


@pytest.fixture
def copy(tmp_path: Path) -> Path:
    """The files of this checkout."""
    copy_files(CHECKOUT, list_tracked(CHECKOUT), tmp_path)
    run("git", "init", "-q", folder=tmp_path)
    return tmp_path


def run(*command: str, folder: Path) -> None:
    ended = subprocess.run(
        command, cwd=folder, capture_output=True, text=True, timeout=HANGS_AFTER_SECONDS
    )
    assert ended.returncode == 0, ended.stdout + ended.stderr


@pytest.mark.parametrize("name", [SHORTEST, *([] if len(OLD) < LETTERS_MIN else [LONGEST])])
def test_with_another_name_no_line_is_too_long(copy: Path, name: str) -> None:
    plan = plan_renaming(copy, OLD, name)
    assert len(plan) > len(list_tracked(copy)) / 10

    apply_renaming(copy, plan)
    run(*RUFF, "check", "--select=I", "--fix", "-q", ".", folder=copy)
    run(*RUFF, "format", "-q", ".", folder=copy)

    run(*RUFF, "check", "-q", ".", folder=copy)


def test_the_old_name_is_gone_and_with_it_all_is_as_before(copy: Path) -> None:
    before = contents(copy)

    apply_renaming(copy, plan_renaming(copy, OLD, LONGEST))

    renamed = contents(copy)
    texts = {path: text for path, text in read_texts(copy, renamed).items() if path not in KEPT}
    assert [path for path, text in texts.items() if OLD in (path + text).lower()] == []
    kept = KEPT & before.keys()
    assert {path: renamed[path] for path in kept} == {path: before[path] for path in kept}

    apply_renaming(copy, plan_renaming(copy, LONGEST, OLD))

    assert contents(copy) == before


def contents(folder: Path) -> dict[str, bytes]:
    return {
        str(path.relative_to(folder)): path.read_bytes()
        for path in sorted(folder.rglob("*"))
        if path.is_file() and ".git" not in path.relative_to(folder).parts
    }


@pytest.fixture
def sky(tmp_path: Path) -> Path:
    """A small project of the name `sky`."""
    files: dict[str, str | bytes] = {
        "pyproject.toml": '[project]\nname = "sky"\n',
        "README.md": "# Sky\n\nBy SKY_SUN=1 the moon\nrises over my sky.\n",
        "parts.toml": '[night]\ntitle = "the night"\npaths = []\nwords = ["dark"]\n',
        "sky/of/sky.py": "sky = 1\n",
        ".stars/sky.md": "my sky\n",
        "sky.bin": b"\xff sky",
        ".env": "SKY_SUN=1\n",
        ".gitignore": ".env\n",
        "LICENSE": "The Sky authors\n",
        "uv.lock": '[[package]]\nname = "sky"\n[[package]]\nname = "tides"\n',
    }
    for name, content in files.items():
        path = tmp_path / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(content if isinstance(content, bytes) else content.encode())
    (tmp_path / "sky/of/sky.py").chmod(0o755)
    (tmp_path / "sky-link").symlink_to("sky/of")
    run("git", "init", "-q", folder=tmp_path)
    return tmp_path


def test_texts_paths_and_links_have_the_name_in_each_form(sky: Path) -> None:
    apply_renaming(sky, plan_renaming(sky, "sky", "ocean"))

    before = ["LICENSE", "parts.toml", "uv.lock", ".gitignore"]
    assert read_texts(sky, [file for file in list_tracked(sky) if file not in before]) == {
        ".stars/ocean.md": "my ocean\n",
        "README.md": "# Ocean\n\nBy OCEAN_SUN=1 the moon\nrises over my ocean.\n",
        "ocean/of/ocean.py": "ocean = 1\n",
        "pyproject.toml": '[project]\nname = "ocean"\n',
    }
    assert read_texts(sky, [".env", "LICENSE"]) == {
        ".env": "OCEAN_SUN=1\n",
        "LICENSE": "The Sky authors\n",
    }
    assert (sky / "ocean.bin").read_bytes() == b"\xff sky"
    assert (sky / "ocean-link").readlink() == Path("ocean/of")
    assert (sky / "ocean/of/ocean.py").stat().st_mode & 0o777 == 0o755
    assert not (sky / "sky").exists()


def test_a_copy_notes_its_name_and_still_knows_where_it_is_from(
    sky: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(command, "renew_all", list)
    write_answers(sky, {"_src_path": "of/sky", "without": [], "name": "sky"})

    rename_project(sky, "ocean", report=lambda line: None)

    assert read_answers(sky) == {"_src_path": "of/sky", "without": [], "name": "ocean"}
    assert read_name(sky) == "ocean"


def test_after_a_step_that_fails_all_is_as_before(
    sky: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(command, "renew_all", lambda: [("locking", ["false"])])
    before = contents(sky)

    with pytest.raises(ChangeError, match="locking failed"):
        rename_project(sky, "ocean", report=lambda line: None)

    assert contents(sky) == before
    assert (sky / "sky-link").readlink() == Path("sky/of")
    assert not (sky / "ocean-link").is_symlink()


@pytest.fixture
def rename(sky: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Run:
    """The command in the small project: its exit status, and what it printed where."""
    monkeypatch.setattr(command, "CHECKOUT", sky)

    def run(*arguments: str) -> tuple[int, str, str]:
        monkeypatch.setattr(sys, "argv", ["rename", *arguments])
        return command.main(), *capsys.readouterr()

    return run


@pytest.mark.parametrize(
    ("name", "complaint"),
    [
        ("Ocean", "'Ocean' must be 2 to 15 small letters and digits, a letter first"),
        ("my-ocean", "'my-ocean' must be 2 to 15 small letters and digits, a letter first"),
        ("2oceans", "'2oceans' must be 2 to 15 small letters and digits, a letter first"),
        ("o", "'o' must be 2 to 15 small letters and digits, a letter first"),
        ("o" * 16, f"'{'o' * 16}' must be 2 to 15 small letters and digits, a letter first"),
        ("", "'' must be 2 to 15 small letters and digits, a letter first"),
        ("sky", "'sky' already occurs, in the path .stars/sky.md: take another name"),
        ("moo", "'moo' already occurs, in README.md:3: take another name"),
        ("rises", "'rises' already occurs, in README.md:4: take another name"),
        ("by", "'by' already occurs, in README.md:3: take another name"),
        ("darkness", "'darkness' would mention the part night: take another name"),
        ("tides", "'tides' is a package that the project uses: take another name"),
        ("ocean", "there are uncommitted changes: git commit or git stash them first"),
    ],
)
def test_a_name_that_cannot_be_used_is_one_line(
    rename: Run, sky: Path, name: str, complaint: str
) -> None:
    before = contents(sky)

    assert rename("--", name) == (1, "", f"{OLD}: {complaint}\n")

    assert contents(sky) == before


def test_a_word_of_the_license_or_of_hashes_in_the_lock_can_be_a_name(sky: Path) -> None:
    (sky / "uv.lock").write_text('[[package]]\nname = "sky"\nhash = "cafe"\n')

    demand_usable(sky, "authors")
    demand_usable(sky, "cafe")


def test_what_is_no_checkout_is_refused(rename: Run, sky: Path) -> None:
    shutil.rmtree(sky / ".git")

    status, _, printed = rename("--", "ocean")

    assert status == 1
    assert "no checkout of git" in printed
