"""The ids that the services give, by the numbers of a plan; who needs one may wait for it."""

import asyncio
from collections import defaultdict

WAIT_SECONDS_MAX = 300
"""For something to be made; longer than its own request is sent again and again."""


class Unanswered(Exception):
    """A request had no answer within its time, so nobody knows what it did."""


class Ids:
    """Of one kind of things. What is waited for is always asked for earlier in the plan."""

    def __init__(self) -> None:
        self._futures: dict[int, asyncio.Future[str | None]] = defaultdict(asyncio.Future)

    def give(self, number: int, id_: str | None) -> None:
        """None: there is none, and there will not be one."""
        self._futures[number].set_result(id_)

    async def id_of(self, number: int) -> str:
        """Raises Unanswered when there will not be one."""
        try:
            async with asyncio.timeout(WAIT_SECONDS_MAX):
                id_ = await asyncio.shield(self._futures[number])
        except TimeoutError:
            id_ = None
        if id_ is None:
            raise Unanswered(f"number {number} was never made")
        return id_

    @property
    def known(self) -> dict[int, str]:
        """All ids there are by now."""
        done = {number: future for number, future in self._futures.items() if future.done()}
        return {number: id_ for number, future in done.items() if (id_ := future.result())}


class Names:
    """The ids of users, items and orders."""

    def __init__(self) -> None:
        self.users = Ids()
        self.items = Ids()
        self.orders = Ids()
