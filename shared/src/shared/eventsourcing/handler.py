"""From a command to recorded events: load, decide, append; decide again if somebody was first."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Generic, TypeVar
from uuid import UUID

from shared.eventsourcing.decider import Decider
from shared.eventsourcing.errors import VersionConflict
from shared.eventsourcing.event_store import EventStore
from shared.messaging.messages import IdempotencyKey, Metadata, StoredResponse

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
    make: Callable[[Outcome[S]], StoredResponse]


async def load(store: EventStore[E], decider: Decider[C, S, E], stream_id: UUID) -> Outcome[S]:
    """The current state of a stream; version 0 when it has no event."""
    recorded = await store.read(stream_id)
    state = decider.state_after([event.event for event in recorded])
    return Outcome(state=state, version=recorded[-1].version if recorded else 0)


def initial_outcome(decider: Decider[C, S, E]) -> Outcome[S]:
    """A stream before its first event."""
    return Outcome(state=decider.initial, version=0)


async def handle(
    store: EventStore[E],
    decider: Decider[C, S, E],
    stream_id: UUID,
    command: C,
    *,
    metadata: Metadata,
    expected_version: int | None = None,
    answer: RepeatableAnswer[S] | None = None,
    is_new: bool = False,
    read_versions: Mapping[UUID, int] | None = None,
) -> Outcome[S]:
    """Decide a command on the current state and record what follows.

    Without `expected_version` a lost race is decided again, at most ATTEMPTS_MAX times. A stream
    that `is_new`, because its id was just made, is not looked for first: the append would see.
    `read_versions` are the versions of other streams that the command was made of.

    Raises:
        Refused, NotFound: what `decide` raises; nothing was recorded.
        VersionConflict: the stream is not at `expected_version`, or too many races were lost.
        StaleRead: one of `read_versions` has another version.
        KeyUsed: a request under this idempotency key was answered before.
    """
    for attempt in range(1, ATTEMPTS_MAX + 1):
        guessed = is_new and attempt == 1
        before = initial_outcome(decider) if guessed else await load(store, decider, stream_id)
        if expected_version not in (None, before.version):
            raise VersionConflict(stream_id, before.version)
        events, after = decided(decider, command, before)
        if not events and answer is None:
            return after
        try:
            await store.append(
                stream_id,
                before.version,
                events,
                metadata=metadata,
                key=answer.key if answer else None,
                answer=answer.make(after) if answer else None,
                read_versions=read_versions,
            )
        except VersionConflict:
            if expected_version is not None or attempt == ATTEMPTS_MAX:
                raise
        else:
            return after
    raise AssertionError("the last attempt returns or raises")


async def react(
    store: EventStore[E],
    decider: Decider[C, S, E],
    stream_id: UUID,
    command: C,
    *,
    metadata: Metadata,
) -> Outcome[S]:
    """`handle` for a message, with the store inside the transaction that consumes it.

    One attempt: after a lost race the transaction is lost as well, and the consumer takes the
    message again. That nothing is to be done is a decision which the append confirms, too.

    Raises:
        Refused, NotFound: what `decide` raises.
        VersionConflict: somebody else wrote to the stream meanwhile.
    """
    before = await load(store, decider, stream_id)
    events, after = decided(decider, command, before)
    await store.append(stream_id, before.version, events, metadata=metadata)
    return after


def decided(
    decider: Decider[C, S, E], command: C, before: Outcome[S]
) -> tuple[Sequence[E], Outcome[S]]:
    """The events that a command leads to, and what is true after them."""
    events = decider.decide(command, before.state)
    state = decider.state_after(events, before.state)
    return events, Outcome(state=state, version=before.version + len(events))
