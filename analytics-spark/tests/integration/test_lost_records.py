"""Topics that were lost: a query that continues at its checkpoint skips what takes their place."""

import argparse
import asyncio
import threading
from collections.abc import Iterator

import psycopg
import pytest
from confluent_kafka.admin import AdminClient
from pyspark.sql import SparkSession

from analytics_spark.job import job
from analytics_spark.job.checkpoint import Checkpoint
from analytics_spark.operations import reprocess
from analytics_spark.settings import JobSettings
from local_stack import republishing
from local_stack.kafka import KAFKA
from local_stack.stack_spec import StackContext, StackSpec
from local_stack.testing import throwaway_stack
from shared.messaging import topics
from shared.messaging.log_ends import RecordsLost
from shared.runtime.brokers import Brokers
from test_support.analytics.histories import HOUR, at, confirmed, sample
from test_support.analytics.running_job import Lent, RunningJob, publish

pytestmark = pytest.mark.verify(part="lost-records")

FROM_SCRATCH = argparse.Namespace(switch=True, from_scratch=True, roll_back=False, drop=False)
"""What `make republish` asks for when all events are published."""

NEW = confirmed("new", "Jack", ("iphone", 1), ordered_at=at(40))
LATER = confirmed("later", "Jack", ("iphone", 1), ordered_at=at(41))


@pytest.fixture
def broker() -> Iterator[StackContext]:
    """A broker of this test alone, without topics."""
    with throwaway_stack(StackSpec(processes=(KAFKA,))) as context:
        yield context


@pytest.fixture
def settings(settings: JobSettings, broker: StackContext) -> JobSettings:
    """Those of a job on that broker, with all topics."""
    lose_topics(broker)
    return settings.model_copy(update={"kafka_bootstrap_servers": broker.address("kafka")})


def lose_topics(broker: StackContext) -> None:
    """All records of the topics are gone."""
    republishing.delete_topics(AdminClient({"bootstrap.servers": broker.address("kafka")}))
    asyncio.run(topics.create(Brokers(broker.address("kafka"))))


def test_without_comparison_and_new_checkpoint_orders_are_skipped_in_silence(
    live: RunningJob,
    settings: JobSettings,
    broker: StackContext,
    spark: SparkSession,
    reader: psycopg.Connection,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """The negative control, between the two mechanisms that prevent it."""
    monkeypatch.setattr(job, "open_session", lambda settings: Lent(spark))
    checkpoint = Checkpoint(settings.checkpoint_dir)
    live.read(*sample())
    lose_topics(broker)
    with pytest.raises(RecordsLost, match="run `make republish`"):
        job.refuse_lost_records(checkpoint, settings.brokers)

    publish(settings.kafka_bootstrap_servers, [NEW, *sample()])
    job.refuse_lost_records(checkpoint, settings.brokers)  # the logs are long enough again
    live.read(LATER)
    assert live.hour(HOUR)[:2] == (4, 5), "one of the two orders is counted"
    assert (live.epoch("bad"), live.epoch("late")) == (0, 0)

    reprocess.run(settings, FROM_SCRATCH, threading.Event())
    assert live.hour(HOUR)[:2] == (4, 6)
