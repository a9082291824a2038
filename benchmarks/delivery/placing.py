"""placing: requests per second that place orders, compared with a bare route with one INSERT."""

import json
from collections.abc import AsyncIterator, Mapping
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass
from pathlib import Path

from benchmarks import servers
from benchmarks.delivery import bare_route, shop
from benchmarks.delivery.shop import Shop
from benchmarks.delivery.sizes import Size
from benchmarks.goals import ratio_at_least
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
CONNECTIONS_OF_ALL_VARIANTS = 8
"""Keys, traces, and metrics with logs are compared with this many."""
SAMPLED_SHARE = "0.1"
TRACES_PER_SECOND_MAX = "1000000"
REQUESTS_PER_SECOND_MAX = "1000000"
"""More than one process can answer."""
ORDER_WAIT_SECONDS_MAX = "3600"
"""No worker decides on these orders: without it new ones would soon be refused."""
CLIENT_SECONDS_MORE_MAX = 60
MILLISECONDS = 1_000

BARE = "bare route"
API = "orders-api"
UNTRACED = "orders-api without traces"
UNOBSERVED = "orders-api without traces, metrics and logs"

RATE = "rate"
SHARE = "own_share"
SERVER_CPU = "CPU per request"
UNITS = {RATE: "1/s", "p50": "ms", "p99": "ms", SERVER_CPU: "ms"}
GOALS = {RATE: ratio_at_least(0.5)}
GOALS_OF_OBSERVING = {RATE: ratio_at_least(0.95)}
"""Of UNTRACED, compared with UNOBSERVED."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Variant:
    """How orders are placed: by which process, and with an Idempotency-Key or without."""

    name: str
    server: str
    keys: bool = False


VARIANTS = (Variant(name=BARE, server=BARE), Variant(name=API, server=API))
ALL_VARIANTS = (
    *VARIANTS,
    Variant(name=f"{API}, with keys", server=API, keys=True),
    Variant(name=UNTRACED, server=UNTRACED),
    Variant(name=f"{UNTRACED}, with keys", server=UNTRACED, keys=True),
    Variant(name=UNOBSERVED, server=UNOBSERVED),
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Server:
    running: Running
    address: str


def variants_with(connections: int) -> tuple[Variant, ...]:
    return ALL_VARIANTS if connections == CONNECTIONS_OF_ALL_VARIANTS else VARIANTS


async def measure(context: StackContext, size: Size) -> list[Series]:
    samples = Samples(list)
    await create_tables(context)
    async with open_servers(context) as found:
        await open_shop(context, found[API].address)
        bench = Bench(context, found)
        tell_in_place("placing: warming up")
        if size.placing_warm_up_seconds:
            await bench.measure_round(size, size.placing_warm_up_seconds, Samples(list))
        for number in range(1, size.rounds + 1):
            tell_in_place(f"placing: round {number} of {size.rounds}")
            await bench.measure_round(size, size.placing_seconds, samples)
    return [each for number in size.placing_connections for each in as_series(samples, number)]


async def create_tables(context: StackContext) -> None:
    """The tables of the service and the plain one, all with the rights of the service."""
    dsn = postgres.dsn(context, postgres.owner(SERVICE))
    async with servers.connected(dsn) as connection:
        await connection.execute(bare_route.CREATE)
    await service_postgres.migrate(dsn, "shared", "orders_svc", service_role=SERVICE)


@asynccontextmanager
async def open_servers(context: StackContext) -> AsyncIterator[Mapping[str, Server]]:
    """Each is idle while another one is measured."""
    async with AsyncExitStack() as stack:
        sink = await stack.enter_async_context(servers.span_sink(context))
        api = ["-m", "orders_svc", "api"]
        yield {
            BARE: await stack.enter_async_context(
                serve(context, script_arguments("bare_route"), {})
            ),
            UNTRACED: await stack.enter_async_context(serve(context, api, {})),
            UNOBSERVED: await stack.enter_async_context(serve(context, api, servers.UNOBSERVED)),
            API: await stack.enter_async_context(
                serve(context, api, create_tracing_settings(sink))
            ),
        }


@asynccontextmanager
async def serve(
    context: StackContext, arguments: list[str], more: Mapping[str, str]
) -> AsyncIterator[Server]:
    """One process that serves HTTP, with the settings that the stack gives to an API."""
    environment = {
        "ENVIRONMENT": "development",
        "DATABASE_URL": postgres.dsn(context, SERVICE),
        "HTTP_HOST": HOST,
        "HTTP_PORT": str(ports.find_free()),
        "HTTP_REQUESTS_PER_SECOND_MAX": REQUESTS_PER_SECOND_MAX,
        "ORDER_WAIT_SECONDS_MAX": ORDER_WAIT_SECONDS_MAX,
        "RELAY_ADDRESS": f"{HOST}:{ports.find_free()}",  # no relay listens, which is as fast
        **issuer.variables(context.folder),
        **more,
    }
    async with servers.python(context, arguments, environment) as running:
        await servers.wait_until_ready(running, environment)
        yield Server(running=running, address=f"{HOST}:{environment['HTTP_PORT']}")


def script_arguments(name: str) -> list[str]:
    return [str(Path(__file__).with_name(f"{name}.py"))]


def create_tracing_settings(collector: str) -> dict[str, str]:
    return {
        "OTEL_EXPORTER_OTLP_ENDPOINT": collector,
        "OTEL_TRACES_SAMPLER": "parentbased_traceidratio",
        "OTEL_TRACES_SAMPLER_ARG": SAMPLED_SHARE,
        "TRACES_PER_SECOND_MAX": TRACES_PER_SECOND_MAX,
    }


async def open_shop(context: StackContext, address: str) -> None:
    """With users that are not registered: no worker decides on their credit here."""
    token = shop.create_token(context.folder)
    items = await shop.list_items(address, token, ITEMS)
    users = [str(new_id()) for _ in range(USERS)]
    Shop(token=token, users=users, items=items).save(context.folder / shop.FILE)


@dataclass(frozen=True, slots=True)
class Bench:
    """The processes that all rounds share; each round adds to the tables."""

    context: StackContext
    servers: Mapping[str, Server]

    async def measure_round(self, size: Size, seconds: int, samples: Samples) -> None:
        for connections in size.placing_connections:
            for variant in variants_with(connections):
                found = await self.place_orders(variant, connections, seconds)
                for what, value in found.items():
                    samples[name_figure(variant, connections, what)].append(value)

    async def place_orders(
        self, variant: Variant, connections: int, seconds: int
    ) -> dict[str, float]:
        """What the client measured, and the server's CPU time per request."""
        server = self.servers[variant.server]
        arguments = [
            *script_arguments("closed_loop"),
            *("--shop", str(self.context.folder / shop.FILE)),
            *("--address", server.address),
            *("--connections", str(connections)),
            *("--seconds", str(seconds)),
            *(["--keys"] if variant.keys else []),
        ]
        before = server.running.cpu_seconds
        async with servers.python(self.context, arguments, {}) as client:
            await client.wait_until_finished(seconds + CLIENT_SECONDS_MORE_MAX)
            found: dict[str, float] = json.loads(client.words)
        server.running.demand_alive()
        cpu = (server.running.cpu_seconds - before) * MILLISECONDS
        return found | {SERVER_CPU: cpu / found["answered"]}


