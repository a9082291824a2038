"""What does not fit is said in one line before anything is read."""

import asyncio
import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from aiokafka.admin import NewTopic

from local_stack import issuer
from local_stack.run_folder import RunFolder
from local_stack.testing import throwaway_kafka
from shared.messaging import topics
from shared.runtime.brokers import Brokers
from test_support.kafka_admin import create_topics
from test_support.waits import HANGS_AFTER_SECONDS


@pytest.fixture(scope="module")
def odd_broker() -> Iterator[str]:
    """A broker whose users.v1 was created before, with another number of partitions."""
    with throwaway_kafka() as servers:
        asyncio.run(create_oddly(servers))
        yield servers


async def create_oddly(servers: str) -> None:
    await create_topics(servers, NewTopic("users.v1", 3, 1))
    await topics.create(Brokers(servers))


def run_worker(
    servers: str, issuing: RunFolder, folder: Path
) -> "subprocess.CompletedProcess[str]":
    environment = os.environ | {
        "ENVIRONMENT": "development",
        "KAFKA_BOOTSTRAP_SERVERS": servers,
        "FAUST_DIR": str(folder),
        **issuer.variables(issuing),
    }
    return subprocess.run(
        [sys.executable, "-m", "analytics_faust", "worker"],
        env=environment,
        capture_output=True,
        text=True,
        timeout=HANGS_AFTER_SECONDS,
    )


def test_topics_that_do_not_match_are_refused_with_one_line(
    odd_broker: str, issuing: RunFolder, tmp_path: Path
) -> None:
    refused = run_worker(odd_broker, issuing, tmp_path / "tables")

    assert refused.returncode == 1
    [line] = [line for line in refused.stderr.splitlines() if line.startswith("hometown:")]
    assert "orders.v1 has 4, users.v1 has 3" in line
    assert "Traceback" not in refused.stderr
    assert not (tmp_path / "tables").exists()


def test_an_unavailable_broker_is_reported_in_one_line(issuing: RunFolder, tmp_path: Path) -> None:
    refused = run_worker("127.0.0.1:1", issuing, tmp_path)

    assert refused.returncode == 1
    assert "hometown: analytics-faust cannot start: " in refused.stderr
    assert "Traceback" not in refused.stderr
