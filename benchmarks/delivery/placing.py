"""placing: requests per second that place orders, beside a bare route with one INSERT."""

import json
from collections.abc import AsyncIterator, Mapping
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass
from pathlib import Path

from benchmarks import servers
from benchmarks.delivery import bare_route, shop
from benchmarks.delivery.shop import Shop
from benchmarks.delivery.sizes import Size
from benchmarks.part import Part
from benchmarks.series import Samples, Series, series
from benchmarks.servers import Running
from local_stack import issuer, ports, postgres
from local_stack.postgres import POSTGRES
from local_stack.stack_spec import HOST, StackContext, StackSpec
from shared.runtime import postgres as service_postgres
from shared.runtime.identifiers import new_id
from shared.runtime.progress import tell_in_place

SERVICE = "orders"
USERS = 200
ITEMS = 20
CONNECTIONS_OF_ALL_WAYS = 8
"""So many for the comparison of keys and traces as well."""
SAMPLED_SHARE = "0.1"
REQUESTS_PER_SECOND_MAX = "1000000"
"""More than one process can answer."""
CLIENT_SECONDS_MORE_MAX = 60
MILLISECONDS = 1_000

BARE = "bare route"
API = "orders-api"
UNTRACED = "orders-api without traces"

RATE = "rate"
SHARE = "own_share"
SERVER_CPU = "CPU per request"
UNITS = {RATE: "1/s", "p50": "ms", "p99": "ms", SERVER_CPU: "ms"}
GOALS = {RATE: "at least 0.5"}


@dataclass(frozen=True, slots=True, kw_only=True)
class Way:
    """How orders are placed: by which process, and with an Idempotency-Key or without."""

    name: str
    server: str
    keys: bool = False


