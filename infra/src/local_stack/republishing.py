"""`republish`: all topics again from the event stores, and the hours counted from them.

After a topic or a part of one was lost, and after a restore. One verb, because the positions that
others remember belong to records that are gone: the offsets of Spark's checkpoint, those of each
order's events in orders-svc, and those of the consumer groups, which Kafka removes with the topics.
"""

import asyncio
import time
from abc import ABC, abstractmethod
from collections.abc import Awaitable, Callable, Collection

import asyncpg
from confluent_kafka import KafkaException
from confluent_kafka.admin import AdminClient

from fetching.errors import Failure
from local_stack.down import stop_together
from local_stack.kafka import KAFKA
from local_stack.postgres import POSTGRES, READ_BY_RECONCILER, SUPERUSER, dsn
from local_stack.progress import Tone, tell
from local_stack.run_folder import RunFolder
from local_stack.settings import Settings
from local_stack.stack_spec import StackContext, StackSpec, Tier
from local_stack.status import as_found
from local_stack.tools import call_or_fail
from local_stack.up import prepare, runs, start_tier, up, up_foundations
from shared.messaging.topics import TOPICS
from shared.runtime.declarations import RELAY, load_declarations

PUBLISHED_SECONDS_MAX = 3600
REQUEST_SECONDS_MAX = 30
DELETED_SECONDS_MAX = 30
POLL_SECONDS = 0.2
ANALYTICS = "analytics"
REPUBLISH = "run `make republish`"
"""The repair of one that was interrupted."""

IS_PUBLISHED = """
    SELECT target IS NULL
        AND NOT EXISTS (SELECT FROM outbox WHERE transaction_id >= published_xmax)
        AND NOT EXISTS (SELECT FROM outbox WHERE transaction_id = ANY (published_xip))
    FROM relay
"""


class Steps(ABC):
    """What `republish` does in different ways for processes and for containers."""

    @abstractmethod
    def demand_servers(self) -> None:
        """Raises Failure: PostgreSQL or Kafka does not run here."""

    @abstractmethod
    def stop_services(self) -> None:
        """Stop everything but the servers that the services depend on."""

    @abstractmethod
    def delete_topics(self) -> None:
        """See `delete_topics`."""

    @abstractmethod
    def prepare(self) -> None:
        """Create what is missing in the servers, such as topics. Raises Failure."""

    @abstractmethod
    def run_tool(self, service: str, *arguments: str) -> None:
        """Run a command of a service to its end. Raises Failure: it failed."""

    @abstractmethod
    def start(self, names: Collection[str]) -> None:
        """Start these processes, and wait until they are ready. Raises Failure."""

    @abstractmethod
    def start_all(self) -> None:
        """Start everything, and wait until it is ready. Raises Failure."""


class ProcessSteps(Steps):
    """Of a stack of processes."""

    def __init__(self, spec: StackSpec, context: StackContext) -> None:
        self._spec = spec
        self._context = context

    def demand_servers(self) -> None:
        for process in (POSTGRES, KAFKA):
            if not runs(self._context, process):
                raise Failure(f"{process.name} does not run here: `make up`, then again")

    def stop_services(self) -> None:
        stop_together(self._context.folder, self._spec.of(Tier.SERVICE))

    def delete_topics(self) -> None:
        delete_topics(AdminClient({"bootstrap.servers": self._context.address("kafka")}))

    def prepare(self) -> None:
        async def prepare_all() -> None:
            steps = (prepare(self._context, each) for each in self._spec.preparations)
            await asyncio.gather(*steps)

        asyncio.run(prepare_all())

    def run_tool(self, service: str, *arguments: str) -> None:
        call_or_fail(self._spec, self._context, service, *arguments)

    def start(self, names: Collection[str]) -> None:
        started = [each for each in self._spec.processes if each.name in names]
        asyncio.run(start_tier(self._context, started))

    def start_all(self) -> None:
        up(self._spec, self._context.settings)


def republish(spec: StackSpec, settings: Settings) -> None:
    """`republish_all` of a stack of processes. Raises Failure."""
    if RunFolder(settings.run_dir).repair == REPUBLISH:
        up_foundations(spec, settings)  # `up` refuses to
    context = as_found(settings)
    republish_all(ProcessSteps(spec, context), context)


def republish_all(steps: Steps, context: StackContext) -> None:
    """Delete the topics, publish all events again, count again, and start everything.

    One that was interrupted is repeated from its beginning: nothing is started before, because the
    job would count from its old checkpoint, whose offsets belong to the deleted topics.

    Raises:
        Failure: PostgreSQL or Kafka does not run here, or a step failed.
    """
    context.folder.demand_finished(REPUBLISH)
    steps.demand_servers()
    with context.folder.locked():
        steps.stop_services()
        context.folder.begin(REPUBLISH)
        steps.delete_topics()
        steps.prepare()
        for name in READ_BY_RECONCILER:
            steps.run_tool(name, "replay", "--topics-lost")
        publish(steps, context)
        # Only now: an order must not be counted before the moves that it depends on are there.
        steps.run_tool(ANALYTICS, "reprocess", "--from-scratch", "--switch")
        context.folder.finish()
        steps.run_tool(ANALYTICS, "reprocess", "--drop")
    steps.start_all()


def delete_topics(admin: AdminClient) -> None:
    """Delete the topics of events; dead letters stay.

    Raises:
        Failure: the broker refuses, or does not do it in time.
    """

    def find_present() -> list[str]:
        return sorted(TOPICS.keys() & admin.list_topics(timeout=REQUEST_SECONDS_MAX).topics.keys())

    try:
        if present := find_present():
            for deleted in admin.delete_topics(present).values():
                deleted.result(REQUEST_SECONDS_MAX)
        deadline = time.monotonic() + DELETED_SECONDS_MAX
        while present := find_present():
            if time.monotonic() > deadline:
                raise Failure(f"Kafka still has {', '.join(present)} after {DELETED_SECONDS_MAX} s")
            time.sleep(POLL_SECONDS)
    except (KafkaException, TimeoutError) as error:
        raise Failure(f"the topics cannot be deleted: {error}") from error


def publish(steps: Steps, context: StackContext) -> None:
    """Run the relays until everything is published."""
    declared = load_declarations()
    steps.start([declared.service(each).processes[RELAY].name for each in READ_BY_RECONCILER])
    began = time.monotonic()

    async def wait_for_all() -> None:
        waiting = (wait_until_published(context, each) for each in READ_BY_RECONCILER)
        await asyncio.gather(*waiting)

    asyncio.run(wait_for_all())
    tell(f"all events published after {time.monotonic() - began:.1f} s", Tone.GOOD)


async def wait_until_published(context: StackContext, database: str) -> None:
    connection = await asyncpg.connect(dsn(context, SUPERUSER, database))
    try:
        await wait_for(lambda: connection.fetchval(IS_PUBLISHED), PUBLISHED_SECONDS_MAX)
    finally:
        await connection.close()


async def wait_for(is_done: Callable[[], Awaitable[bool]], seconds_max: float) -> None:
    """Ask until it is done. Raises TimeoutError."""
    async with asyncio.timeout(seconds_max):
        while True:
            if await is_done():
                return
            await asyncio.sleep(POLL_SECONDS)
