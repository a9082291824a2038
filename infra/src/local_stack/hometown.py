"""The process table: adding a service to the stack is one entry here."""

import sys
from collections.abc import Callable, Mapping, Sequence

from fetching import class_archive
from fetching.jars import SPARK_JARS, fetch
from fetching.java import find_java, home_of
from local_stack import issuer
from local_stack.jaeger import JAEGER
from local_stack.kafka import KAFKA
from local_stack.postgres import POSTGRES, READ_BY_RECONCILER, RECONCILER, dsn, owner
from local_stack.readiness import http_probe
from local_stack.run_folder import personal_data_key
from local_stack.stack_spec import (
    HOST,
    Port,
    Preparation,
    Process,
    StackContext,
    StackSpec,
    Tool,
    no_files,
    no_variables,
)
from shared.runtime.progress import tell_in_place

SPARK_READY_SECONDS_MAX = 120
SPARK_STOP_SECONDS_MAX = 30
"""A stop during the start waits for Spark to come up, and then for the batch in hand."""

Variables = Callable[[StackContext], Mapping[str, str]]


def module(*arguments: str) -> Sequence[str]:
    """`python -m` with the interpreter that runs this."""
    return [sys.executable, "-m", *arguments]


def surroundings(context: StackContext) -> Mapping[str, str]:
    """Where a process finds the others, and whom it trusts."""
    return {
        "ENVIRONMENT": "development",
        "KAFKA_BOOTSTRAP_SERVERS": context.address("kafka"),
        **traced(context),
        **issuer.variables(context.folder),
    }


def connections(role: str) -> Variables:
    """The same for a service, which has the role of its database."""
    return lambda context: {**surroundings(context), "DATABASE_URL": dsn(context, role)}


def traced(context: StackContext) -> Mapping[str, str]:
    """Where spans go; nowhere in a stack without Jaeger."""
    if "otlp" not in context.ports:
        return {}
    return {"OTEL_EXPORTER_OTLP_ENDPOINT": f"http://{context.address('otlp')}"}


def service(
    name: str,
    *,
    package: str,
    port: int,
    prepare: Callable[[StackContext], None] = no_files,
    variables: Variables = no_variables,
    ready_seconds_max: float = 60,
    stop_seconds_max: int = 15,
) -> Process:
    """`users-api` is the command `api` of its package, works on the database `users`."""
    database, _, role = name.partition("-")

    def environment(context: StackContext) -> Mapping[str, str]:
        http = {"HTTP_HOST": HOST, "HTTP_PORT": str(context.ports[name])}
        return {**connections(database)(context), **http, **variables(context)}

    return Process(
        name=name,
        command=lambda context: module(package, role),
        environment=environment,
        ports=(Port(name=name, default=port, scheme="http://"),),
        prepare=prepare,
        probe=http_probe(name, "/health/ready"),
        ready_seconds_max=ready_seconds_max,
        stop_seconds_max=stop_seconds_max,
    )


def notifies(relay: str) -> Variables:
    """Where a writer notifies the relay of its service: UDP, on the port of its health checks."""
    return lambda context: {"RELAY_ADDRESS": context.address(relay)}


def users_api_variables(context: StackContext) -> Mapping[str, str]:
    """Only the API can open personal data; without its key nobody can."""
    return {
        **notifies("users-relay")(context),
        "PERSONAL_DATA_KEY": personal_data_key(context.folder),
    }


def orders_api_variables(context: StackContext) -> Mapping[str, str]:
    """Where the journey of an order asks."""
    return {
        **notifies("orders-relay")(context),
        "USERS_URL": f"http://{context.address('users-api')}",
        "ANALYTICS_URL": f"http://{context.address('analytics-api')}",
    }


def event_stores(context: StackContext) -> Mapping[str, str]:
    """Where analytics is compared with what happened."""
    return {
        f"{database.upper()}_STORE_URL": dsn(context, RECONCILER, database)
        for database in READ_BY_RECONCILER
    }


def analytics_api_variables(context: StackContext) -> Mapping[str, str]:
    """Where the page's links to traces lead; nowhere in a stack without Jaeger."""
    return (
        {"JAEGER_UI_URL": f"http://{context.address('jaeger')}"}
        if "jaeger" in context.ports
        else {}
    )


