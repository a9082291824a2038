"""The producer that loses and reorders nothing."""

import asyncio
import itertools
from collections import Counter
from collections.abc import Awaitable, Callable, Collection, Iterable, Iterator, Mapping, Sequence

from aiokafka import AIOKafkaProducer, TopicPartition
from aiokafka.errors import KafkaError, KafkaTimeoutError, LeaderNotAvailableError
from aiokafka.structs import RecordMetadata

from shared.messaging.log_ends import RecordsLost, require_records
from shared.messaging.wire import OutgoingRecord, RecordBatch, Target
from shared.runtime.brokers import Brokers

BATCH_BYTES_MAX = 512 * 1024
"""Below the broker's default message.max.bytes of 1 MB: too large a batch is never acknowledged."""
RECORDS_PER_PRODUCER_MAX = 1_500_000_000
"""To one partition: its sequence numbers end at 2^31."""
REQUEST_TIMEOUT_MILLISECONDS = 5_000
RETRY_BACKOFF_MILLISECONDS = 50
SILENT_SECONDS_MAX = 5.0
"""How long a partition may acknowledge nothing while a broker answers."""
WRITE_SECONDS_MAX = 10.0
"""For a few records; the client itself would retry indefinitely."""


def create_producer(brokers: Brokers, client_id: str) -> AIOKafkaProducer:
    """A producer whose acknowledgement means "in all in-sync replicas, once, in order"."""
    return AIOKafkaProducer(
        **brokers.options,
        client_id=client_id,
        acks="all",
        enable_idempotence=True,
        max_batch_size=BATCH_BYTES_MAX,
        linger_ms=0,
        request_timeout_ms=REQUEST_TIMEOUT_MILLISECONDS,
        retry_backoff_ms=RETRY_BACKOFF_MILLISECONDS,
    )


class NotAcknowledged(KafkaError):  # type: ignore[misc]
    """Some partitions did not take all of their records. `errors` has the reason of each, and
    `batches` are those that were taken."""

    def __init__(self, errors: Mapping[Target, KafkaError], batches: Sequence[RecordBatch]) -> None:
        each = (f"{topic}/{number}: {error!r}" for (topic, number), error in errors.items())
        super().__init__("; ".join(each))
        self.errors = errors
        self.batches = batches


async def publish(
    client: AIOKafkaProducer,
    records: Iterable[OutgoingRecord],
    handed_over: Callable[[], None] = lambda: None,
) -> Sequence[RecordBatch]:
    """Send records, in order within each partition, and wait until all are acknowledged.

    Batches are built here and sent whole, which is several times quicker than `send` with its
    future for every record. `handed_over` is called when the client holds them all.

    Raises:
        NotAcknowledged: a batch was refused for good, or not taken in time; what other partitions
            have taken must not be sent to them again. The producer has a hole in its sequence then:
            close it, and make another.
    """
    sent: list[tuple[RecordBatch, asyncio.Future[RecordMetadata]]] = []
    errors: dict[Target, KafkaError] = {}
    filling: dict[Target, RecordBatch] = {}

    async def hand_over(batch: RecordBatch) -> None:
        if batch.target not in errors:  # nothing goes to a partition behind a hole
            try:
                sent.append((batch, await send(client, batch)))
            except KafkaError as error:
                errors[batch.target] = error

    for record in records:
        target = record[:2]
        batch = filling.get(target)
        if batch is None or not batch.append(record):
            if batch is not None:
                await hand_over(batch)
                await asyncio.sleep(0)  # the client sends it while the next one is filled
            batch = filling[target] = RecordBatch(*target, BATCH_BYTES_MAX)
            batch.append(record)
    for batch in filling.values():
        await hand_over(batch)
    handed_over()
    await _settle(client, {taken: batch.target for batch, taken in sent})
    acknowledged = []
    for batch, taken in sent:
        try:
            batch.base_offset = get_place(taken).offset
            acknowledged.append(batch)
        except KafkaError as error:
            errors.setdefault(batch.target, error)
    if errors:
        raise NotAcknowledged(errors, acknowledged)
    return acknowledged