WAYS = (Way(name=BARE, server=BARE), Way(name=API, server=API))
ALL_WAYS = (
    *WAYS,
    Way(name=f"{API}, with keys", server=API, keys=True),
    Way(name=UNTRACED, server=UNTRACED),
    Way(name=f"{UNTRACED}, with keys", server=UNTRACED, keys=True),
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Server:
    running: Running
    address: str


def ways_with(connections: int) -> tuple[Way, ...]:
    return ALL_WAYS if connections == CONNECTIONS_OF_ALL_WAYS else WAYS


async def measure(context: StackContext, size: Size) -> list[Series]:
    samples = Samples(list)
    await create_tables(context)
    async with all_servers(context) as found:
        await open_shop(context, found[API].address)
        bench = Bench(context, found)
        tell_in_place("placing: warming up")
        if size.placing_warm_up_seconds:
            await bench.one_round(size, size.placing_warm_up_seconds, Samples(list))
        for number in range(1, size.rounds + 1):
            tell_in_place(f"placing: round {number} of {size.rounds}")
            await bench.one_round(size, size.placing_seconds, samples)
    return [each for number in size.placing_connections for each in as_series(samples, number)]


async def create_tables(context: StackContext) -> None:
    """Those of the service and the plain one, all with the rights that the service has."""
    dsn = postgres.dsn(context, postgres.owner(SERVICE))
    async with servers.connected(dsn) as connection:
        await connection.execute(bare_route.CREATE)
    await service_postgres.migrate(dsn, "shared", "orders_svc", service_role=SERVICE)


@asynccontextmanager
async def all_servers(context: StackContext) -> AsyncIterator[Mapping[str, Server]]:
    """Each is idle while another one is measured."""
    async with AsyncExitStack() as stack:
        sink = await stack.enter_async_context(serving(context, script("span_sink"), {}))
        api = ["-m", "orders_svc", "api"]
        yield {
            BARE: await stack.enter_async_context(serving(context, script("bare_route"), {})),
            UNTRACED: await stack.enter_async_context(serving(context, api, {})),
            API: await stack.enter_async_context(serving(context, api, traced(sink.address))),
        }


@asynccontextmanager
async def serving(
    context: StackContext, arguments: list[str], more: Mapping[str, str]
) -> AsyncIterator[Server]:
    """One process that serves HTTP, with what the stack tells an API."""
    environment = {
        "ENVIRONMENT": "development",
        "DATABASE_URL": postgres.dsn(context, SERVICE),
        "HTTP_HOST": HOST,
        "HTTP_PORT": str(ports.find_free()),
        "HTTP_REQUESTS_PER_SECOND_MAX": REQUESTS_PER_SECOND_MAX,
        "RELAY_ADDRESS": f"{HOST}:{ports.find_free()}",  # nobody hears it, which is no slower
        **issuer.variables(context.folder),
        **more,
    }
    async with servers.python(context, arguments, environment) as running:
        await servers.until_ready(running, environment)
        yield Server(running=running, address=f"{HOST}:{environment['HTTP_PORT']}")


def script(name: str) -> list[str]:
    return [str(Path(__file__).with_name(f"{name}.py"))]


def traced(collector: str) -> dict[str, str]:
    return {
        "OTEL_EXPORTER_OTLP_ENDPOINT": f"http://{collector}",
        "OTEL_TRACES_SAMPLER": "parentbased_traceidratio",
        "OTEL_TRACES_SAMPLER_ARG": SAMPLED_SHARE,
    }


async def open_shop(context: StackContext, address: str) -> None:
    """With users whom only their orders know: nobody decides on their credit here."""
    token = shop.clerk(context.folder)
    items = await shop.list_items(address, token, ITEMS)
    users = [str(new_id()) for _ in range(USERS)]
    Shop(token=token, users=users, items=items).save(context.folder / shop.FILE)


@dataclass(frozen=True, slots=True)
class Bench:
    """The processes that all rounds share; each round adds to the tables."""

    context: StackContext
    servers: Mapping[str, Server]

    async def one_round(self, size: Size, seconds: int, samples: Samples) -> None:
        for connections in size.placing_connections:
            for way in ways_with(connections):
                found = await self.place(way, connections, seconds)
                for what, value in found.items():
                    samples[name_of(way, connections, what)].append(value)

    async def place(self, way: Way, connections: int, seconds: int) -> dict[str, float]:
        """What the client found, and what each request cost the server."""
        server = self.servers[way.server]
        arguments = [
            *script("closed_loop"),
            *("--shop", str(self.context.folder / shop.FILE)),
            *("--address", server.address),
            *("--connections", str(connections)),
            *("--seconds", str(seconds)),
            *(["--keys"] if way.keys else []),
        ]
        before = server.running.cpu_seconds
        async with servers.python(self.context, arguments, {}) as client:
            await client.finished(seconds + CLIENT_SECONDS_MORE_MAX)
            found: dict[str, float] = json.loads(client.words)
        server.running.demand_alive()
        cpu = (server.running.cpu_seconds - before) * MILLISECONDS
        return found | {SERVER_CPU: cpu / found["answered"]}


def name_of(way: Way, connections: int, what: str) -> str:
    return f"{way.name}, {connections} connections, {what}"


def as_series(samples: Samples, connections: int) -> list[Series]:
    """Each quantity of each way, beside that of the bare route; and how busy the client was."""
    found = []
    for what, unit in UNITS.items():
        bare = series(samples, name_of(WAYS[0], connections, what), unit)
        others = [
            series(
                samples,
                name_of(way, connections, what),
                unit,
                limit=bare,
                goal=GOALS.get(what, "") if way.name == API else "",
            )
            for way in ways_with(connections)[1:]
        ]
        found += [bare, *others]
    client = name_of(WAYS[0], connections, SHARE)
    busy = Series(
        name=f"client, {connections} connections, CPU beside the {BARE}",
        unit="cores",
        rounds=tuple(samples[client]),
    )
    return [*found, busy]


PART = Part(
    name="placing",
    summary=__doc__ or "",
    spec=StackSpec(processes=(POSTGRES,)),
    measure=measure,
)