def name_figure(variant: Variant, connections: int, what: str) -> str:
    return f"{variant.name}, {connections} connections, {what}"


def as_series(samples: Samples, connections: int) -> list[Series]:
    """Each quantity of each variant with that of the bare route as its limit; what metrics and logs
    cost; the client's CPU."""
    found: list[Series] = []
    for what, unit in UNITS.items():
        bare = series(samples, name_figure(VARIANTS[0], connections, what), unit)
        others = [
            series(
                samples,
                name_figure(variant, connections, what),
                unit,
                limit=bare,
                goal=GOALS.get(what) if variant.name == API else None,
            )
            for variant in variants_with(connections)[1:]
        ]
        found += [bare, *others]
        if connections == CONNECTIONS_OF_ALL_VARIANTS:
            found.append(compare_unobserved(samples, connections, what, limit=others[-1]))
    client = name_figure(VARIANTS[0], connections, SHARE)
    busy = Series(
        name=f"client, {connections} connections, CPU beside the {BARE}",
        unit="cores",
        rounds=tuple(samples[client]),
    )
    return [*found, busy]


def compare_unobserved(samples: Samples, connections: int, what: str, limit: Series) -> Series:
    """A quantity of the process with metrics and logs; that of the one without is its limit."""
    return Series(
        name=f"orders-api with metrics and logs, {connections} connections, {what}",
        unit=UNITS[what],
        rounds=tuple(samples[f"{UNTRACED}, {connections} connections, {what}"]),
        limit=limit,
        goal=GOALS_OF_OBSERVING.get(what),
    )


PART = Part(
    name="placing",
    summary=__doc__ or "",
    spec=StackSpec(processes=(POSTGRES,)),
    measure=measure,
)
