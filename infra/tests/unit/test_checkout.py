"""A checkout can be used whatever the settings of git are."""

import subprocess
from pathlib import Path

import pytest

from local_stack.settings import CHECKOUT


@pytest.mark.skipif(not (CHECKOUT / ".git").exists(), reason="an archive of the source has no git")
def test_no_line_ends_in_crlf_where_git_converts_text(tmp_path: Path) -> None:
    clone = str(tmp_path / "clone")
    cloning = ["git", "-c", "core.autocrlf=true", "clone", "--quiet", str(CHECKOUT), clone]
    subprocess.run(cloning, check=True)
    listing = ["git", "-C", clone, "ls-files", "--eol"]

    listed = subprocess.run(listing, capture_output=True, text=True, check=True).stdout

    assert "w/lf" in listed
    assert [line for line in listed.splitlines() if "w/crlf" in line or "w/mixed" in line] == []
