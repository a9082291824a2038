"""The command: prints what waits, changes only what it was asked to, and refuses in one line."""

import argparse
import json
from collections.abc import Awaitable, Callable
from dataclasses import replace
from pathlib import Path
from uuid import UUID

import pytest

from shared.inbox import parked, parked_command
from shared.messaging.messages import StreamKey
from shared.messaging.records import parse_message
from shared.runtime.identifiers import new_id
from test_support.counter.counted_records import record, records
from test_support.counter.counter import TOPIC
from test_support.counter.desk import NAME, Desk

GARBAGE = b"\x00\xff garbage"
RELAY = "users-relay"
WHY = ("--reason", "a test", "--by", "jack")

Command = Callable[..., Awaitable[str]]


@pytest.fixture
def command(desk: Desk, capsys: pytest.CaptureFixture[str]) -> Command:
    """Runs `parked` with some words; what it said."""
    parser = argparse.ArgumentParser()
    parked_command.add_to(parser.add_subparsers(required=True))

    async def run(*words: object) -> str:
        arguments = parser.parse_args(["parked", *map(str, words)])
        await parked_command.run(arguments, desk.consumer, desk.pool, RELAY)
        return capsys.readouterr().out

    return run


async def sick(desk: Desk, *later: int) -> UUID:
    counter = new_id()
    await desk.consumer.take([record(counter, 1, value=GARBAGE), *records(counter, *later)])
    return counter


async def test_what_operators_did_is_listed_newest_first(
    desk: Desk, command: Command, tmp_path: Path
) -> None:
    counter, other = await sick(desk), await sick(desk)
    edited = tmp_path / "value.json"
    edited.write_text('{"count": 1}')
    await command("edit", counter, 1, "--value", edited, *WHY)
    await command("discard", counter, 1, *WHY)
    await command("redrive", counter, *WHY)
    await command("discard", other, 1, "--reason", "not\x1bneeded", "--by", "jill")

    lines = (await command("actions")).splitlines()
    of_one = json.loads(await command("actions", counter, "--json", "--last", 3))

    assert [line.split("  ", 1)[1] for line in lines] == [
        f"jill  discard {other} version 1  not\\x1bneeded",
        f"jack  redrive {counter} version 1  a test",
        f"jack  discard {counter} version 1  a test",
        f"jack  edit {counter} version 1  a test",
    ]
    assert [each["action"] for each in of_one] == ["redrive", "discard", "edit"]
    assert (of_one[-1]["value_before"], of_one[-1]["value_after"]) == (
        "\x00\\xff garbage",
        '{"count": 1}',
    )


async def test_that_no_operator_did_anything_is_printed_as_well(command: Command) -> None:
    assert await command("actions") == "no operator has changed a parked stream\n"
    assert json.loads(await command("actions", "--json")) == []


