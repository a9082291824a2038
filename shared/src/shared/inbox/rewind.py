"""The command `rewind` of every service: its worker reads records of its topics again.

Harmless by construction: the inbox knows the last version of each stream that was consumed, and
drops what it is offered again. It is the other direction that is not: a worker that is moved over
records misses versions, so it would park their streams.
"""

import argparse
import sys
from collections.abc import AsyncIterator, Iterator, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass
from datetime import UTC, datetime

from aiokafka import AIOKafkaConsumer, TopicPartition
from aiokafka.errors import CommitFailedError, KafkaError

from shared.messaging import consumer_groups
from shared.messaging.consumer_groups import WORKER_SESSION_SECONDS, GroupIsInUse
from shared.messaging.topics import TOPICS
from shared.runtime.brokers import Brokers

EARLIEST, LATEST = "earliest", "latest"
REQUEST_TIMEOUT_MILLISECONDS = 10_000

Destination = str | datetime
"""EARLIEST, LATEST, or the time of a record: the first one of that time or later."""


class NotRewound(Exception):
    """No offset was changed: the text is the reason, in one line."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Move:
    """A partition, where the group continues now, and where it would continue then."""

    partition: TopicPartition
    now: int
    then: int

    @property
    def again(self) -> int:
        """Records that are read again."""
        return max(0, self.now - self.then)

    @property
    def skipped(self) -> int:
        """Records that are never read."""
        return max(0, self.then - self.now)


async def plan(
    brokers: Brokers,
    group: str,
    partitions: Sequence[TopicPartition],
    destination: Destination,
) -> list[Move]:
    """What a rewind changes, in each of these partitions. Raises KafkaError."""
    async with open_client(brokers, group) as client:
        begins = await client.beginning_offsets(partitions)
        ends = await client.end_offsets(partitions)
        if isinstance(destination, datetime):
            milliseconds = max(0, int(destination.timestamp() * 1000))
            found = await client.offsets_for_times(dict.fromkeys(partitions, milliseconds))
            # No record is that late: the next one will be.
            then = {each: found[each].offset if found[each] else ends[each] for each in partitions}
        else:
            then = begins if destination == EARLIEST else ends
        return [
            Move(
                partition=each,
                # A worker without a committed offset begins with the first record.
                now=max(await client.committed(each) or 0, begins[each]),
                then=then[each],
            )
            for each in partitions
        ]


async def apply(
    brokers: Brokers,
    group: str,
    moves: Sequence[Move],
    *,
    accept_gap: bool = False,
    session_seconds: float = WORKER_SESSION_SECONDS,
) -> None:
    """Commit where the group continues; a killed member leaves it after `session_seconds`.

    The broker itself refuses it, should a worker start in this moment.

    Raises:
        NotRewound: records would be skipped, and `accept_gap` does not allow it.
        GroupIsInUse: a worker runs.
        KafkaError: no offset was changed, as far as is known.
    """
    skipped = sum(each.skipped for each in moves)
    if skipped and not accept_gap:
        raise NotRewound(
            f"{skipped} records that {group} has not read would be skipped, and their streams"
            " parked: choose an earlier time, or add --accept-gap"
        )
    await consumer_groups.require_no_member(brokers, group, session_seconds)
    async with open_client(brokers, group) as client:
        client.assign([each.partition for each in moves])
        try:
            await client.commit({each.partition: each.then for each in moves})
        except CommitFailedError:
            raise GroupIsInUse(
                f"a process has joined the group {group} meanwhile: stop {group} first"
            ) from None


@asynccontextmanager
async def open_client(brokers: Brokers, group: str) -> AsyncIterator[AIOKafkaConsumer]:
    """One that reads and writes the offsets of a group. It does not become a member, as it does not
    subscribe. Raises KafkaError."""
    client = AIOKafkaConsumer(
        **brokers.options,
        client_id=f"{group}-rewind",
        group_id=group,
        enable_auto_commit=False,
        request_timeout_ms=REQUEST_TIMEOUT_MILLISECONDS,
    )
    try:
        await client.start()
        yield client
    finally:
        await client.stop()


def add_to(commands: "argparse._SubParsersAction[argparse.ArgumentParser]") -> None:
    """Declare `rewind`, for `run`."""
    text = "let the worker read records again, which changes nothing that they have changed"
    parser = commands.add_parser("rewind", help=text, description=text)
    parser.add_argument(
        "--to",
        metavar="WHEN",
        type=parse_destination,
        required=True,
        help=f"{EARLIEST}, {LATEST}, or a time such as 2016-11-11T04:03Z: its first record, or the"
        " next one",
    )
    parser.add_argument(
        "--apply", action="store_true", help="do it, while no worker runs; else only show it"
    )
    parser.add_argument(
        "--accept-gap",
        action="store_true",
        help="also skip records that were not read; their streams are parked",
    )


def parse_destination(text: str) -> Destination:
    """Raises argparse.ArgumentTypeError."""
    if text in (EARLIEST, LATEST):
        return text
    try:
        time = datetime.fromisoformat(text)
    except ValueError:
        time = None
    if time is None or time.tzinfo is None:
        raise argparse.ArgumentTypeError(
            f"{text} is not {EARLIEST}, {LATEST}, or a time with its zone, as 2016-11-11T04:03Z is"
        )
    return time.astimezone(UTC)


async def run(arguments: argparse.Namespace, brokers: Brokers, group: str) -> None:
    """The command `rewind`.

    Raises:
        SystemExit: one line, the reason why nothing was done.
    """
    try:
        moves = await plan(brokers, group, list_partitions(group), arguments.to)
        if arguments.apply:
            await apply(brokers, group, moves, accept_gap=arguments.accept_gap)
    except (NotRewound, GroupIsInUse) as error:
        sys.exit(f"hometown: no offset was changed: {error}")
    except KafkaError as error:
        sys.exit(f"hometown: try again: {error!r}")
    sys.stdout.writelines(f"{line}\n" for line in format_moves(group, moves, arguments.apply))


def list_partitions(group: str) -> list[TopicPartition]:
    """Of the topics that a worker reads."""
    return [
        TopicPartition(topic.name, number)
        for topic in TOPICS.values()
        if group in topic.readers
        for number in range(topic.partitions)
    ]


def format_moves(group: str, moves: Sequence[Move], is_applied: bool) -> Iterator[str]:
    """Lines for people."""
    for each in moves:
        yield f"{each.partition.topic}/{each.partition.partition}: {format_move(each)}"
    again, skipped = sum(each.again for each in moves), sum(each.skipped for each in moves)
    reads, skips = ("reads", "skips") if is_applied else ("would read", "skip")
    left_out = f", and {skips} {skipped}" if skipped else ""
    follows = ", from its next start on" if is_applied else ": add --apply"
    yield f"{group} {reads} {again} records again{left_out}{follows}"


def format_move(move: Move) -> str:
    if move.skipped:
        return f"{move.now} -> {move.then}, {move.skipped} records skipped"
    if move.again:
        return f"{move.now} -> {move.then}, {move.again} records again"
    return f"stays at {move.now}"
