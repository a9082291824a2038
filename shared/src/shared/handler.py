"""From a command to recorded events: load, decide, append; decide again if somebody was first."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Generic, TypeVar
from uuid import UUID

from shared.decider import Decider
from shared.errors import VersionConflict
from shared.event_store import EventStore
from shared.messages import Answer, Consumed, IdempotencyKey, Metadata

C = TypeVar("C")
S = TypeVar("S")
E = TypeVar("E")

ATTEMPTS_MAX = 5
"""Decisions on one command before a conflict is given up; each lost race means another one won."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Outcome(Generic[S]):
    """What is true after a command: the state, and the version of its stream."""

    state: S
    version: int


@dataclass(frozen=True, slots=True, kw_only=True)
class RepeatableAnswer(Generic[S]):
    """The answer to store under an idempotency key, made of the outcome."""

    key: IdempotencyKey
    make: Callable[[Outcome[S]], Answer]


async def load(store: EventStore[E], decider: Decider[C, S, E], stream_id: UUID) -> Outcome[S]:
    """The current state of a stream; version 0 when it has no event."""
    recorded = await store.read(stream_id)
    state = decider.state_after([event.event for event in recorded])
    return Outcome(state=state, version=recorded[-1].version if recorded else 0)


async def handle(
    store: EventStore[E],
    decider: Decider[C, S, E],
    stream_id: UUID,
    command: C,
    *,
    metadata: Metadata,
    expected_version: int | None = None,
    answer: RepeatableAnswer[S] | None = None,
    consumed: Consumed | None = None,
) -> Outcome[S]:
    """Decide a command on the current state and record what follows, in one transaction.

    Without `expected_version` a lost race is decided again, at most ATTEMPTS_MAX times.

    Raises:
        Refused, NotFound: what `decide` raises; nothing was recorded.
        VersionConflict: the stream is not at `expected_version`, or too many races were lost.
        AlreadyConsumed, KeyUsed: this message or request had its effect before.
    """
    for attempt in range(1, ATTEMPTS_MAX + 1):
        before = await load(store, decider, stream_id)
        if expected_version not in (None, before.version):
            raise VersionConflict(stream_id, before.version)
        events = decider.decide(command, before.state)
        after = Outcome(
            state=decider.state_after(events, before.state), version=before.version + len(events)
        )
        if not events and consumed is None:
            return after
        try:
            await store.append(
                stream_id,
                before.version,
                events,
                metadata=metadata,
                key=answer.key if answer else None,
                answer=answer.make(after) if answer else None,
                consumed=consumed,
            )
        except VersionConflict:
            if expected_version is not None or attempt == ATTEMPTS_MAX:
                raise
        else:
            return after
    raise AssertionError("the last attempt returns or raises")
