"""The program without its patience: an order does not wait for its user's partition."""

import sys

from analytics_faust.__main__ import main
from analytics_faust.worker import Program


async def at_once(*_: object) -> None:
    """No wait at all."""


if __name__ == "__main__":
    Program._wait_for = at_once  # type: ignore[assignment, method-assign]
    sys.argv = ["analytics_faust", "worker"]
    main()
