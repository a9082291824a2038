"""Access of PostgreSQL to its data folder, and the reason when it cannot start."""

from pathlib import Path

import pytest

from fetching.errors import Failure
from local_stack import postgres
from local_stack.logs import find_named_error


def test_a_closed_folder_above_the_data_is_one_line(tmp_path: Path) -> None:
    closed = tmp_path / "closed"
    closed.mkdir(mode=0o700)
    with pytest.raises(Failure, match=rf"user nobody cannot enter {closed}: .* `chmod o\+x"):
        postgres.demand_access("nobody", closed / "run" / "postgres")


def test_open_folders_are_no_obstacle() -> None:
    postgres.demand_access("nobody", Path("/usr/bin"), Path("/usr/never/there"))


def test_the_reason_is_the_first_line_that_names_an_error() -> None:
    output = "running ...\ninitdb: error: could not write: No space left\ninitdb: removing"
    assert find_named_error(output.splitlines()) == "initdb: error: could not write: No space left"
    assert find_named_error(["nothing of the kind"]) == ""
