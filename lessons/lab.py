"""What lessons need of a machine; each server is started when it is first asked for."""

from contextlib import ExitStack
from functools import cached_property
from pathlib import Path
from tempfile import TemporaryDirectory

from pyspark.sql import SparkSession

from lessons import spark_engine
from lessons.broker import quietly
from local_stack.testing import Databases, throwaway_postgres


class Lab:
    def __init__(self, servers: str, stack: ExitStack) -> None:
        self.servers = servers
        self._stack = stack

    @cached_property
    def databases(self) -> Databases:
        """Those of a PostgreSQL of its own."""
        return Databases(self._stack.enter_context(quietly(throwaway_postgres()))["postgres"])

    @cached_property
    def session(self) -> SparkSession:
        return self._stack.enter_context(spark_engine.open_session())

    @cached_property
    def folder(self) -> Path:
        """A folder that is gone afterwards."""
        return Path(self._stack.enter_context(TemporaryDirectory(prefix="hometown-lesson-")))
