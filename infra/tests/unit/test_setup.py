"""scripts/setup.py with the wrong Python, without a registry, and with nothing to do."""

import ast
import os
import subprocess
import sys
from importlib.util import cache_from_source, find_spec
from pathlib import Path
from shutil import copyfile, copytree

from local_stack.settings import CHECKOUT
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
        "hometown: this is Python 3.9.2, which is too old: install 3.11 or newer, "
        "or choose one with `make setup PYTHON=python3.12`\n"
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