def spark_files(context: StackContext) -> None:
    """The connector jars, and the folder that Spark writes to.

    Raises:
        Failure: the jars cannot be had.
    """
    fetch(SPARK_JARS, context.settings, tell_in_place)
    (context.folder / "spark" / "tmp").mkdir(parents=True, exist_ok=True)


def spark_variables(context: StackContext) -> Mapping[str, str]:
    java = find_java()
    return {
        "CHECKPOINT_DIR": str(context.folder / "spark" / "checkpoint"),
        "SPARK_LOCAL_DIRS": str(context.folder / "spark" / "local"),
        "TMPDIR": str(context.folder / "spark" / "tmp"),
        "SPARK_JARS_DIR": str(SPARK_JARS.folder(context.settings)),
        "SPARK_CLASS_ARCHIVE": str(class_archive.file_of(java, context.settings)),
        "JAVA_HOME": str(home_of(java)),
    }


def as_owner(database: str) -> Variables:
    """For what a service's own role may not do."""
    reader = {"DATABASE_READER_ROLE": RECONCILER} if database in READ_BY_RECONCILER else {}
    return lambda context: {
        **connections(owner(database))(context),
        "DATABASE_SERVICE_ROLE": database,
        **reader,
    }


def migration(database: str, package: str) -> Preparation:
    return Preparation(
        name=f"{database} tables",
        command=module(package, "migrate"),
        environment=as_owner(database),
    )


def tool(database: str, package: str) -> Tool:
    """The commands of a service that has a relay."""
    return Tool(
        name=database,
        command=module(package),
        environment=lambda context: {
            **as_owner(database)(context),
            **notifies(f"{database}-relay")(context),
        },
    )


def faust_variables(context: StackContext) -> Mapping[str, str]:
    """It has no database: its tables lie in the run folder, and on Kafka."""
    return {
        **surroundings(context),
        "HTTP_HOST": HOST,
        "HTTP_PORT": str(context.ports["analytics-faust"]),
        "FAUST_DIR": str(context.folder / "faust"),
        "ANALYTICS_URL": f"http://{context.address('analytics-api')}",
    }


# Nothing needs it, and it takes 5 ms of processor time for each order: it starts on request.
ANALYTICS_FAUST = Process(
    name="analytics-faust",
    command=lambda context: module("analytics_faust", "worker"),
    environment=faust_variables,
    ports=(Port(name="analytics-faust", default=8004, scheme="http://"),),
    probe=http_probe("analytics-faust", "/health/ready"),
    required=False,
    on_request=True,
)


HOMETOWN = StackSpec(
    processes=(
        POSTGRES,
        KAFKA,
        JAEGER,
        service("users-api", package="users_svc", port=8001, variables=users_api_variables),
        service("users-relay", package="users_svc", port=8011),
        service("users-worker", package="users_svc", port=8021, variables=notifies("users-relay")),
        service("orders-api", package="orders_svc", port=8002, variables=orders_api_variables),
        service("orders-relay", package="orders_svc", port=8012),
        service(
            "orders-worker", package="orders_svc", port=8022, variables=notifies("orders-relay")
        ),
        service(
            "analytics-api",
            package="analytics_spark",
            port=8003,
            variables=analytics_api_variables,
        ),
        service(
            "analytics-reconciler",
            package="analytics_spark",
            port=8033,
            variables=event_stores,
        ),
        service(
            "analytics-job",
            package="analytics_spark",
            port=8023,
            prepare=spark_files,
            variables=spark_variables,
            ready_seconds_max=SPARK_READY_SECONDS_MAX,
            stop_seconds_max=SPARK_STOP_SECONDS_MAX,
        ),
        ANALYTICS_FAUST,
    ),
    preparations=(
        migration("users", "users_svc"),
        migration("orders", "orders_svc"),
        migration("analytics", "analytics_spark"),
        Preparation(
            name="topics",
            command=module("shared.messaging.topics"),
            environment=lambda context: {"KAFKA_BOOTSTRAP_SERVERS": context.address("kafka")},
        ),
    ),
    tools=(
        tool("users", "users_svc"),
        tool("orders", "orders_svc"),
        Tool(
            name="analytics",
            command=module("analytics_spark"),
            environment=lambda context: {
                **as_owner("analytics")(context),
                **spark_variables(context),
                **event_stores(context),
                "EXPORT_DIR": str(context.folder / "export"),
            },
        ),
    ),
)
