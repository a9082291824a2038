"""`make rename`: which names can be used, and what the project would be with another one."""

import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from scripts import rename as command
from scripts.changes import CHECKOUT, list_tracked, read_texts
from scripts.rename import KEPT, demand_usable, read_name, replace_name
from test_support.waits import HANGS_AFTER_SECONDS

OLD = read_name(CHECKOUT)
SHORTEST, LONGEST = "q" + "z", "q" + "z" * 14
"""Composed, so that no file has them: a name must not occur."""

Run = Callable[..., tuple[int, str, str]]


@pytest.fixture
def copy(tmp_path: Path) -> Path:
    """The files of this checkout."""
    for file in list_tracked(CHECKOUT):
        (tmp_path / file).parent.mkdir(parents=True, exist_ok=True)
        shutil.copy2(CHECKOUT / file, tmp_path / file, follow_symlinks=False)
    return tmp_path


@pytest.mark.parametrize("name", [SHORTEST, LONGEST])
def test_with_another_name_no_line_is_too_long(copy: Path, name: str) -> None:
    files = list_tracked(CHECKOUT)

    assert replace_name(copy, files, OLD, name) > len(files) / 10
    ruff("check", "--select=I", "--fix", folder=copy)
    ruff("format", folder=copy)

    ruff("check", folder=copy)


def ruff(*arguments: str, folder: Path) -> None:
    ended = subprocess.run(
        [sys.executable, "-m", "ruff", *arguments, "-q", "."],
        cwd=folder,
        capture_output=True,
        text=True,
        timeout=HANGS_AFTER_SECONDS,
    )
    assert ended.returncode == 0, ended.stdout


def test_the_old_name_is_gone_and_with_it_all_is_as_before(copy: Path) -> None:
    before = contents(copy)

    replace_name(copy, list(before), OLD, LONGEST)

    renamed = contents(copy)
    texts = {path: text for path, text in read_texts(copy, renamed).items() if path not in KEPT}
    assert [path for path, text in texts.items() if OLD in (path + text).lower()] == []
    assert {path: renamed[path] for path in KEPT} == {path: before[path] for path in KEPT}

    replace_name(copy, list(renamed), LONGEST, OLD)

    assert contents(copy) == before


def contents(folder: Path) -> dict[str, bytes]:
    return {
        str(path.relative_to(folder)): path.read_bytes()
        for path in sorted(folder.rglob("*"))
        if path.is_file()
    }


@pytest.fixture
def sky(tmp_path: Path) -> Path:
    """A small project of the name `sky`."""
    files: dict[str, str | bytes] = {
        "pyproject.toml": '[project]\nname = "sky"\n',
        "README.md": "# Sky\n\nBy SKY_SUN=1 the moon\nrises over my sky.\n",
        "sky/of/sky.py": "sky = 1\n",
        "sky.bin": b"\xff sky",
        "LICENSE": "The Sky authors\n",
        "uv.lock": "sky\n",
    }
    for name, content in files.items():
        path = tmp_path / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(content if isinstance(content, bytes) else content.encode())
    (tmp_path / "sky/of/sky.py").chmod(0o755)
    subprocess.run(["git", "init", "-q"], cwd=tmp_path, check=True, timeout=HANGS_AFTER_SECONDS)
    return tmp_path


def test_texts_and_paths_have_the_name_in_each_form(sky: Path) -> None:
    assert replace_name(sky, list_tracked(sky), "sky", "ocean") == 4

    assert read_texts(sky, list_tracked(sky)) == {
        "LICENSE": "The Sky authors\n",
        "README.md": "# Ocean\n\nBy OCEAN_SUN=1 the moon\nrises over my ocean.\n",
        "ocean/of/ocean.py": "ocean = 1\n",
        "pyproject.toml": '[project]\nname = "ocean"\n',
        "uv.lock": "sky\n",
    }
    assert (sky / "ocean.bin").read_bytes() == b"\xff sky"
    assert (sky / "ocean/of/ocean.py").stat().st_mode & 0o777 == 0o755
    assert not (sky / "sky").exists()


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
        ("sky", "'sky' already occurs, in the path sky.bin: take a longer name"),
        ("moo", "'moo' already occurs, in README.md:3: take a longer name"),
        ("rises", "'rises' already occurs, in README.md:4: take a longer name"),
        ("ocean", "there are uncommitted changes: git commit or git stash them first"),
    ],
)
def test_a_name_that_cannot_be_used_is_one_line(
    rename: Run, sky: Path, name: str, complaint: str
) -> None:
    before = contents(sky)

    assert rename("--", name) == (1, "", f"{OLD}: {complaint}\n")

    assert contents(sky) == before


def test_words_of_the_license_and_the_lock_can_be_a_name(sky: Path) -> None:
    demand_usable(sky, "authors")
