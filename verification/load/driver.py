"""Runs a plan by the clock: each action begins when it is due, whether or not others are done."""

import asyncio
import time
from collections.abc import Sequence
from dataclasses import dataclass, field

from verification.load.actions import ListItem, PlaceOrder, Planned, RegisterUser, Repeat
from verification.load.calls import call_of
from verification.load.names import Names, Unanswered
from verification.load.sender import Answer, Sender

IN_FLIGHT_MAX = 2_000
"""Others wait to be begun, and are counted as begun late: the rate is beyond this machine then."""
LATE_SECONDS = 0.25
"""Who begins later than this after it was due was begun late."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Outcome:
    """What became of an action; times in seconds after it was due.

    `answer` is None when there was none. `alike` says of a repeat whether it was answered as its
    original; None for all others, and for a repeat of what was refused, which is not sent: the
    service keeps no refusals, so it would be asked anew.
    """

    planned: Planned
    begun_seconds: float
    answered_seconds: float
    answer: Answer | None
    alike: bool | None = None

    @property
    def was_begun_late(self) -> bool:
        return self.begun_seconds > LATE_SECONDS


@dataclass(slots=True)
class Run:
    """What has happened so far; `keys` begins every Idempotency-Key of this run."""

    keys: str
    names: Names = field(default_factory=Names)
    outcomes: list[Outcome] = field(default_factory=list)
    requests: dict[int, Planned] = field(default_factory=dict)
    """What was begun, by number."""
    first: dict[int, asyncio.Future[Answer | None]] = field(default_factory=dict)
    """The answers to what may be repeated, by number."""


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
            answer, alike = await repeat(run, sender, planned.action)
        else:
            answer = await request(run, sender, planned)
    except Unanswered:
        answer = None
    note(run, planned, answer)
    return Outcome(
        planned=planned,
        begun_seconds=begun_seconds,
        answered_seconds=time.monotonic() - due_at,
        answer=answer,
        alike=alike,
    )


async def request(run: Run, sender: Sender, planned: Planned) -> Answer:
    """Raises Unanswered."""
    assert not isinstance(planned.action, Repeat)
    call = await call_of(planned.action, run.names)
    return await sender.send(call, f"{run.keys}/{planned.number}")


async def repeat(run: Run, sender: Sender, action: Repeat) -> tuple[Answer | None, bool | None]:
    """The second answer, and whether it is the first one again.

    An order is repeated at once, as by a double click; everything else once it is accepted.

    Raises:
        Unanswered: one of the two had no answer.
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


def note(run: Run, planned: Planned, answer: Answer | None) -> None:
    """Tell those who wait for this action."""
    run.first[planned.number].set_result(answer)
    made = answer.body if answer is not None and answer.is_accepted else {}
    match planned.action:
        case RegisterUser(user=number):
            run.names.users.give(number, made.get("user_id"))
        case ListItem(item=number):
            run.names.items.give(number, made.get("item_id"))
        case PlaceOrder(order=number):
            run.names.orders.give(number, made.get("order_id"))
        case _:
            pass
