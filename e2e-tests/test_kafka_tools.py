"""Kafka's own commands work with the stack that runs, as docs/kafka-tools.md shows them."""

import asyncio
import csv
import io
import re
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest
from aiokafka import AIOKafkaConsumer
from confluent_kafka import ConsumerGroupTopicPartitions, Producer, TopicPartition
from confluent_kafka.admin import AdminClient, NewTopic

from test_support.system.stack import CHECKOUT, Stack

PAGE = CHECKOUT / "docs" / "kafka-tools.md"
ROW = re.compile(r"^\| [^|]+ \| `((?:timeout \d+ )?make kafka [^|]+)` \| ([^|]*)\|$", re.MULTILINE)
COMMANDS = [
    (command, re.findall(r"`([^`]+)`", shown)) for command, shown in ROW.findall(PAGE.read_text())
]
"""Each command of the table, with what it prints among other things."""
COMMAND_SECONDS_MAX = 120
INTERRUPTED = 124
"""The exit status of `timeout`."""
FILES_OF_A_BROKER = "dump-log"

EXPORTED = (8905, 8915, 9845, 8072, 8008, 8319, 8102, 12739)
GROUP, TOPIC = "exported-group", "exported-topic"
REQUEST_SECONDS_MAX = 30
JOIN_SECONDS_MAX = 60


def run(stack: Stack, command: str) -> "subprocess.CompletedProcess[str]":
    """A line of the table, with the files of this stack instead of the usual one's."""
    folder = str(stack.folder.path)
    here = command.replace(".run/processes", folder).replace(".run/", f"{folder}/")
    return subprocess.run(
        ["bash", "-c", here],
        cwd=CHECKOUT,
        env=stack.variables,
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        timeout=COMMAND_SECONDS_MAX,
        check=False,
    )


@pytest.mark.long
def test_each_line_of_the_table_prints_what_it_shows(stack: Stack) -> None:
    """Also TV-27: the license is written line by line, and read back as it was, to the byte."""
    assert len(COMMANDS) == PAGE.read_text().count("\n| ") - 2
    for command, shown in COMMANDS:
        if FILES_OF_A_BROKER in command and stack.way != "processes":
            continue
        ended = run(stack, command)
        printed = ended.stdout + ended.stderr

        for text in shown:
            assert text in printed, f"{command}\nprints no {text!r}:\n{printed}"
        if command.startswith("timeout"):
            assert ended.returncode == INTERRUPTED, printed
        elif "tool=acls" not in command:
            assert ended.returncode == 0, f"{command}\n{printed}"
        if "console-consumer" in command:
            assert ended.stdout == (CHECKOUT / "LICENSE").read_text()


@pytest.fixture
def exported(stack: Stack) -> Iterator[AdminClient]:
    """A topic whose partitions have as many records as a group has committed."""
    servers = stack.brokers.servers
    admin = AdminClient({"bootstrap.servers": servers})
    admin.create_topics([NewTopic(TOPIC, len(EXPORTED), 1)])[TOPIC].result(REQUEST_SECONDS_MAX)
    producer = Producer({"bootstrap.servers": servers, "queue.buffering.max.messages": 200_000})
    for partition, count in enumerate(EXPORTED):
        for _ in range(count):
            producer.produce(TOPIC, b"", partition=partition)
    assert producer.flush(REQUEST_SECONDS_MAX) == 0
    places = [TopicPartition(TOPIC, number, end) for number, end in enumerate(EXPORTED)]
    altered = admin.alter_consumer_group_offsets([ConsumerGroupTopicPartitions(GROUP, places)])
    altered[GROUP].result(REQUEST_SECONDS_MAX)
    yield admin
    admin.delete_consumer_groups([GROUP])[GROUP].result(REQUEST_SECONDS_MAX)
    admin.delete_topics([TOPIC])[TOPIC].result(REQUEST_SECONDS_MAX)


def read_offsets(text: str) -> list[int]:
    """From the lines of an export, in the order of partitions."""
    rows = sorted((int(row[-2]), int(row[-1])) for row in csv.reader(io.StringIO(text)) if row)
    return [offset for _, offset in rows]


def read_committed(admin: AdminClient) -> list[int]:
    listed = admin.list_consumer_group_offsets([ConsumerGroupTopicPartitions(GROUP)])
    places = listed[GROUP].result(REQUEST_SECONDS_MAX).topic_partitions
    return [place.offset for place in sorted(places, key=lambda each: each.partition)]


def import_offsets(stack: Stack, file: Path) -> "subprocess.CompletedProcess[str]":
    args = f"--reset-offsets --group {GROUP} --from-file {file} --execute"
    return stack.make("kafka", "tool=consumer-groups", f"args={args}")


def test_tv30_offsets_are_exported_edited_and_imported_but_not_while_the_group_runs(
    stack: Stack, exported: AdminClient, tmp_path: Path
) -> None:
    args = f"--reset-offsets --group {GROUP} --all-topics --to-current --export --dry-run"
    printed = stack.make_output("kafka", "tool=consumer-groups", f"args={args}")
    assert read_offsets(printed) == list(EXPORTED)

    edited = tmp_path / "offsets.csv"
    edited.write_text(printed.replace("8905", "8900"))
    refused = asyncio.run(import_while_joined(stack, edited))
    assert "is inactive, but the current state is Stable" in refused.stdout + refused.stderr
    assert read_committed(exported) == list(EXPORTED)

    imported = import_offsets(stack, edited)
    assert imported.returncode == 0, imported.stdout + imported.stderr
    assert read_committed(exported) == [8900, *EXPORTED[1:]]


async def import_while_joined(stack: Stack, file: Path) -> "subprocess.CompletedProcess[str]":
    """While the group has a member, which commits nothing."""
    consumer = AIOKafkaConsumer(
        TOPIC, **stack.brokers.options, group_id=GROUP, enable_auto_commit=False
    )
    await consumer.start()
    try:
        async with asyncio.timeout(JOIN_SECONDS_MAX):
            while not consumer.assignment():  # noqa: ASYNC110
                await asyncio.sleep(0.1)
        return await asyncio.to_thread(import_offsets, stack, file)
    finally:
        await consumer.stop()
