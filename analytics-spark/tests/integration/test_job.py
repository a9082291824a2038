"""The job as a process: ready when it has read all, ended by a signal, loud when it cannot work."""

import asyncio
import contextlib
import os
import socket
import subprocess
import sys
import time
from collections.abc import Iterator, Mapping
from dataclasses import replace
from pathlib import Path

import httpx
import psutil
import psycopg
import pytest

from analytics_spark.job import generations
from analytics_spark.job.checkpoint import Checkpoint
from test_support.analytics.histories import id_of, sample
from test_support.analytics.running_job import empty_topics, publish
from test_support.first_and_long import first_and_long
from test_support.http_server import receiving
from test_support.waits import HANGS_AFTER_SECONDS

LONG = pytest.mark.verify(part="reprocess")
TRACEPARENT = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"
NICENESS = 1
"""Enough to be seen, and not so much that a busy machine makes a job miss these limits."""


@pytest.fixture
def environment(
    tables: str, kafka_servers: str, spark_jars: Path, aot_cache_file: Path, tmp_path: Path
) -> dict[str, str]:
    """The settings of a job on a free port, with empty topics."""
    asyncio.run(empty_topics(kafka_servers))
    with socket.create_server(("127.0.0.1", 0)) as server:
        port = server.getsockname()[1]
    return os.environ | {
        "DATABASE_URL": tables,
        "KAFKA_BOOTSTRAP_SERVERS": kafka_servers,
        "CHECKPOINT_DIR": str(tmp_path / "checkpoint"),
        "SPARK_JARS_DIR": str(spark_jars),
        "SPARK_AOT_CACHE": str(aot_cache_file),
        "HTTP_PORT": str(port),
        "NICENESS": str(NICENESS),
        "TMPDIR": str(tmp_path),  # a job that ends while Spark starts leaves files there
    }


@contextlib.contextmanager
def job_process(environment: Mapping[str, str]) -> Iterator[subprocess.Popen[str]]:
    command = [sys.executable, "-m", "analytics_spark", "job"]
    with subprocess.Popen(command, env=environment, stderr=subprocess.PIPE, text=True) as process:
        try:
            yield process
        finally:
            process.kill()


def started_for(environment: Mapping[str, str]) -> list[psutil.Process]:
    """All processes of this job that are there, also those that have lost their parent."""
    own = ("CHECKPOINT_DIR", environment["CHECKPOINT_DIR"])
    everybody = psutil.process_iter(["environ"])
    return [each for each in everybody if own in (each.info["environ"] or {}).items()]


def wait_until_ready(port: str, process: subprocess.Popen[str]) -> None:
    deadline = time.monotonic() + HANGS_AFTER_SECONDS
    last = "no answer"
    while time.monotonic() < deadline and process.poll() is None:
        with contextlib.suppress(httpx.HTTPError):
            answer = httpx.get(f"http://127.0.0.1:{port}/health/ready")
            if answer.status_code == 200:
                return
            last = answer.text
        time.sleep(0.1)
    pytest.fail(f"the job was not ready: {last}")


def test_a_ready_job_has_counted_what_was_there_and_stops_in_order(
    environment: dict[str, str], kafka_servers: str, reader: psycopg.Connection
) -> None:
    publish(kafka_servers, sample())
    with job_process(environment) as process:
        wait_until_ready(environment["HTTP_PORT"], process)
        assert reader.execute("SELECT counted FROM epochs").fetchall() == [(16,)]
        family = psutil.Process(process.pid).children(recursive=True)
        niceness = min(19, psutil.Process().nice() + NICENESS)
        assert {each.nice() for each in family} == {niceness}, "Java and the workers inherit it"

        process.terminate()
        process.communicate(timeout=HANGS_AFTER_SECONDS)

    assert process.returncode == 0
    _, alive = psutil.wait_procs(family, timeout=HANGS_AFTER_SECONDS)
    assert alive == []


@pytest.fixture
def counted(
    environment: dict[str, str], kafka_servers: str, reader: psycopg.Connection
) -> tuple[int, Path]:
    """The newest batch of a job that has counted all and was killed, and its checkpoint."""
    with job_process(environment) as process:
        wait_until_ready(environment["HTTP_PORT"], process)
        publish(kafka_servers, [replace(each, traceparent=TRACEPARENT) for each in sample()])
        deadline = time.monotonic() + HANGS_AFTER_SECONDS
        while read_counted(reader) != 16 and time.monotonic() < deadline:
            time.sleep(0.1)
        process.terminate()
        process.communicate(timeout=HANGS_AFTER_SECONDS)
    checkpoint = Path(environment["CHECKPOINT_DIR"])
    return Checkpoint(checkpoint).newest_done, checkpoint


def read_counted(reader: psycopg.Connection) -> int:
    row = reader.execute("SELECT coalesce(sum(counted), 0)::int FROM epochs").fetchone()
    assert row is not None
    return int(row[0])


