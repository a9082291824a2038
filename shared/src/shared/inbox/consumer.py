"""What happens to records that a worker reads: they are applied, wait, or become dead letters.

A batch is one transaction: the effects of its messages, and the versions of their streams. No
exception leaves `take` while the process works, but that the database was restored: a record that
was not consumed must not be acknowledged, nor any that comes after it.
"""

import asyncio
import logging
import time
from collections import defaultdict
from collections.abc import (
    AsyncIterator,
    Awaitable,
    Callable,
    Collection,
    Iterable,
    Iterator,
    Mapping,
    Sequence,
)
from contextlib import ExitStack, asynccontextmanager, contextmanager
from dataclasses import dataclass
from functools import partial
from typing import NamedTuple, TypeVar
from uuid import UUID

import asyncpg
from aiokafka.errors import KafkaError
from opentelemetry.trace import Span, SpanKind

from shared.eventsourcing.decider import Decider
from shared.eventsourcing.errors import VersionConflict
from shared.eventsourcing.event_store import EventStore
from shared.eventsourcing.handler import CausedCommand, react
from shared.eventsourcing.recorded import Recorded
from shared.inbox import dead_letters, parked
from shared.inbox.inbox import (
    ConsumedElsewhere,
    Gap,
    Inbox,
    Next,
    OtherHistory,
    Repeated,
    Waiting,
)
from shared.inbox.outcomes import MESSAGES, Effects, Outcomes, expose_zeros, log_parked, to_fields
from shared.messaging.messages import Message
from shared.messaging.records import IncomingRecord, Malformed, parse_message
from shared.messaging.topics import TOPICS
from shared.messaging.wire import OutgoingRecord
from shared.projections.read_models import Projection, ReadModel
from shared.runtime import failpoints, metrics, postgres, telemetry
from shared.runtime.failpoints import Failpoint
from shared.runtime.logs import because
from shared.runtime.postgres import Connection, Restored, RestoredGuard
from shared.runtime.relay_notifier import RelayNotifier

C = TypeVar("C")
S = TypeVar("S")
E = TypeVar("E")

log = logging.getLogger(__name__)

BACKOFF_SECONDS_FIRST = 0.05
BACKOFF_SECONDS_MAX = 5.0
REASON_CHARACTERS_MAX = 1000
LETTERS_PER_WRITE_MAX = 50
"""Each can have a megabyte, and a write has little time."""

BATCH_DURATION = metrics.Histogram(
    "hometown.inbox.batch.duration", "s", "Time of a batch's transaction, with its commit"
)
BATCH_SIZE = metrics.Histogram(
    "hometown.inbox.batch.size", "{message}", "Messages in a batch", bounds=metrics.SIZES
)
RETRIES = metrics.Counter(
    "hometown.inbox.retries",
    "{retry}",
    "Attempts at a batch, a dead letter or parking that failed and are made again",
)

FAULTS_OF_THE_RECORD = (
    asyncpg.DataError,
    asyncpg.IntegrityConstraintViolationError,
    asyncpg.ProgramLimitExceededError,  # such as a text that is too long for an index
)
"""What PostgreSQL refuses because of the values themselves, now and later."""

TRANSIENT = (
    *postgres.UNAVAILABLE,
    asyncpg.PostgresError,
    KafkaError,
    VersionConflict,
    ConsumedElsewhere,
)
"""Errors that another attempt may not meet, unless they are FAULTS_OF_THE_RECORD."""


@dataclass(frozen=True, slots=True)
class Delivery:
    """A message in the hands of a worker, and the span of its processing."""

    message: Message
    span: Span

    def cause(self, stream_id: UUID, command: C) -> CausedCommand[C]:
        """A command on a stream that follows from the message."""
        return CausedCommand(
            stream_id=stream_id, command=command, metadata=self.message.metadata, span=self.span
        )


Reaction = Callable[[Connection, Sequence[Delivery]], Awaitable[Sequence[Recorded] | None]]
"""Applies messages in their order, inside the transaction that consumes them.

Of events that it records, the relay is notified after the commit.
"""

Reactions = Mapping[str, Mapping[str, Sequence[Reaction]]]
"""By topic and message type."""

Commands = Mapping[str, Mapping[str, Callable[[Delivery], CausedCommand[C]]]]
"""By topic and message type, what makes a message the command to which it leads."""