async def _settle(
    client: AIOKafkaProducer, pending: Mapping[asyncio.Future[RecordMetadata], Target]
) -> None:
    """Wait for acknowledgements, without end while no broker answers, as the client itself would.
    A partition that acknowledges nothing though one does is waited for SILENT_SECONDS_MAX."""
    answered = False
    while pending:
        done, _ = await asyncio.wait(pending, timeout=SILENT_SECONDS_MAX)
        moved = {pending[taken] for taken in done}
        given_up = answered or bool(moved)
        pending = {
            taken: target
            for taken, target in pending.items()
            if taken not in done and (target in moved or not given_up)
        }
        answered = given_up or await client.client.force_metadata_update()


def get_place(taken: asyncio.Future[RecordMetadata]) -> RecordMetadata:
    """Where a batch is. Raises KafkaError when it was refused, or is not acknowledged."""
    if not taken.done():
        raise KafkaTimeoutError(f"not acknowledged in {SILENT_SECONDS_MAX:g} s")
    return taken.result()


def iterate_offsets(batches: Iterable[RecordBatch], targets: Iterable[Target]) -> Iterator[int]:
    """The offset of each record by its (topic, partition); `batches` is what `publish` gave."""
    places: dict[Target, Iterator[int]] = {}
    for batch in batches:
        offsets = range(batch.base_offset, batch.base_offset + batch.count)
        places[batch.target] = itertools.chain(places.get(batch.target, ()), offsets)
    for target in targets:
        yield next(places[target])


class NoSuchPartition(KafkaError):  # type: ignore[misc]
    """The topic has fewer partitions than it had when the record was stored."""


async def send(client: AIOKafkaProducer, batch: RecordBatch) -> asyncio.Future[RecordMetadata]:
    """Hand a batch over to the sender. A closed one does not linger.

    Raises:
        NoSuchPartition: the topic has no such partition.
        LeaderNotAvailableError: no broker leads it, as far as is known; the client would wait.
    """
    batch.close()
    # The client would raise AssertionError.
    partitions = await client.partitions_for(batch.topic)
    if batch.partition not in partitions:
        raise NoSuchPartition(
            f"{batch.topic} has {len(partitions)} partitions, and no number {batch.partition}:"
            " give it as many as before"
        )
    if client.client.cluster.leader_for_partition(TopicPartition(*batch.target)) in (None, -1):
        raise LeaderNotAvailableError(f"no broker leads {batch.topic}/{batch.partition}")
    future: asyncio.Future[RecordMetadata] = await client.send_batch(
        batch, batch.topic, partition=batch.partition
    )
    return future


