"""From a command to recorded events: load, decide, append; again after a lost race."""

from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Generic, TypeVar
from uuid import UUID

from opentelemetry.trace import Span

from shared.eventsourcing.decider import Decider
from shared.eventsourcing.errors import Refused, UnexpectedVersion, VersionConflict
from shared.eventsourcing.event_store import CONFLICTS, GIVEN_UP, RETRIED, EventStore
from shared.eventsourcing.locked_streams import Append, LockedStreams
from shared.eventsourcing.recorded import Recorded
from shared.eventsourcing.state_cache import FoldedStream, count_values
from shared.messaging.messages import IdempotencyKey, Metadata, RecordedEvent, StoredResponse
from shared.runtime.postgres import Connection

C = TypeVar("C")
S = TypeVar("S")
E = TypeVar("E")
R = TypeVar("R")

ATTEMPTS_MAX = 5
"""Decisions on one command before a conflict is given up; each lost race means another one won."""

EVENTS_PER_PAGE = 5_000
"""Of a stream in one query and one fold: others wait for a tenth of a second at most."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Outcome(Generic[S]):
    """What is true after a command: the state, and the version of its stream."""

    state: S
    version: int


@dataclass(frozen=True, slots=True, kw_only=True)
class CausedCommand(Generic[C]):
    """A command on a stream that follows from a message, with the span of its processing."""

    stream_id: UUID
    command: C
    metadata: Metadata
    span: Span


async def load(store: EventStore[E], decider: Decider[C, S, E], stream_id: UUID) -> Outcome[S]:
    """The current state of a stream; version 0 when it has no event.

    Of a long stream only those events are folded that are newer than the cached state. A very long
    one is folded page by page: a load that fails is continued by the next one.
    """
    folded = store.states.find(stream_id)
    while True:
        first_version = 1 if folded is None else folded.version
        page = await store.read(stream_id, first_version, EVENTS_PER_PAGE)
        if folded is not None and not (page and page[0].event_id == folded.event_id):
            folded = None  # its last event was rolled back
            continue
        if not page:
            return initial_outcome(decider)
        folded = fold(decider, page, folded)
        store.states.keep(stream_id, folded)
        if len(page) < EVENTS_PER_PAGE:
            return Outcome(state=folded.state, version=folded.version)


def fold(
    decider: Decider[C, S, E], page: Sequence[RecordedEvent[E]], folded: FoldedStream | None
) -> FoldedStream:
    """The state after a page, which begins with the last event that is folded already, if any."""
    events = [each.event for each in (page if folded is None else page[1:])]
    state = decider.state_after(events, None if folded is None else folded.state)
    return to_folded(decider, Outcome(state=state, version=page[-1].version), page[-1].event_id)


def to_folded(decider: Decider[C, S, E], outcome: Outcome[S], event_id: UUID) -> FoldedStream:
    """A state to keep, whose last event is `event_id`."""
    return FoldedStream(
        state=outcome.state,
        version=outcome.version,
        event_id=event_id,
        values=count_values(decider, outcome.state),
    )


def initial_outcome(decider: Decider[C, S, E]) -> Outcome[S]:
    """A stream before its first event."""
    return Outcome(state=decider.initial, version=0)


def is_any_version(version: int) -> bool:
    """Whatever version a stream has is expected."""
    return True


async def handle(
    store: EventStore[E],
    decider: Decider[C, S, E],
    stream_id: UUID,
    command: C,
    *,
    metadata: Metadata,
    is_expected: Callable[[int], bool] = is_any_version,
    is_new: bool = False,
) -> Outcome[S]:
    """Decide a command on the current state and record what follows.

    A lost race is decided again, at most ATTEMPTS_MAX times. A stream that `is_new`, because its
    id was just made, is not read first: the append checks it. `is_expected` says of a version,
    0 before the first event, whether the command was meant for it.

    Raises:
        Refused, NotFound: what `decide` raises; nothing was recorded.
        UnexpectedVersion: the stream has another version.
        VersionConflict: too many races were lost.
    """

    async def decide_and_append(before: Outcome[S]) -> Outcome[S]:
        events, after = decide_expected(decider, command, before, is_expected)
        if events:
            await store.append(stream_id, before.version, events, metadata=metadata)
        return after

    return await attempt(store, decider, stream_id, decide_and_append, is_new)


async def handle_request(
    store: EventStore[E],
    decider: Decider[C, S, E],
    stream_id: UUID,
    command: C,
    make_response: Callable[[Outcome[S]], StoredResponse],
    *,
    metadata: Metadata,
    key: IdempotencyKey | None = None,
    is_expected: Callable[[int], bool] = is_any_version,
    is_new: bool = False,
    read_versions: Mapping[UUID, int] | None = None,
) -> StoredResponse:
    """`handle` for a request: its response, which is stored with the events under `key`, if any.

    `read_versions` are the versions of other streams that the command was made of.

    Raises:
        Refused, NotFound, UnexpectedVersion, VersionConflict: as `handle`.
        StaleRead: one of `read_versions` has another version.
        KeyUsed: a request with this idempotency key was recorded before.
    """

    async def decide_and_append(before: Outcome[S]) -> StoredResponse:
        events, after = decide_expected(decider, command, before, is_expected)
        response = make_response(after)
        if events or key:
            await store.append(
                stream_id,
                before.version,
                events,
                metadata=metadata,
                key=key,
                answer=response,
                read_versions=read_versions,
            )
        return response

    return await attempt(store, decider, stream_id, decide_and_append, is_new)


async def attempt(
    store: EventStore[E],
    decider: Decider[C, S, E],
    stream_id: UUID,
    decide_and_append: Callable[[Outcome[S]], Awaitable[R]],
    is_new: bool,
) -> R:
    """Decide on the current state of a stream, and again when another writer was first."""
    for number in range(1, ATTEMPTS_MAX + 1):
        guessed = is_new and number == 1
        before = initial_outcome(decider) if guessed else await load(store, decider, stream_id)
        try:
            return await decide_and_append(before)
        except VersionConflict:
            if number == ATTEMPTS_MAX:
                CONFLICTS.add(1, store.category, GIVEN_UP)
                raise
            CONFLICTS.add(1, store.category, RETRIED)
    raise AssertionError("the last attempt returns or raises")


async def react(
    store: EventStore[E],
    decider: Decider[C, S, E],
    connection: Connection,
    caused: Sequence[CausedCommand[C]],
) -> Sequence[Recorded]:
    """Decide on commands in their order; return the events that were recorded.

    The transaction of `connection` is that which consumes the messages: all streams are
    locked, read and appended to in it with one statement each. That nothing is to be done is a
    decision which holds for the version that it was made on, too.

    Raises:
        Refused, NotFound: what `decide` raises.
        VersionConflict: another writer has begun one of the streams meanwhile.
    """
    stream_ids = [each.stream_id for each in caused]
    streams = await LockedStreams.lock(store, connection, stream_ids)
    outcomes, appends = await load_locked(streams, decider), list[Append[E]]()
    for each in caused:
        before = outcomes[each.stream_id]
        events, outcomes[each.stream_id] = decide_and_evolve(decider, each.command, before)
        appends.append(
            Append(
                stream_id=each.stream_id,
                expected_version=before.version,
                events=events,
                metadata=each.metadata,
                span=each.span,
            )
        )
    recorded = await streams.append(appends)
    last_ids = {each.stream_id: each.event_id for each in recorded}
    for stream_id, event_id in last_ids.items():
        store.states.keep(stream_id, to_folded(decider, outcomes[stream_id], event_id))
    return recorded


async def load_locked(
    streams: LockedStreams[E], decider: Decider[C, S, E]
) -> dict[UUID, Outcome[S]]:
    """The current states of locked streams."""
    outcomes = dict.fromkeys(streams.stream_ids, initial_outcome(decider))
    versions = {stream_id: head.version for stream_id, head in streams.heads.items()}
    bound = streams.store.within(streams.connection)
    return outcomes | await load_versions(bound, decider, versions)


async def load_many(
    store: EventStore[E], decider: Decider[C, S, E], stream_ids: Iterable[UUID]
) -> dict[UUID, Outcome[S]]:
    """`load` for several streams, with two queries for those that are not very long."""
    stream_ids = list(stream_ids)
    outcomes = dict.fromkeys(stream_ids, initial_outcome(decider))
    return outcomes | await load_versions(store, decider, await store.find_versions(stream_ids))


async def load_versions(
    store: EventStore[E], decider: Decider[C, S, E], versions: Mapping[UUID, int]
) -> dict[UUID, Outcome[S]]:
    """The states of streams that have at least these versions."""
    cached = {stream_id: store.states.find(stream_id) for stream_id in versions}
    first_versions = {each: folded.version if folded else 1 for each, folded in cached.items()}
    pages = await store.read_from(
        {
            each: first
            for each, first in first_versions.items()
            if versions[each] - first < EVENTS_PER_PAGE
        }
    )
    outcomes = {}
    for stream_id, folded in cached.items():
        page = pages.get(stream_id)
        if page and (folded is None or page[0].event_id == folded.event_id):
            folded = fold(decider, page, folded)
            store.states.keep(stream_id, folded)
            outcomes[stream_id] = Outcome(state=folded.state, version=folded.version)
        else:
            outcomes[stream_id] = await load(store, decider, stream_id)
    return outcomes


def decide_expected(
    decider: Decider[C, S, E],
    command: C,
    before: Outcome[S],
    is_expected: Callable[[int], bool],
) -> tuple[Sequence[E], Outcome[S]]:
    """`decide_and_evolve` for a version that is expected.

    That there is no such thing is said first; any other refusal could be due to what has changed.

    Raises:
        Refused, NotFound: what `decide` raises.
        UnexpectedVersion: the version is not expected.
    """
    expected = is_expected(before.version)
    try:
        decided = decide_and_evolve(decider, command, before)
    except Refused:
        if expected:
            raise
    else:
        if expected:
            return decided
    raise UnexpectedVersion(before.version)


def decide_and_evolve(
    decider: Decider[C, S, E], command: C, before: Outcome[S]
) -> tuple[Sequence[E], Outcome[S]]:
    """The events that a command leads to, and what is true after them."""
    events = decider.decide(command, before.state)
    state = decider.state_after(events, before.state)
    return events, Outcome(state=state, version=before.version + len(events))