DeadLetterWriter = Callable[[Sequence[OutgoingRecord]], Awaitable[None]]
"""Writes dead letters, and returns when they are acknowledged."""

ReadRecord = tuple[IncomingRecord, Message]


class Refusal(NamedTuple):
    """A record that becomes a dead letter, and the message in it, if it has one."""

    record: IncomingRecord
    reason: str
    message: Message | None = None


OnApplied = Callable[[Sequence[Message]], None]
"""Is called with the messages that were applied, after their commit. It must not raise: the batch
would be tried again, and its messages be taken for repeats."""


def ignore(messages: Sequence[Message]) -> None:
    """Most consumers have nothing to do after a commit."""


def is_transient(error: Exception) -> bool:
    """Whether another attempt can succeed; any other error is the record's own fault, or a bug's.

    What PostgreSQL refuses is assumed to be its own state, such as a server that is read-only or
    accepts no login: a record that waits is applied later, one that is parked needs an operator.
    """
    return isinstance(error, TRANSIENT) and not isinstance(error, FAULTS_OF_THE_RECORD)


def may_pass(error: Exception) -> bool:
    """Almost every error is tried again, since going on would lose the record; in a restored
    database, no attempt can succeed."""
    return not isinstance(error, Restored)


class Consumer:
    """One reader of topics. `reactions` are the message types that it handles.

    `relay_notifier` notifies after a commit of new events, and `on_applied` is called after each.
    """

    def __init__(
        self,
        name: str,
        pool: asyncpg.Pool,
        reactions: Reactions,
        write_dead_letters: DeadLetterWriter,
        relay_notifier: RelayNotifier,
        on_applied: OnApplied = ignore,
    ) -> None:
        self.name = name
        self.relay_notifier = relay_notifier
        self._pool = pool
        self._reactions = reactions
        self._write_dead_letters = write_dead_letters
        self._obstacles: dict[object, str] = {}
        self._restored = RestoredGuard()
        self._on_applied = on_applied
        expose_zeros(self.topics)

    @property
    def topics(self) -> list[str]:
        return list(self._reactions)

    @property
    def handled_types(self) -> Mapping[str, Collection[str]]:
        """The message types that have a reaction, by topic."""
        return {topic: by_type.keys() for topic, by_type in self._reactions.items()}

    @property
    def obstacle(self) -> str | None:
        """The error that keeps a batch from being consumed now; None without one."""
        return "; ".join(self._obstacles.values()) or None

    async def refuse_restored(self) -> None:
        """Raises Restored: the committed offsets are of a later moment than the database."""
        async with self._pool.acquire() as connection:
            await postgres.refuse_restored(connection)

    @asynccontextmanager
    async def _transaction(self) -> AsyncIterator[Connection]:
        """A transaction of the database that the committed offsets belong to.

        Raises:
            Restored: while this process runs, the database was restored to an older moment.
        """
        async with self._pool.acquire() as connection:
            await self._restored.check(connection)
            async with connection.transaction():
                yield connection

    async def take(self, records: Sequence[IncomingRecord]) -> None:
        """Consume records in their order, however often that has to be tried.

        Raises:
            Restored: the database is of an older moment than the records; nothing was done.
        """
        failpoints.hit(Failpoint.RECORDS_TAKEN_IN_HAND)
        batch, refusals = self._read(records)
        await self._send_dead_letters(refusals)
        if batch:
            await self._take(batch)

    def _read(self, records: Iterable[IncomingRecord]) -> tuple[list[ReadRecord], list[Refusal]]:
        """Records with their messages, and those that become dead letters.

        One of an undeclared type is among both: it stays a version of its stream.
        """
        batch: list[ReadRecord] = []
        refusals: list[Refusal] = []
        for record in records:
            try:
                message = parse_message(record)
            except Malformed as error:
                refusals.append(Refusal(record, f"malformed: {error}"))
                continue
            if not self._is_known(message):
                refusals.append(Refusal(record, f"unknown type: {message.type}", message))
            batch.append((record, message))
        return batch, refusals

    def _is_known(self, message: Message) -> bool:
        declared, wanted = TOPICS[message.topic].types, self._reactions[message.topic]
        return message.type in declared or message.type in wanted

    async def _take(self, batch: Sequence[ReadRecord]) -> None:
        """Consume a batch as a whole; if that fails for good, one by one, to find the poison."""
        try:
            await self._until_done(partial(self._commit, batch), "taking messages")
        except Restored:
            raise
        except Exception as error:
            if len(batch) == 1:
                [(record, message)] = batch
                about = {"consumer": self.name, **to_fields(message)}
                log.exception("a message cannot be taken", extra=about)
                await self._give_up(record, message, to_reason(error))
            else:
                for pair in batch:
                    await self._take([pair])

    async def _commit(self, batch: Sequence[ReadRecord]) -> None:
        """One attempt at a batch, in one transaction."""
        outcomes = Outcomes()
        began_at = time.perf_counter()
        async with self._transaction() as connection:
            await self._consume(connection, batch, outcomes)
            failpoints.hit(Failpoint.EFFECTS_WRITTEN)
        failpoints.hit(Failpoint.EFFECTS_COMMITTED)
        seconds = time.perf_counter() - began_at
        if outcomes.effects.recorded:
            self.relay_notifier.notify()
        BATCH_DURATION.record(seconds)
        BATCH_SIZE.record(len(batch))
        outcomes.report(self.name, seconds)
        self._on_applied(outcomes.applied)

    async def _consume(
        self, connection: Connection, batch: Sequence[ReadRecord], outcomes: Outcomes
    ) -> None:
        inbox = await Inbox.open(connection, self.name, [message for _, message in batch])
        for record, message in batch:
            match inbox.verdict(message):
                case Repeated():
                    outcomes.add(message, "repeated")
                    self._mark_repeated(message)
                case Waiting():
                    outcomes.add(message, "waiting")
                    await inbox.add_waiting(record, message)
                case Gap(reason=reason) | OtherHistory(reason=reason):
                    outcomes.add_parked(message, reason)
                    await inbox.park(record, message, reason)
                case Next():
                    outcomes.add(message, "applied")
                    inbox.mark_consumed(message)
        outcomes.effects = await self.react(connection, outcomes.applied)
        await inbox.write_versions()

    async def react(self, connection: Connection, messages: Sequence[Message]) -> Effects:
        """Apply messages in the caller's transaction; return what that did.

        Each reaction takes all of its messages at once, in their order. A type without reaction
        does nothing.

        Raises:
            UnknownSchemaVersion: a reaction does not understand a version.
            Exception: whatever else a reaction raises.
        """
        deliveries: dict[Reaction, list[Delivery]] = {}
        spans: dict[UUID, Span] = {}
        recorded: list[Recorded] = []
        with ExitStack() as open_spans:
            for message in messages:
                reactions = self._reactions[message.topic].get(message.type)
                if not reactions:
                    continue
                span = open_spans.enter_context(self._span(message))
                spans[message.event_id] = span
                for reaction in reactions:
                    deliveries.setdefault(reaction, []).append(Delivery(message, span))
            for reaction, its in deliveries.items():
                recorded += await reaction(connection, its) or ()
        return Effects(recorded, spans)

    def _mark_repeated(self, message: Message) -> None:
        if message.type in self._reactions[message.topic]:
            with self._span(message) as span:
                span.set_attribute("app.duplicate", True)

    @contextmanager
    def _span(self, message: Message) -> Iterator[Span]:
        name = f"process {message.topic}"
        with telemetry.span_after(message.traceparent, name, SpanKind.CONSUMER) as span:
            if span.is_recording():
                span.set_attributes(self._attributes(message))
            yield span

    def _attributes(self, message: Message) -> dict[str, str | int]:
        return {
            telemetry.MESSAGING_SYSTEM: "kafka",
            telemetry.MESSAGING_OPERATION_NAME: "process",
            telemetry.MESSAGING_OPERATION_TYPE: "process",
            telemetry.MESSAGING_DESTINATION: message.topic,
            telemetry.MESSAGING_PARTITION: str(message.partition),
            telemetry.MESSAGING_OFFSET: message.offset,
            telemetry.MESSAGING_KEY: message.key,
            telemetry.MESSAGING_MESSAGE_ID: str(message.event_id),
            telemetry.MESSAGING_CONSUMER_GROUP: self.name,
            telemetry.EVENT_TYPE: message.type,
            telemetry.STREAM_ID: str(message.stream_id),
            telemetry.STREAM_VERSION: message.stream_version,
        }

    async def _give_up(self, record: IncomingRecord, message: Message, reason: str) -> None:
        """Write a poisonous message as a dead letter, and park its stream.

        A crash in between is harmless: the message is delivered again, and has a second letter.
        """
        await self._send_dead_letters([Refusal(record, reason, message)])
        await self._until_done(
            partial(self._park, record, message, reason),
            "parking a stream",
            is_retried=may_pass,
        )
        failpoints.hit(Failpoint.STREAM_PARKED)

    async def _park(self, record: IncomingRecord, message: Message, reason: str) -> None:
        async with self._transaction() as connection:
            await parked.park(connection, self.name, record, message, reason)
        MESSAGES.add(1, message.topic, "parked")
        log_parked(self.name, message, to_class(reason))

    async def _send_dead_letters(self, refusals: Sequence[Refusal]) -> None:
        """While a letter cannot be written, nothing continues: its record would be lost."""
        for first in range(0, len(refusals), LETTERS_PER_WRITE_MAX):
            page = refusals[first : first + LETTERS_PER_WRITE_MAX]
            letters = [
                dead_letters.to_dead_letter(each.record, self.name, each.reason) for each in page
            ]
            await self._until_done(
                partial(self._write_dead_letters, letters),
                "writing dead letters",
                is_retried=may_pass,
            )
            failpoints.hit(Failpoint.DEAD_LETTER_WRITTEN)
            for each in page:
                MESSAGES.add(1, each.record.topic, "dead-letter")
                about = {"consumer": self.name, **name_record(each)}
                log.error("a record is a dead letter: %s", to_class(each.reason), extra=about)

    async def _until_done(
        self,
        attempt: Callable[[], Awaitable[None]],
        what: str,
        is_retried: Callable[[Exception], bool] = is_transient,
    ) -> None:
        """Try until it works or fails for good; the pause doubles up to BACKOFF_SECONDS_MAX.

        There is no last attempt: going on without would lose the record or break its order.
        """
        pause, this = BACKOFF_SECONDS_FIRST, object()
        try:
            while True:
                try:
                    return await attempt()
                except Exception as error:
                    if not is_retried(error):
                        raise
                    RETRIES.add(1)
                    self._obstacles[this] = f"{what}: {to_reason(error)}"
                    log.warning("%s fails, and is tried again", what, extra=because(error))
                await asyncio.sleep(pause)
                pause = min(2 * pause, BACKOFF_SECONDS_MAX)
        finally:
            self._obstacles.pop(this, None)


