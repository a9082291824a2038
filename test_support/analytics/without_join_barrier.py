"""The program without its join barrier: an order does not wait for its user's partition."""

import sys

from analytics_faust.__main__ import main
from analytics_faust.join_barrier import JoinBarrier


async def do_not_wait(*_: object) -> bool:
    return True


if __name__ == "__main__":
    JoinBarrier.wait = do_not_wait  # type: ignore[assignment, method-assign]
    sys.argv = ["analytics_faust", "worker"]
    main()
