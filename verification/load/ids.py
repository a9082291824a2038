"""The ids that the services assign, by the numbers of a plan; an action can wait for an id."""

import asyncio
from collections import defaultdict

WAIT_SECONDS_MAX = 300
"""For a resource to be created; longer than its own request is retried."""


class Unanswered(Exception):
    """A request had no response in time, so its effect is unknown."""


class Ids:
    """Ids of one kind of resource. The plan creates each before another action needs it."""

    def __init__(self) -> None:
        self._futures: dict[int, asyncio.Future[str | None]] = defaultdict(asyncio.Future)

    def assign(self, number: int, id_: str | None) -> None:
        """`id_` is None when the resource was not created and will not be."""
        self._futures[number].set_result(id_)

    async def get(self, number: int) -> str:
        """Wait for an id. Raises Unanswered when there will not be one."""
        try:
            async with asyncio.timeout(WAIT_SECONDS_MAX):
                id_ = await asyncio.shield(self._futures[number])
        except TimeoutError:
            id_ = None
        if id_ is None:
            raise Unanswered(f"number {number} was never created")
        return id_

    @property
    def known(self) -> dict[int, str]:
        """All ids known so far."""
        done = {number: future for number, future in self._futures.items() if future.done()}
        return {number: id_ for number, future in done.items() if (id_ := future.result())}


class ResourceIds:
    """The ids of users, items and orders."""

    def __init__(self) -> None:
        self.users = Ids()
        self.items = Ids()
        self.orders = Ids()