class Publisher:
    """A producer of a relay; made when it is first needed, and replaced when it must be.

    It must be after a refused batch, which leaves a hole in the sequence numbers, and before these
    wrap: aiokafka goes from 2^31 - 1 to -2^31, where the broker expects 0, and that partition would
    take no more records. Everything is acknowledged between two calls, so a change is unseen.

    `ends` is where the last acknowledged record of each partition ends, by "topic/partition". A
    relay is the only writer of its topics, so what is acknowledged next has a higher offset.
    """

    def __init__(self, brokers: Brokers, client_id: str, ends: Mapping[str, int]) -> None:
        self._brokers = brokers
        self._client_id = client_id
        self._ends = dict(ends)
        self._client: AIOKafkaProducer | None = None
        self._published: Counter[Target] = Counter()

    def create_second(self) -> "Publisher":
        """Another producer with the same `ends`, for other partitions."""
        second = Publisher(self._brokers, f"{self._client_id}-behind", {})
        second._ends = self._ends
        return second

    @property
    def ends(self) -> Mapping[str, int]:
        """A copy, for a checkpoint."""
        return dict(self._ends)

    async def require_acknowledged(
        self, targets: Collection[Target] | None = None
    ) -> Mapping[Target, KafkaError]:
        """Compare the logs of these partitions, or of all, with what the broker has acknowledged.

        Returns the partitions of which this cannot be known now, and why.

        Raises:
            RecordsLost: the broker has lost what it acknowledged.
            KafkaError: nothing can be known.
        """
        known = {to_partition(name): end for name, end in self._ends.items()}
        reached = {each: end for each, end in known.items() if targets is None or each in targets}
        try:
            await self._require(reached)
        except KafkaError:
            alone = await asyncio.gather(
                *(self._require({each: end}) for each, end in reached.items()),
                return_exceptions=True,
            )
            for outcome in alone:
                if isinstance(outcome, RecordsLost):
                    raise outcome from None
            unknown = {
                (each.topic, each.partition): outcome
                for each, outcome in zip(reached, alone, strict=True)
                if isinstance(outcome, KafkaError)
            }
            if len(unknown) == len(reached):
                raise
            return unknown
        return {}

    async def _require(self, reached: Mapping[TopicPartition, int]) -> None:
        await require_records(self._brokers, self._client_id, reached)

    async def publish(
        self, records: Iterable[OutgoingRecord], handed_over: Callable[[], None]
    ) -> Sequence[RecordBatch]:
        """As `publish`; after an error the next call begins with another producer.

        Raises:
            NotAcknowledged: some partitions did not take their records.
            KafkaError: no broker answers.
            RecordsLost: they were acknowledged, in the place of records that are lost.
        """
        if max(self._published.values(), default=0) > RECORDS_PER_PRODUCER_MAX:
            await self.close()
        try:
            batches = await publish(await self._started(), records, handed_over)
        except KafkaError as error:
            await self.close()
            if isinstance(error, NotAcknowledged):
                self._note(error.batches)
            raise
        self._note(batches)
        return batches

    def _note(self, batches: Iterable[RecordBatch]) -> None:
        for batch in batches:
            self._published[batch.target] += batch.count
            self._note_end(batch)

    def _note_end(self, batch: RecordBatch) -> None:
        name = f"{batch.topic}/{batch.partition}"
        reached = self._ends.get(name, 0)
        if batch.base_offset < 0:
            return  # a repeat of which the broker knows no more than that it has it
        if batch.base_offset < reached:
            raise RecordsLost.in_partition(to_partition(name), batch.base_offset, reached)
        self._ends[name] = batch.base_offset + batch.count

    async def _started(self) -> AIOKafkaProducer:
        if self._client is None:
            self._client = create_producer(self._brokers, self._client_id)
            await self._client.start()
        return self._client

    async def close(self) -> None:
        """Close the producer, if there is one, and drop what it still holds."""
        if self._client is not None:
            client, self._client = self._client, None
            self._published.clear()
            await close(client)


def to_partition(name: str) -> TopicPartition:
    """From "topic/partition"."""
    topic, _, number = name.rpartition("/")
    return TopicPartition(topic, int(number))


def create_writer(
    brokers: Brokers, client_id: str
) -> Callable[[Sequence[OutgoingRecord]], Awaitable[None]]:
    """A function that writes a few records and waits for their acknowledgement.

    For rare records, such as dead letters: each call has a producer of its own, so that a refused
    record leaves nothing behind. Raises KafkaError, or TimeoutError after WRITE_SECONDS_MAX: some
    may have been written then.
    """

    async def write(records: Sequence[OutgoingRecord]) -> None:
        client = create_producer(brokers, client_id)
        try:
            async with asyncio.timeout(WRITE_SECONDS_MAX):
                await client.start()
                await publish(client, records)
        finally:
            await close(client)

    return write


async def close(client: AIOKafkaProducer) -> None:
    """Close a producer and drop what it still holds.

    Its own `stop` would flush: nothing of ours is unacknowledged at a good end, and after a failure
    a flush would put old records between those that are sent again.
    """
    client._closed = True
    try:
        await client._sender.close()
    except asyncio.CancelledError:
        # Of a sender that was closed before it ran, unless it is this task that is cancelled.
        current = asyncio.current_task()
        if current is not None and current.cancelling():
            raise
    await client.client.close()