def name_record(refusal: Refusal) -> dict[str, object]:
    """Name a record in a line of the log."""
    if refusal.message is not None:
        return to_fields(refusal.message)
    record = refusal.record
    return {"topic": record.topic, "partition": record.partition, "offset": record.offset}


def to_class(reason: str) -> str:
    """What a reason begins with. The rest can quote a record, and stays out of the log."""
    return reason.partition(":")[0]


def to_reason(error: Exception) -> str:
    """An error as a line of text that PostgreSQL and Kafka take."""
    text = " ".join(f"{type(error).__name__}: {error}".split()).replace("\x00", "\\x00")
    return text.encode(errors="backslashreplace").decode()[:REASON_CHARACTERS_MAX]


def merge_reactions(domain: Iterable[Reactions], read_models: Iterable[ReadModel]) -> Reactions:
    """All reactions of a service: those of its domain, and the read models that follow."""
    found: dict[str, dict[str, list[Reaction]]] = defaultdict(dict)
    for each in domain:
        for topic, by_type in each.items():
            for type_, reactions in by_type.items():
                found[topic].setdefault(type_, []).extend(reactions)
    for model in read_models:
        projection = to_reaction(model.project)
        for type_ in model.types:
            found[model.topic].setdefault(type_, []).append(projection)
    return dict(found)


def deciding(store: EventStore[E], decider: Decider[C, S, E], commands: Commands[C]) -> Reactions:
    """Return the reactions of an aggregate, which decide on the command of each message.

    They are one reaction: a batch is taken reaction by reaction, and decisions depend on the order
    of the messages.
    """

    async def decide(connection: Connection, deliveries: Sequence[Delivery]) -> Sequence[Recorded]:
        caused = [commands[each.message.topic][each.message.type](each) for each in deliveries]
        return await react(store, decider, connection, caused)

    return {topic: {name: [decide] for name in types} for topic, types in commands.items()}


def to_reaction(project: Projection) -> Reaction:
    """A projection as a reaction, which records no events."""

    async def apply(connection: Connection, deliveries: Sequence[Delivery]) -> None:
        await project(connection, [each.message for each in deliveries])

    return apply
