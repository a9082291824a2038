"""What tests of the site share."""

import subprocess
import sys
from pathlib import Path

import pytest

from scripts.changes import CHECKOUT

BUILD_SECONDS_MAX = 300


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder of a site that `make docs` builds."""
    folder = tmp_path_factory.mktemp("docs") / "site"
    ended = subprocess.run(
        [sys.executable, "-m", "scripts.documentation", "--to", folder],
        cwd=CHECKOUT,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        timeout=BUILD_SECONDS_MAX,
    )
    assert (ended.returncode, ended.stdout) == (0, f"open {folder}/index.html\n")
    return folder
