"""The command `parked` of every service with a worker: what waits, why, and how to continue it."""

import argparse
import getpass
import json
import os
import sys
from argparse import Namespace
from collections.abc import Awaitable, Callable
from dataclasses import asdict
from pathlib import Path
from typing import Any
from uuid import UUID

import asyncpg

from shared.eventsourcing.event_store import MESSAGE_BYTES_MAX
from shared.inbox import parked
from shared.inbox.consumer import TRANSIENT, Consumer, to_reason
from shared.inbox.parked import STREAMS_MAX, NotParked, OperatorAction, ParkedMessage, ParkedStream
from shared.inbox.redrive import MESSAGES_MAX, redrive
from shared.messaging import messages

Action = Callable[[Namespace, Consumer, asyncpg.Pool], Awaitable[None]]


class CommandFailed(Exception):
    """The command was refused or not completed: the text is the reason, in one line."""


def add_to(commands: "argparse._SubParsersAction[argparse.ArgumentParser]") -> None:
    """Declare `parked` and what can be done, for `run`."""
    text = "parked streams: one of their messages could not be applied"
    parser = commands.add_parser("parked", help=text, description=text)
    actions = parser.add_subparsers(required=True, metavar="ACTION")

    listing = declare(actions, "list", list_streams, "parked streams, longest waiting first")
    listing.add_argument("--json", action="store_true", help="for programs")

    showing = declare(actions, "show", show, "one stream, with the messages that wait")
    add_stream(showing)
    showing.add_argument("--json", action="store_true", help="for programs")

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


def login_name() -> str:
    """Of the user, or the number of one without a name."""
    try:
        return getpass.getuser()
    except (KeyError, OSError):
        return str(os.getuid())


async def run(arguments: Namespace, consumer: Consumer, pool: asyncpg.Pool) -> None:
    """Do what was asked. Ends the process with one line and code 1 where that cannot be."""
    action: Action = arguments.action
    try:
        await action(arguments, consumer, pool)
    except (CommandFailed, NotParked) as error:
        sys.exit(f"hometown: {error}")
    except TRANSIENT as error:
        sys.exit(f"hometown: try again: {to_reason(error)}")


async def list_streams(arguments: Namespace, consumer: Consumer, pool: asyncpg.Pool) -> None:
    streams = await parked.list_streams(pool, consumer.name)
    if arguments.json:
        print_line(json.dumps([stream_to_json(stream) for stream in streams], indent=2))
    elif not streams:
        print_line("no stream is parked")
    for stream in () if arguments.json else streams:
        print_line(format_stream(stream))


async def show(arguments: Namespace, consumer: Consumer, pool: asyncpg.Pool) -> None:
    found = await parked.list_streams(pool, consumer.name, arguments.stream)
    if not found:
        raise NotParked(f"stream {arguments.stream} is not parked")
    messages = await parked.list_messages(pool, consumer.name, arguments.stream, MESSAGES_MAX)
    if arguments.json:
        whole = stream_to_json(found[0]) | {
            "messages": [message_to_json(each) for each in messages]
        }
        print_line(json.dumps(whole, indent=2))
        return
    print_line(format_stream(found[0]))
    for message in messages:
        shown = message_to_json(message)
        mark = " (discarded)" if message.discarded else ""
        value = printable(shown["value"])
        print_line(f"  version {message.version} {shown['type']}{mark} {value}")
    if found[0].waiting > len(messages):
        print_line(f"  and {found[0].waiting - len(messages)} more")


async def edit(arguments: Namespace, consumer: Consumer, pool: asyncpg.Pool) -> None:
    value = read_value(arguments.value)
    async with pool.acquire() as connection, connection.transaction():
        await parked.edit(
            connection,
            consumer.name,
            arguments.stream,
            arguments.version,
            value,
            to_operator_action(arguments),
        )
    print_line(
        f"edited version {arguments.version} of stream {arguments.stream}; it waits for a redrive"
    )


async def discard(arguments: Namespace, consumer: Consumer, pool: asyncpg.Pool) -> None:
    async with pool.acquire() as connection, connection.transaction():
        await parked.discard(
            connection,
            consumer.name,
            arguments.stream,
            arguments.version,
            to_operator_action(arguments),
        )
    print_line(f"discarded version {arguments.version} of stream {arguments.stream}")


async def redrive_streams(arguments: Namespace, consumer: Consumer, pool: asyncpg.Pool) -> None:
    if arguments.all:
        chosen = [stream.stream_id for stream in await parked.list_streams(pool, consumer.name)]
    else:
        chosen = [arguments.stream]
    waiting = 0
    for stream_id in chosen:
        done = await redrive(
            consumer,
            pool,
            stream_id,
            to_operator_action(arguments),
            accept_gap=arguments.accept_gap,
        )
        outcome = f"is still parked: {done.obstacle}" if done.obstacle else "is released"
        print_line(f"stream {stream_id}: {done.passed} messages applied; it {outcome}")
        waiting += done.obstacle is not None
    if waiting:
        raise CommandFailed(f"{waiting} of {len(chosen)} streams are still parked")


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


def printable(text: str) -> str:
    """Text of others, without power over the terminal."""
    return "".join(each if each.isprintable() else repr(each)[1:-1] for each in text)


def stream_to_json(stream: ParkedStream) -> dict[str, Any]:
    return asdict(stream) | {
        "stream_id": str(stream.stream_id),
        "parked_at": stream.parked_at.isoformat(),
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
