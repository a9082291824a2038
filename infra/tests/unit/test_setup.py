"""scripts/setup.py with the wrong Python, without a registry, and with nothing to do."""

import ast
import os
import subprocess
import sys
from importlib.util import cache_from_source, find_spec
from pathlib import Path
from shutil import copyfile, copytree

import pytest
from pydantic import ValidationError

from fetching.settings import UNUSABLE
from local_stack.settings import CHECKOUT, Settings
from scripts import setup
from test_support.waits import HANGS_AFTER_SECONDS

SETUP = CHECKOUT / "scripts" / "setup.py"

PRETEND = """
import runpy, sys
sys.version_info = (3, 9, 2)
runpy.run_path({path!r}, run_name="__main__")
"""


def test_an_old_python_can_read_it() -> None:
    ast.parse(SETUP.read_text(), feature_version=(3, 6))


def test_an_old_python_is_one_line() -> None:
    result = subprocess.run(
        [sys.executable, "-c", PRETEND.format(path=str(SETUP))],
        capture_output=True,
        text=True,
        timeout=HANGS_AFTER_SECONDS,
    )
    assert result.returncode == 1
    assert result.stderr == (
        "hometown: this is Python 3.9.2, which is too old: install 3.11 or newer; "
        "where it has another name, write PYTHON=python3.12 into .env\n"
    )


def test_a_registry_out_of_reach_is_one_line_and_leaves_nothing_half_made(tmp_path: Path) -> None:
    for name in ("scripts/setup.py", "uv.lock", "pyproject.toml", "infra/src/fetching"):
        copy = tmp_path / name
        copy.parent.mkdir(parents=True, exist_ok=True)
        (copytree if (CHECKOUT / name).is_dir() else copyfile)(CHECKOUT / name, copy)
    nowhere = {"PIP_INDEX_URL": "http://127.0.0.1:9/simple", "PIP_RETRIES": "0"}

    result = subprocess.run(
        [sys.executable, tmp_path / "scripts" / "setup.py"],
        env={**os.environ, **nowhere, "PIP_NO_CACHE_DIR": "1", "PIP_FIND_LINKS": ""},
        capture_output=True,
        text=True,
        timeout=HANGS_AFTER_SECONDS,
    )

    assert result.returncode == 1
    assert result.stderr.startswith("hometown: cannot install uv")
    assert result.stderr.count("\n") == 1
    assert not (tmp_path / ".tools").exists()
    assert not (tmp_path / ".venv").exists()


def test_modules_that_are_never_imported_are_compiled_too() -> None:
    """Imported modules are compiled by then, where Python can write."""
    spec = find_spec("pandas")
    assert spec is not None
    assert spec.origin is not None
    module = Path(spec.origin).parent / "tests" / "test_take.py"
    assert module.exists()
    assert Path(cache_from_source(str(module))).exists()


ENSUREPIP = """The virtual environment was not created successfully because ensurepip is not
available.  On Debian/Ubuntu systems, you need to install the python3-venv
package using the following command.

    apt install python3.11-venv

You may need to use sudo with that command.
"""


@pytest.mark.parametrize(
    ("log", "remedy"),
    [
        (ENSUREPIP, "install the package python3.11-venv"),
        ("/usr/bin/python3: No module named venv", "install the package python3-venv"),
        ("ERROR: no matching distribution", "check the network and the disk"),
    ],
)
def test_a_python_without_venv_names_the_package(tmp_path: Path, log: str, remedy: str) -> None:
    file = tmp_path / "log"
    file.write_text(log)

    assert setup.find_remedy(file) == remedy


def test_a_python_without_venv_is_one_line(tmp_path: Path) -> None:
    copy = tmp_path / "scripts/setup.py"
    for name in ("scripts/setup.py", "uv.lock", "pyproject.toml"):
        (tmp_path / name).parent.mkdir(exist_ok=True)
        copyfile(CHECKOUT / name, tmp_path / name)
    # As Debian's Python, whose venv prints this instead of an error.
    (tmp_path / "venv.py").write_text(f"print({ENSUREPIP!r})\nraise SystemExit(1)\n")

    result = run(copy, PYTHONPATH=str(tmp_path))

    assert result.returncode == 1
    assert "install the package python3.11-venv, then `make setup`" in result.stderr
    assert result.stderr.count("\n") == 1


@pytest.mark.parametrize("character", ["%", "#", ";", ",", ":", '"', "$", "`", "\\", "\n"])
def test_a_path_that_a_program_cannot_use_is_refused_before_anything_is_made(
    tmp_path: Path, character: str
) -> None:
    folder = tmp_path / f"a{character}b"
    copy = folder / "scripts/setup.py"
    copy.parent.mkdir(parents=True)
    copyfile(SETUP, copy)

    result = run(copy)

    assert result.returncode == 1
    assert result.stderr.endswith(f" has {character!r} in it: move this checkout\n")
    assert sorted(folder.iterdir()) == [folder / "scripts"]


def test_a_checkout_that_was_moved_is_set_up_again(tmp_path: Path) -> None:
    """The packages of this project are installed as links to its folder."""
    printed = set()
    for folder in ("here", "there"):
        for name in ("scripts/setup.py", "uv.lock", "pyproject.toml"):
            (tmp_path / folder / name).parent.mkdir(parents=True, exist_ok=True)
            copyfile(CHECKOUT / name, tmp_path / folder / name)
        code = "import runpy; print(runpy.run_path('scripts/setup.py')['fingerprint']())"
        program = [sys.executable, "-c", code]
        printed.add(subprocess.check_output(program, cwd=tmp_path / folder))

    assert len(printed) == 2


def test_settings_refuse_the_same_paths(tmp_path: Path) -> None:
    assert setup.UNUSABLE.pattern == UNUSABLE.pattern
    for name in ("run_dir", "cache_dir"):
        with pytest.raises(ValidationError, match="choose another folder"):
            Settings.model_validate({name: tmp_path / "a:b"})


def run(script: Path, **variables: str) -> "subprocess.CompletedProcess[str]":
    return subprocess.run(
        [sys.executable, script],
        env={**os.environ, **variables},
        capture_output=True,
        text=True,
        timeout=HANGS_AFTER_SECONDS,
    )