CELLS = "SELECT * FROM cells ORDER BY 1, 2, 3, 4, 5, 6"


@pytest.mark.parametrize(
    ("plan", "names"),
    first_and_long(
        [
            (b"", ["offsets", "commits"]),
            (b'v1\n{"batchWatermarkMs":0,', ["offsets", "commits"]),
            (b"", ["commits"]),
        ],
        LONG,
    ),
    ids=["no-byte", "half-of-a-line", "of-the-commit-alone"],
)
def test_a_job_goes_on_after_a_power_cut_has_torn_its_newest_files(
    environment: dict[str, str],
    counted: tuple[int, Path],
    kafka_servers: str,
    reader: psycopg.Connection,
    plan: bytes,
    names: list[str],
) -> None:
    """The batch runs again, or one more is planned again; nothing is counted twice."""
    newest, checkpoint = counted
    before = reader.execute(CELLS).fetchall()
    if "offsets" in names:
        (checkpoint / "offsets" / str(newest + 1)).write_bytes(plan)
    (checkpoint / "commits" / str(newest)).write_bytes(b"v1")
    publish(kafka_servers, sample())

    with job_process(environment) as process:
        deadline = time.monotonic() + HANGS_AFTER_SECONDS
        while Checkpoint(checkpoint).newest_done <= newest and time.monotonic() < deadline:
            assert process.poll() is None, process.communicate()
            time.sleep(0.1)

    assert reader.execute(CELLS).fetchall() == before, "repeats are counted"
    assert read_counted(reader) == 16


@LONG
def test_a_rescale_exports_the_spans_of_the_batch_that_it_finishes(
    environment: dict[str, str], counted: tuple[int, Path]
) -> None:
    """The job was killed before it had exported them, and will not run that batch again."""
    newest, checkpoint = counted
    (checkpoint / "commits" / str(newest)).unlink()

    with receiving() as (address, received):
        subprocess.run(
            [sys.executable, "-m", "analytics_spark", "rescale", "4"],
            env=environment | {"OTEL_EXPORTER_OTLP_ENDPOINT": address},
            check=True,
        )

    spans = b"".join(received)
    assert b"merge cell" in spans
    assert b"analytics-job" in spans
    assert id_of("Lucy iphone").encode() in spans, "the last one of the sample"


def test_a_job_whose_state_is_torn_ends_with_the_repair(
    environment: dict[str, str], counted: tuple[int, Path], kafka_servers: str
) -> None:
    newest, checkpoint = counted
    torn = list(checkpoint.glob(f"state/0/*/{newest + 1}.changelog"))
    assert torn
    for each in torn:
        each.write_bytes(b"")
    publish(kafka_servers, sample())

    with job_process(environment) as process:
        _, log = process.communicate(timeout=HANGS_AFTER_SECONDS)

    assert process.returncode == 1
    assert log.count("the job ends: ") == 1
    assert f"{checkpoint} is damaged, as by a power cut: run `make republish`" in log


def test_a_job_without_its_database_ends_with_one_line(environment: dict[str, str]) -> None:
    nowhere = {"DATABASE_URL": "postgresql://nobody@127.0.0.1:1/nothing"}
    without = environment | nowhere | {"ENVIRONMENT": "development"}
    with job_process(without) as process:
        _, log = process.communicate(timeout=HANGS_AFTER_SECONDS)

    assert process.returncode == 1
    assert "the job ends: connection failed" in log
    assert "Traceback" not in log
    # Spark has begun to start during the imports.
    _, alive = psutil.wait_procs(started_for(without), timeout=HANGS_AFTER_SECONDS)
    assert alive == []


@LONG
def test_a_job_at_rest_ends_with_one_line_when_another_generation_is_shown(
    environment: dict[str, str], reader: psycopg.Connection
) -> None:
    """Its supervisor starts it again, and then it writes that one."""
    with job_process(environment) as process:
        wait_until_ready(environment["HTTP_PORT"], process)
        generations.show(reader, generations.begin(reader))
        _, log = process.communicate(timeout=HANGS_AFTER_SECONDS)

    assert process.returncode == 1
    assert "the job ends: generation 1 is not the active one any more" in log
    assert "Traceback" not in log


def test_a_job_whose_records_are_lost_ends_with_one_line(environment: dict[str, str]) -> None:
    """Spark would fail again and again, and skip as many records once the log is long enough."""
    plan = Path(environment["CHECKPOINT_DIR"], "offsets", "0")
    plan.parent.mkdir(parents=True)
    plan.write_text('v1\n{"conf": {}}\n{"orders.v1": {"0": 1000000}}\n')
    with job_process(environment) as process:
        _, log = process.communicate(timeout=HANGS_AFTER_SECONDS)

    assert process.returncode == 1
    assert "the job ends: Kafka has lost records of orders.v1/0: offset 1000000 was reached" in log
    assert "run `make republish`" in log
    assert "Traceback" not in log
