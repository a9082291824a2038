"""The program without its patience: an order does not wait for its user's partition."""

import sys

from analytics_faust.__main__ import main
from analytics_faust.join_barrier import JoinBarrier


async def at_once(*_: object) -> bool:
    return True


if __name__ == "__main__":
    JoinBarrier.wait = at_once  # type: ignore[assignment, method-assign]
    sys.argv = ["analytics_faust", "worker"]
    main()
