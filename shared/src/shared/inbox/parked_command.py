"""The command `parked` of every service with a worker: what waits, why, and how to continue it."""

import argparse
import getpass
import json
import os
import sys
from argparse import Namespace
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any
from uuid import UUID

import asyncpg

from shared.eventsourcing.event_store import MESSAGE_BYTES_MAX
from shared.inbox import parked
from shared.inbox.consumer import Consumer, is_transient, to_reason
from shared.inbox.parked import (
    STREAMS_MAX,
    NotParked,
    OperatorAction,
    ParkedMessage,
    ParkedStream,
    RecordedAction,
)
from shared.inbox.redrive import MESSAGES_MAX, redrive
from shared.messaging import messages
from shared.messaging.messages import StreamKey

ACTIONS_DEFAULT = 50
ACTIONS_MAX = 1_000
"""Of operators, that one call lists."""


class CommandFailed(Exception):
    """The command was refused or not completed: the text is the reason, in one line."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Parking:
    """Where the streams are parked, and what can continue them.

    `parked_by` is the name of the consumer, or that of the relay.
    """

    parked_by: str
    consumer: Consumer
    pool: asyncpg.Pool


Action = Callable[[Namespace, Parking], Awaitable[None]]


def add_to(commands: "argparse._SubParsersAction[argparse.ArgumentParser]") -> None:
    """Declare `parked` and what can be done, for `run`."""
    text = "parked streams: one of their messages could not be applied"
    parser = commands.add_parser("parked", help=text, description=text)
    parser.add_argument(
        "--relay",
        action="store_true",
        help="those of the relay instead: the broker refused one of their records",
    )
    actions = parser.add_subparsers(required=True, metavar="ACTION")

    listing = declare(actions, "list", list_streams, "parked streams, longest waiting first")
    listing.add_argument("--json", action="store_true", help="for programs")

    showing = declare(actions, "show", show, "one stream, with the messages that wait")
    add_stream(showing)
    showing.add_argument("--json", action="store_true", help="for programs")

    text = "what operators did to parked streams, newest first; also to streams that are released"
    recalling = declare(actions, "actions", list_actions, text)
    recalling.add_argument("stream", metavar="STREAM", type=UUID, nargs="?", help="of one stream")
    recalling.add_argument("--json", action="store_true", help="for programs; with the values")
    recalling.add_argument(
        "--last",
        metavar="NUMBER",
        type=parse_number,
        default=ACTIONS_DEFAULT,
        help=f"how many, at most {ACTIONS_MAX}; default: %(default)s",
    )

    editing = declare(actions, "edit", edit, "replace the value of a waiting message")
    add_stream(editing)
    add_version(editing)
    editing.add_argument("--value", metavar="FILE", type=Path, required=True, help="a JSON object")
    add_operator_action(editing)

    discarding = declare(actions, "discard", discard, "let the next redrive pass over a message")
    add_stream(discarding)
    add_version(discarding)
    add_operator_action(discarding)

    text = "apply the waiting messages in order and release the stream; stops at the first failure"
    redriving = declare(actions, "redrive", redrive_streams, text)
    which = redriving.add_mutually_exclusive_group(required=True)
    which.add_argument("stream", metavar="STREAM", type=UUID, nargs="?", help="its id")
    add_topic(redriving)
    which.add_argument(
        "--all", action="store_true", help=f"all parked streams, at most {STREAMS_MAX}"
    )
    redriving.add_argument(
        "--accept-gap", action="store_true", help="continue despite missing versions"
    )
    add_operator_action(redriving)


def declare(
    actions: "argparse._SubParsersAction[argparse.ArgumentParser]",
    name: str,
    action: Action,
    text: str,
) -> argparse.ArgumentParser:
    parser = actions.add_parser(name, help=text, description=text)
    parser.set_defaults(action=action)
    return parser


def add_stream(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("stream", metavar="STREAM", type=UUID, help="its id")
    add_topic(parser)


def add_topic(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--topic", metavar="TOPIC", help="where two streams have one id")


def add_version(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("version", metavar="VERSION", type=int, help="of the message")


def add_operator_action(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--reason",
        metavar="TEXT",
        required=True,
        help="why; kept permanently",
    )
    parser.add_argument(
        "--by", metavar="NAME", default=login_name(), help="the operator; default: %(default)s"
    )


def parse_number(text: str) -> int:
    """Raises argparse.ArgumentTypeError."""
    if not text.isdecimal() or not 1 <= int(text) <= ACTIONS_MAX:
        raise argparse.ArgumentTypeError(f"{text} is not a number from 1 to {ACTIONS_MAX}")
    return int(text)


def login_name() -> str:
    """Of the user, or the number of one without a name."""
    try:
        return getpass.getuser()
    except (KeyError, OSError):
        return str(os.getuid())


async def run(
    arguments: Namespace, consumer: Consumer, pool: asyncpg.Pool, relay_name: str
) -> None:
    """Do what was asked. Ends the process with one line and code 1 where that cannot be."""
    action: Action = arguments.action
    parked_by = relay_name if arguments.relay else consumer.name
    try:
        await action(arguments, Parking(parked_by=parked_by, consumer=consumer, pool=pool))
    except (CommandFailed, NotParked) as error:
        sys.exit(f"hometown: {error}")
    except Exception as error:
        if not is_transient(error):
            raise
        sys.exit(f"hometown: try again: {to_reason(error)}")


async def list_streams(arguments: Namespace, parking: Parking) -> None:
    streams = await parked.list_streams(parking.pool, parking.parked_by)
    if arguments.json:
        print_line(json.dumps([stream_to_json(stream) for stream in streams], indent=2))
    elif not streams:
        print_line("no stream is parked")
    for stream in () if arguments.json else streams:
        print_line(format_stream(stream))


async def show(arguments: Namespace, parking: Parking) -> None:
    stream = await find(arguments, parking)
    messages = await parked.list_messages(parking.pool, parking.parked_by, stream.key, MESSAGES_MAX)
    if arguments.json:
        whole = stream_to_json(stream) | {"messages": [message_to_json(each) for each in messages]}
        print_line(json.dumps(whole, indent=2))
        return
    print_line(format_stream(stream))
    for message in messages:
        shown = message_to_json(message)
        mark = " (discarded)" if message.discarded else ""
        value = printable(shown["value"])
        print_line(f"  version {message.version} {shown['type']}{mark} {value}")
    if stream.waiting > len(messages):
        print_line(f"  and {stream.waiting - len(messages)} more")


async def find(arguments: Namespace, parking: Parking) -> ParkedStream:
    """The stream that was named.

    Raises:
        NotParked: it does not wait.
        CommandFailed: two streams with this id do, and no topic was given.
    """
    found = await parked.list_streams(parking.pool, parking.parked_by, arguments.stream)
    chosen = [each for each in found if arguments.topic in (None, each.topic)]
    if not chosen:
        raise NotParked(f"stream {arguments.stream} is not parked")
    if len(chosen) > 1:
        topics = " and ".join(sorted(each.topic for each in chosen))
        raise CommandFailed(
            f"stream {arguments.stream} is parked in {topics}: choose one with --topic"
        )
    return chosen[0]


async def list_actions(arguments: Namespace, parking: Parking) -> None:
    actions = await parked.list_actions(
        parking.pool, parking.parked_by, arguments.stream, arguments.last
    )
    if arguments.json:
        print_line(json.dumps([action_to_json(each) for each in actions], indent=2))
    elif not actions:
        print_line("no operator has changed a parked stream")
    for each in () if arguments.json else actions:
        print_line(format_action(each))


async def edit(arguments: Namespace, parking: Parking) -> None:
    value = read_value(arguments.value)
    stream = await find(arguments, parking)
    async with parking.pool.acquire() as connection, connection.transaction():
        await parked.edit(
            connection,
            parking.parked_by,
            stream.key,
            arguments.version,
            value,
            to_operator_action(arguments),
        )
    print_line(
        f"edited version {arguments.version} of stream {arguments.stream}; it waits for a redrive"
    )


async def discard(arguments: Namespace, parking: Parking) -> None:
    stream = await find(arguments, parking)
    async with parking.pool.acquire() as connection, connection.transaction():
        await parked.discard(
            connection,
            parking.parked_by,
            stream.key,
            arguments.version,
            to_operator_action(arguments),
        )
    print_line(f"discarded version {arguments.version} of stream {arguments.stream}")


async def redrive_streams(arguments: Namespace, parking: Parking) -> None:
    if arguments.all:
        streams = await parked.list_streams(parking.pool, parking.parked_by)
        chosen = [stream.key for stream in streams]
    else:
        chosen = [(await find(arguments, parking)).key]
    if arguments.relay:
        await request_redrive(arguments, parking, chosen)
        return
    waiting = 0
    for stream in chosen:
        done = await redrive(
            parking.consumer,
            parking.pool,
            stream,
            to_operator_action(arguments),
            accept_gap=arguments.accept_gap,
        )
        outcome = f"is still parked: {done.obstacle}" if done.obstacle else "is released"
        print_line(f"stream {stream.stream_id}: {done.passed} messages applied; it {outcome}")
        waiting += done.obstacle is not None
    if waiting:
        raise CommandFailed(f"{waiting} of {len(chosen)} streams are still parked")


async def request_redrive(
    arguments: Namespace, parking: Parking, streams: Sequence[StreamKey]
) -> None:
    """Only the relay that holds the lease can send: it continues these streams at once."""
    for stream in streams:
        async with parking.pool.acquire() as connection, connection.transaction():
            await parked.request_redrive(
                connection, parking.parked_by, stream, to_operator_action(arguments)
            )
        print_line(f"stream {stream.stream_id}: {parking.parked_by} sends what waits")


def read_value(file: Path) -> bytes:
    """The JSON object in a file.

    Raises:
        CommandFailed: it cannot be read, is no JSON object, or is larger than MESSAGE_BYTES_MAX.
    """
    try:
        value = file.read_bytes()
        parsed = json.loads(value)
    except (OSError, ValueError) as error:
        raise CommandFailed(f"{file}: {error}") from None
    if not isinstance(parsed, dict):
        raise CommandFailed(f"{file} holds no JSON object")
    if len(value) > MESSAGE_BYTES_MAX:
        raise CommandFailed(f"{file} is larger than {MESSAGE_BYTES_MAX} bytes")
    return value


def to_operator_action(arguments: Namespace) -> OperatorAction:
    """Raises CommandFailed: no reason was given."""
    if not arguments.reason.strip():
        raise CommandFailed("--reason is empty")
    return OperatorAction(by=arguments.by, reason=arguments.reason)


def format_stream(stream: ParkedStream) -> str:
    since = stream.parked_at.isoformat(timespec="seconds")
    reason = printable(stream.reason)
    return f"{stream.stream_id}  {stream.topic}  {stream.waiting} waiting since {since}  {reason}"


def format_action(action: RecordedAction) -> str:
    at = action.done_at.isoformat(timespec="seconds")
    version = "" if action.version is None else f" version {action.version}"
    by, reason = printable(action.by), printable(action.reason)
    return f"{at}  {by}  {action.action} {action.stream_id}{version}  {reason}"


def printable(text: str) -> str:
    """Text of others, without power over the terminal."""
    return "".join(each if each.isprintable() else repr(each)[1:-1] for each in text)


def stream_to_json(stream: ParkedStream) -> dict[str, Any]:
    return asdict(stream) | {
        "stream_id": str(stream.stream_id),
        "parked_at": stream.parked_at.isoformat(),
    }


def action_to_json(action: RecordedAction) -> dict[str, Any]:
    return asdict(action) | {
        "done_at": action.done_at.isoformat(),
        "stream_id": str(action.stream_id),
        "value_before": None if action.value_before is None else decode_text(action.value_before),
        "value_after": None if action.value_after is None else decode_text(action.value_after),
    }


def message_to_json(message: ParkedMessage) -> dict[str, Any]:
    """For people and programs; a value that is no text keeps its bytes as escapes."""
    record = message.record
    headers = [(name, decode_text(value)) for name, value in record.headers]
    return {
        "version": message.version,
        "event_id": str(message.event_id),
        "type": dict(headers)[messages.TYPE],
        "topic": record.topic,
        "partition": record.partition,
        "offset": record.offset,
        "key": decode_text(record.key),
        "value": decode_text(record.value),
        "headers": headers,
        "discarded": message.discarded,
    }


def decode_text(value: bytes | None) -> str:
    return (value or b"").decode(errors="backslashreplace")


def print_line(line: str) -> None:
    sys.stdout.write(f"{line}\n")
