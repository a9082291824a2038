"""Cases of one mechanism: the first shows it in `make test`, the others in `make verify`."""

from collections.abc import Iterable
from typing import Any

import pytest


def first_and_long(cases: Iterable[Any], long: pytest.MarkDecorator) -> list[Any]:
    """Make a parameter of each case, or several of a tuple; all but the first have the mark."""
    return [
        pytest.param(*(case if isinstance(case, tuple) else (case,)), marks=long if number else ())
        for number, case in enumerate(cases)
    ]
