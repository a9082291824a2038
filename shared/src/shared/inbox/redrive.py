"""Redriving a parked stream: its messages are applied in exact order, then the worker continues."""

from collections.abc import Sequence
from dataclasses import dataclass

import asyncpg

from shared.inbox import parked
from shared.inbox.consumer import Consumer, is_transient, to_reason
from shared.inbox.inbox import Gap, Inbox, OtherHistory, Repeated
from shared.inbox.parked import OperatorAction, ParkedMessage
from shared.messaging.messages import StreamKey
from shared.messaging.records import parse_message

MESSAGES_MAX = 500
"""Messages in one transaction; the worker waits for its end."""

REDRIVE, REDRIVE_OVER_GAPS = "redrive", "redrive over gaps"


@dataclass(frozen=True, slots=True, kw_only=True)
class Redriven:
    """The outcome of a redrive."""

    passed: int
    """Messages that do not wait any more."""
    obstacle: str | None
    """Why the stream waits still; None when it does not."""


async def redrive(
    consumer: Consumer,
    pool: asyncpg.Pool,
    stream: StreamKey,
    operator_action: OperatorAction,
    *,
    accept_gap: bool = False,
) -> Redriven:
    """Apply the waiting messages of a stream, up to the first failure.

    The first message that fails ends it: those before are applied, and the stream waits with the
    new reason. `accept_gap` passes over missing versions.

    Raises:
        NotParked: the stream does not wait.
        Exception: for which `is_transient` is true. The last MESSAGES_MAX were not applied.
    """
    passed = 0
    while True:
        count, obstacle = await redrive_page(consumer, pool, stream, operator_action, accept_gap)
        consumer.relay_notifier.notify()
        passed += count
        if obstacle or count < MESSAGES_MAX:
            return Redriven(passed=passed, obstacle=obstacle)


async def redrive_page(
    consumer: Consumer,
    pool: asyncpg.Pool,
    stream: StreamKey,
    operator_action: OperatorAction,
    accept_gap: bool,
) -> tuple[int, str | None]:
    """Take at most MESSAGES_MAX messages in one transaction: how many passed, what stopped it."""
    name = consumer.name
    async with pool.acquire() as connection, connection.transaction():
        inbox = await Inbox.open_parked(connection, name, stream)
        waiting = await parked.list_messages(connection, name, stream, MESSAGES_MAX)
        passed, obstacle = await apply_waiting(consumer, inbox, waiting, accept_gap)
        await inbox.write_versions()
        await parked.release(connection, name, stream, passed)
        if obstacle:
            await parked.write_reason(connection, name, stream, obstacle)
        elif len(passed) < MESSAGES_MAX:
            await parked.release_stream(connection, name, stream)
        action, last = REDRIVE_OVER_GAPS if accept_gap else REDRIVE, passed[-1] if passed else None
        await parked.write_audit(connection, name, stream, action, operator_action, last)
    return len(passed), obstacle


async def apply_waiting(
    consumer: Consumer, inbox: Inbox, waiting: Sequence[ParkedMessage], accept_gap: bool
) -> tuple[Sequence[int], str | None]:
    """The versions that passed, as a worker would take them, and what stopped the next one."""
    passed: list[int] = []
    for each in waiting:
        message = parse_message(each.record)
        verdict = inbox.verdict(message)
        if isinstance(verdict, Gap) and not accept_gap:
            return passed, verdict.reason
        if isinstance(verdict, OtherHistory) and not each.discarded:
            return passed, verdict.reason
        if not isinstance(verdict, Repeated | OtherHistory):
            if not each.discarded:
                try:
                    async with inbox.connection.transaction():  # a savepoint for this one message
                        await consumer.react(inbox.connection, [message])
                except Exception as error:
                    if is_transient(error):
                        raise
                    return passed, to_reason(error)
            inbox.mark_consumed(message)
        passed.append(each.version)
    return passed, None
