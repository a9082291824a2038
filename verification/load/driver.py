"""Runs a plan on schedule: each action begins when it is due, whether or not others are done."""

import asyncio
import time
from collections.abc import Sequence
from dataclasses import dataclass, field

from verification.load.actions import ListItem, PlaceOrder, Planned, RegisterUser, Repeat
from verification.load.calls import create_call
from verification.load.ids import ResourceIds, Unanswered
from verification.load.sender import Response, Sender

IN_FLIGHT_MAX = 2_000
"""More actions wait and count as begun late: the rate is too high for this machine."""
LATE_SECONDS = 0.25
"""An action that begins later than this after it was due was begun late."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Outcome:
    """The result of an action; times in seconds after it was due.

    `response` is None when there was none. `alike` is whether a repeat was answered as its
    original; None for all other actions, and for a repeat of a refused one, which is not sent: the
    service does not store refusals, so it would decide again.
    """

    planned: Planned
    begun_seconds: float
    answered_seconds: float
    response: Response | None
    alike: bool | None = None

    @property
    def was_begun_late(self) -> bool:
        return self.begun_seconds > LATE_SECONDS


@dataclass(slots=True)
class Run:
    """What has happened so far; `keys` begins every Idempotency-Key of this run."""

    keys: str
    ids: ResourceIds = field(default_factory=ResourceIds)
    outcomes: list[Outcome] = field(default_factory=list)
    requests: dict[int, Planned] = field(default_factory=dict)
    """Begun actions, by number."""
    first: dict[int, asyncio.Future[Response | None]] = field(default_factory=dict)
    """The responses to actions that can be repeated, by number."""


async def drive(run: Run, sender: Sender, planned: Sequence[Planned]) -> None:
    """Begin each action when it is due, counted from the first one, until all are answered."""
    slots = asyncio.Semaphore(IN_FLIGHT_MAX)

    async def one(action: Planned, due_at: float) -> None:
        try:
            run.outcomes.append(await act(run, sender, action, due_at))
        finally:
            slots.release()

    async with asyncio.TaskGroup() as tasks:
        origin = time.monotonic() - planned[0].due_seconds if planned else 0.0
        for action in planned:
            due_at = origin + action.due_seconds
            await asyncio.sleep(max(0.0, due_at - time.monotonic()))
            await slots.acquire()
            run.requests[action.number] = action
            run.first[action.number] = asyncio.get_running_loop().create_future()
            tasks.create_task(one(action, due_at))


async def act(run: Run, sender: Sender, planned: Planned, due_at: float) -> Outcome:
    """One action from its beginning to its answer."""
    begun_seconds = time.monotonic() - due_at
    alike = None
    try:
        if isinstance(planned.action, Repeat):
            response, alike = await repeat(run, sender, planned.action)
        else:
            response = await request(run, sender, planned)
    except Unanswered:
        response = None
    note(run, planned, response)
    return Outcome(
        planned=planned,
        begun_seconds=begun_seconds,
        answered_seconds=time.monotonic() - due_at,
        response=response,
        alike=alike,
    )


async def request(run: Run, sender: Sender, planned: Planned) -> Response:
    """Raises Unanswered."""
    assert not isinstance(planned.action, Repeat)
    call = await create_call(planned.action, run.ids)
    return await sender.send(call, f"{run.keys}/{planned.number}")


async def repeat(run: Run, sender: Sender, action: Repeat) -> tuple[Response | None, bool | None]:
    """The second answer, and whether it is the first one again.

    An order is repeated at once, like a double click; other actions once they are accepted.

    Raises:
        Unanswered: one of the two had no response.
    """
    original = run.requests[action.of]
    first = run.first[action.of]
    if not isinstance(original.action, PlaceOrder):
        answered = await asyncio.shield(first)
        if answered is None or not answered.is_accepted:
            return answered, None
    again = await request(run, sender, original)
    answered = await asyncio.shield(first)
    if answered is None:
        raise Unanswered(f"number {action.of}")
    return again, (again.status, again.body) == (answered.status, answered.body)


def note(run: Run, planned: Planned, response: Response | None) -> None:
    """Resolve the futures of actions that wait for this one."""
    run.first[planned.number].set_result(response)
    made = response.body if response is not None and response.is_accepted else {}
    match planned.action:
        case RegisterUser(user=number):
            run.ids.users.assign(number, made.get("user_id"))
        case ListItem(item=number):
            run.ids.items.assign(number, made.get("item_id"))
        case PlaceOrder(order=number):
            run.ids.orders.assign(number, made.get("order_id"))
        case _:
            pass