@pytest.mark.parametrize("number", ["0", "1001", "all"])
async def test_a_list_of_actions_has_an_end(
    number: str, command: Command, capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(SystemExit):
        await command("actions", "--last", number)

    assert f"{number} is not a number from 1 to 1000" in capsys.readouterr().err


async def audits(desk: Desk) -> list[str]:
    rows = await desk.pool.fetch("SELECT action FROM parked_audit ORDER BY number")
    return [row["action"] for row in rows]


async def test_that_no_stream_is_parked_is_printed_as_well(command: Command) -> None:
    assert await command("list") == "no stream is parked\n"
    assert json.loads(await command("list", "--json")) == []


async def test_what_waits_is_listed_with_its_reason_one_line_each(
    desk: Desk, command: Command
) -> None:
    counter, other = await sick(desk, 2), new_id()
    await desk.consumer.take(records(other, 2))

    lines = (await command("list")).splitlines()

    assert len(lines) == 2
    assert lines[0].startswith(f"{counter}  users.v1  2 waiting since ")
    assert "ValidationError: " in lines[0]
    assert lines[1].startswith(str(other))
    assert lines[1].endswith("gap: version 1 is missing")


async def test_a_stream_is_shown_with_its_messages(desk: Desk, command: Command) -> None:
    counter = await sick(desk, 2)

    shown = json.loads(await command("show", counter, "--json"))
    lines = (await command("show", counter)).splitlines()

    assert shown["stream_id"] == str(counter)
    assert [each["version"] for each in shown["messages"]] == [1, 2]
    assert shown["messages"][0]["value"] == "\x00\\xff garbage"
    assert shown["messages"][0]["headers"][1] == ["ce_type", "counted"]
    assert lines[1] == "  version 1 counted \\x00\\xff garbage"
    assert len(lines) == 3


async def test_an_edited_message_and_those_after_it_are_redriven(
    desk: Desk, command: Command, tmp_path: Path
) -> None:
    counter, file = await sick(desk, 2), tmp_path / "value.json"
    file.write_bytes(record(counter, 1).value or b"")

    await command("edit", counter, 1, "--value", file, *WHY)
    said = await command("redrive", counter, *WHY)

    assert said == f"stream {counter}: 2 messages applied; it is released\n"
    assert await desk.effects(counter) == [1, 2]
    assert await audits(desk) == ["edit", "redrive"]


async def test_a_discarded_message_is_shown_as_such_and_passed_over(
    desk: Desk, command: Command
) -> None:
    counter = await sick(desk, 2)

    await command("discard", counter, 1, *WHY)
    assert "(discarded)" in await command("show", counter)
    await command("redrive", counter, *WHY)

    assert await desk.effects(counter) == [2]


async def test_all_streams_are_redriven_and_those_that_wait_still_make_it_fail(
    desk: Desk, command: Command, capsys: pytest.CaptureFixture[str]
) -> None:
    cured, still_sick, holed = await sick(desk, 2), await sick(desk, 2), new_id()
    await desk.consumer.take(records(holed, 2))
    await command("discard", cured, 1, *WHY)

    with pytest.raises(SystemExit) as ended:
        await command("redrive", "--all", *WHY)

    assert ended.value.code == "hometown: 2 of 3 streams are still parked"
    said = capsys.readouterr().out
    assert f"stream {cured}: 2 messages applied; it is released" in said
    assert f"stream {still_sick}: 0 messages applied; it is still parked: ValidationError: " in said
    assert (
        f"stream {holed}: 0 messages applied; it is still parked: gap: version 1 is missing" in said
    )
    assert await desk.effects(cured) == [2]


async def test_a_gap_is_passed_with_the_word_for_it(desk: Desk, command: Command) -> None:
    counter = new_id()
    await desk.consumer.take(records(counter, 2, 3))

    await command("redrive", counter, "--accept-gap", *WHY)

    assert await desk.effects(counter) == [2, 3]


async def test_an_edit_with_another_thing_than_a_json_object_changes_nothing(
    desk: Desk, command: Command, tmp_path: Path
) -> None:
    counter, file = await sick(desk), tmp_path / "value.json"
    refused = {
        b"{": "Expecting property name",
        b"[]": "holds no JSON object",
        b"\xff": "can't decode",
        b'{"a": "' + b"x" * 300_000 + b'"}': "is larger than 262144 bytes",
    }
    for value, reason in refused.items():
        file.write_bytes(value)
        with pytest.raises(SystemExit, match=reason) as ended:
            await command("edit", counter, 1, "--value", file, *WHY)
        assert str(ended.value.code).startswith("hometown: ")
        assert "\n" not in str(ended.value.code)
    with pytest.raises(SystemExit, match="No such file"):
        await command("edit", counter, 1, "--value", tmp_path / "absent", *WHY)

    [message] = await parked.list_messages(desk.pool, NAME, StreamKey(TOPIC, counter), 10)
    assert message.record.value == GARBAGE
    assert await audits(desk) == []


async def test_what_does_not_wait_is_refused_in_one_line(
    desk: Desk, command: Command, tmp_path: Path
) -> None:
    counter, unknown, file = await sick(desk), new_id(), tmp_path / "value.json"
    file.write_text("{}")
    not_parked = f"hometown: stream {unknown} is not parked"
    refused: list[tuple[tuple[object, ...], str]] = [
        (("show", unknown), not_parked),
        (("discard", unknown, 1, *WHY), not_parked),
        (("edit", unknown, 1, "--value", file, *WHY), not_parked),
        (("redrive", unknown, *WHY), not_parked),
        (("discard", counter, 7, *WHY), f"hometown: no version 7 of stream {counter} waits"),
        (("discard", counter, 1, "--reason", " "), "hometown: --reason is empty"),
    ]
    for words, answer in refused:
        with pytest.raises(SystemExit) as ended:
            await command(*words)
        assert ended.value.code == answer

    assert await audits(desk) == []
    assert await desk.waiting(counter) == [1]


@pytest.mark.parametrize(
    "words",
    [
        ("show", "no-id"),
        ("discard", UUID(int=1), "one", *WHY),
        ("discard", UUID(int=1), 1),
        ("redrive", *WHY),
        ("redrive", UUID(int=1), "--all", *WHY),
        (),
    ],
)
async def test_words_that_make_no_command_are_refused(
    command: Command, words: tuple[object, ...], capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(SystemExit) as ended:
        await command(*words)

    assert ended.value.code == 2
    assert "usage: " in capsys.readouterr().err


async def test_a_failure_that_may_pass_says_so(
    desk: Desk, command: Command, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def away(*values: object) -> None:
        raise ConnectionRefusedError("away")

    monkeypatch.setattr(parked, "list_streams", away)

    with pytest.raises(SystemExit) as ended:
        await command("list")

    assert ended.value.code == "hometown: try again: ConnectionRefusedError: away"


async def test_a_stream_of_the_relay_is_listed_apart_and_its_redrive_is_left_to_the_relay(
    desk: Desk, command: Command
) -> None:
    counter = new_id()
    first = record(counter, 1)
    async with desk.pool.acquire() as connection, connection.transaction():
        await parked.park(connection, RELAY, first, parse_message(first), "too large")

    assert await command("list") == "no stream is parked\n"
    assert (await command("--relay", "list")).endswith("too large\n")
    said = await command("--relay", "redrive", counter, *WHY)

    assert said == f"stream {counter}: users-relay sends what waits\n"
    assert await audits(desk) == ["redrive"]
    assert await desk.effects(counter) == []
    assert await desk.pool.fetchval("SELECT redrive_at IS NOT NULL FROM parked_streams")


async def test_of_two_streams_with_one_id_the_topic_chooses(desk: Desk, command: Command) -> None:
    """The id of a user can be that of an order."""
    counter = await sick(desk, 1)
    [here] = records(counter, 1)
    there = replace(here, topic="orders.v1", value=GARBAGE)
    await desk.consumer_of("orders.v1").take([there])

    with pytest.raises(SystemExit) as ended:
        await command("show", counter)
    shown = await command("show", counter, "--topic", "orders.v1", "--json")
    await command("discard", counter, 1, "--topic", "orders.v1", *WHY)
    said = await command("redrive", counter, "--topic", "orders.v1", *WHY)

    topics = "orders.v1 and users.v1"
    assert ended.value.code == (
        f"hometown: stream {counter} is parked in {topics}: choose one with --topic"
    )
    assert json.loads(shown)["topic"] == "orders.v1"
    assert said == f"stream {counter}: 1 messages applied; it is released\n"
    [left] = await parked.list_streams(desk.pool, NAME)
    assert left.topic == "users.v1"
