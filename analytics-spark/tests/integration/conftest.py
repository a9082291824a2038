"""Real servers, and a Spark that all tests of this folder share."""

import asyncio
from collections.abc import Iterator
from pathlib import Path

import psycopg
import pytest
from pyspark.sql import SparkSession

from analytics_spark.settings import JobSettings
from fetching import aot_cache, jars
from local_stack.settings import Settings
from local_stack.testing import Databases
from test_support.analytics.running_job import RunningJob, empty_topics


@pytest.fixture
def tables(databases: Databases) -> Iterator[str]:
    """The DSN of a database with the empty tables of analytics."""
    with databases.create("analytics_spark") as dsn:
        yield dsn


@pytest.fixture
def reader(tables: str) -> Iterator[psycopg.Connection]:
    with psycopg.connect(tables, autocommit=True) as connection:
        yield connection


@pytest.fixture(scope="session")
def spark_jars() -> Path:
    """The folder with the jars of Spark's Kafka connector."""
    return jars.fetch(jars.SPARK_JARS, Settings(), lambda line: None)


@pytest.fixture(scope="session")
def aot_cache_file() -> Path:
    """Java's AOT cache of Spark; the first run of all makes it."""
    return aot_cache.make(Settings(), lambda line: None)


@pytest.fixture(scope="session")
def spark(
    spark_jars: Path, aot_cache_file: Path, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[SparkSession]:
    """One session for the run; the queries of the tests bring their own settings."""
    from analytics_spark.job.session import open_session

    settings = JobSettings(
        environment="development",
        database_url="postgresql://nobody@127.0.0.1/nothing",
        checkpoint_dir=tmp_path_factory.mktemp("unused"),
        spark_jars_dir=spark_jars,
        spark_aot_cache=aot_cache_file,
    )
    session = open_session(settings)
    yield session
    session.stop()


@pytest.fixture
def settings(
    tables: str, kafka_servers: str, spark_jars: Path, aot_cache_file: Path, tmp_path: Path
) -> JobSettings:
    """Those of a job with empty topics, an empty checkpoint and empty tables."""
    asyncio.run(empty_topics(kafka_servers))
    return JobSettings(
        database_url=tables,
        kafka_bootstrap_servers=kafka_servers,
        checkpoint_dir=tmp_path / "a checkpoint",
        spark_jars_dir=spark_jars,
        spark_aot_cache=aot_cache_file,
        trigger_milliseconds=50,
    )


@pytest.fixture
def live(spark: SparkSession, settings: JobSettings, reader: psycopg.Connection) -> RunningJob:
    return RunningJob(spark, settings, reader)
