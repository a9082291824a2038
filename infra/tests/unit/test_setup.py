"""scripts/setup.py as people meet it who have the wrong Python, or nothing to do."""

import ast
import subprocess
import sys

from embedded.settings import CHECKOUT

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
        timeout=30,
    )
    assert result.returncode == 1
    assert result.stderr == (
        "hometown: this is Python 3.9.2, which is too old: install 3.11 or newer, "
        "or say which one with `make setup PYTHON=python3.12`\n"
    )
