"""A process of Kafka Streams ends with its case, and what went wrong in it is said."""

import asyncio
import os
import signal
import tempfile
from collections.abc import AsyncIterator, Sequence
from pathlib import Path

import pytest

from fetching.errors import Failure
from fetching.java_compiler import has_java_compiler
from lessons import streams_engine
from lessons.broker import PREFIX, Topics, open_topics
from lessons.lesson import Case, Lesson, Record, Step
from lessons.streams_engine import Program, Twin, compile_twins, find_twins

needs_compiler = pytest.mark.skipif(not has_java_compiler(), reason="no javac")
SUMS = find_twins(Lesson("tables"))["sum_changes"]


@pytest.fixture(scope="module")
def program(tmp_path_factory: pytest.TempPathFactory) -> Program:
    return compile_twins(Lesson("tables"), tmp_path_factory.mktemp("classes"))


@pytest.fixture
async def topics(kafka_servers: str) -> AsyncIterator[Topics]:
    async with open_topics(kafka_servers) as topics:
        yield topics


@pytest.fixture
async def prefix(topics: Topics) -> AsyncIterator[str]:
    async with topics.remove_around(f"{PREFIX}process.") as prefix:
        await topics.create([f"{prefix}records", f"{prefix}out"])
        yield prefix


@needs_compiler
async def test_a_process_ends_when_its_case_does_and_leaves_no_file(
    program: Program,
    topics: Topics,
    prefix: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))

    async with streams_engine.running(program, topics, prefix, SUMS) as application:
        await application.wait_until_read()
        process = application.process
        assert process.returncode is None
        assert os.listdir(tmp_path) != []

    assert process.returncode == 0
    assert os.listdir(tmp_path) == []


@needs_compiler
async def test_what_is_dropped_is_counted_for_each_step(
    program: Program, topics: Topics, prefix: str
) -> None:
    without_key = Record(value="1")
    dropped = []

    async with streams_engine.running(program, topics, prefix, SUMS) as application:
        for number in (1, 2, 0):
            await topics.publish(prefix, [without_key] * number)
            await application.wait_until_read()
            dropped.append(await application.read_dropped())

    assert dropped == [[{"dropped": 1}], [{"dropped": 2}], []]


@needs_compiler
async def test_a_process_ends_when_its_case_is_interrupted(
    program: Program, topics: Topics, prefix: str
) -> None:
    with pytest.raises(asyncio.CancelledError):
        async with streams_engine.running(program, topics, prefix, SUMS) as application:
            raise asyncio.CancelledError

    assert application.process.returncode == 0


@needs_compiler
async def test_each_record_leads_to_a_row(program: Program, topics: Topics, prefix: str) -> None:
    records = [Record(key="Jack", value=value) for value in "123"]

    async with (
        topics.open_reader(f"{prefix}out") as reader,
        streams_engine.running(program, topics, prefix, SUMS) as application,
    ):
        await topics.publish(prefix, records)
        await application.wait_until_read()
        rows = await reader.read_to_end()

    assert [row["sum"] for row in rows] == [1, 3, 6]


@needs_compiler
@pytest.mark.parametrize(
    ("function", "known", "deleted"),
    [
        (
            "join_tables",
            [
                Record(topic="prices", key="ipad", value="2"),
                Record(topic="stocks", key="ipad", value="3"),
            ],
            "prices",
        ),
        (
            "join_foreign_key",
            [
                Record(topic="users", key="ipad", value="SH"),
                Record(topic="orders", key="1", value={"order": "1", "user": "ipad"}),
            ],
            "users",
        ),
    ],
    ids=["price", "user"],
)
async def test_a_record_that_deletes_leads_to_no_row(
    topics: Topics,
    tmp_path: Path,
    function: str,
    known: Sequence[Record],
    deleted: str,
) -> None:
    records: list[Sequence[Record]] = [known, [Record(topic=deleted, key="ipad", value=None)]]
    case = Case(
        name="deleted",
        function=function,
        shows="",
        steps=[Step(records=each, out=[]) for each in records],
    )
    program = await asyncio.to_thread(compile_twins, Lesson("joins"), tmp_path)

    async with topics.remove_around(f"{PREFIX}deleted.{function}.") as prefix:
        answers = await streams_engine.run_case(program, topics, prefix, case, Twin(function), {})

    assert list(map(len, answers)) == [1, 0]


@needs_compiler
async def test_a_record_that_ends_the_process_is_said(
    program: Program, topics: Topics, prefix: str
) -> None:
    async with streams_engine.running(program, topics, prefix, SUMS) as application:
        await topics.publish(prefix, [Record(key="Jack", value="one")])
        with pytest.raises(Failure, match="ended with status 1") as raised:
            await application.wait_until_read()
        with pytest.raises(Failure, match="ended with status 1"):
            await application.read_dropped()

    assert any("NumberFormatException" in line for line in raised.value.details)


@needs_compiler
async def test_a_function_that_is_not_there_is_said(
    program: Program, topics: Topics, prefix: str
) -> None:
    with pytest.raises(Failure, match="ended with status 1") as raised:
        async with streams_engine.running(program, topics, prefix, Twin("sum_nothing")):
            pass

    assert any("sumNothing" in line for line in raised.value.details)


@needs_compiler
async def test_a_process_that_hangs_is_named_and_killed(
    program: Program, topics: Topics, prefix: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(streams_engine, "CLOSE_SECONDS_MAX", 0.1)

    async with streams_engine.running(program, topics, prefix, SUMS) as application:
        application.process.send_signal(signal.SIGSTOP)
        await topics.publish(prefix, [Record(key="Jack", value="1")])
        with pytest.raises(TimeoutError, match=f"not read by .*: {prefix}records"):
            await application.wait_until_read(seconds_max=0)
        with pytest.raises(TimeoutError, match="no answer of"):
            await application.read_dropped(seconds_max=0.1)

    assert application.process.returncode == -signal.SIGKILL


@needs_compiler
async def test_a_process_is_killed_when_its_end_is_interrupted(
    program: Program, topics: Topics, prefix: str
) -> None:
    async with streams_engine.running(program, topics, prefix, SUMS) as application:
        application.process.send_signal(signal.SIGSTOP)
        ending = asyncio.create_task(streams_engine.end(application.process))
        await asyncio.sleep(0)
        ending.cancel()
        with pytest.raises(asyncio.CancelledError):
            await ending

        assert application.process.returncode == -signal.SIGKILL
