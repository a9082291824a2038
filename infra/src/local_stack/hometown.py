"""The stack that the services declare: a process for each of theirs, on PostgreSQL and Kafka."""

import os
import sys
from collections.abc import Mapping, Sequence

from local_stack import issuer
from local_stack.jaeger import JAEGER
from local_stack.kafka import KAFKA
from local_stack.needs import Need, find_needs
from local_stack.postgres import POSTGRES, RECONCILER, dsn, owner
from local_stack.readiness import http_probe
from local_stack.settings import LEVEL_PREFIX, variable
from local_stack.stack_spec import (
    HOST,
    READY_SECONDS_MAX,
    STOP_SECONDS_MAX,
    Port,
    Preparation,
    Process,
    StackContext,
    StackSpec,
    Tool,
)
from shared.runtime import declarations
from shared.runtime.declarations import API, RELAY, Declarations, Service, load_declarations


def build_spec(declared: Declarations) -> StackSpec:
    """The whole stack.

    Raises:
        DeclarationError: a process needs what this stack does not have.
    """
    databases = [service for service in declared.services if service.database]
    return StackSpec(
        processes=(
            POSTGRES,
            KAFKA,
            JAEGER,
            *(
                build_process(declared, service, process)
                for service in declared.services
                for process in service.processes.values()
            ),
        ),
        preparations=(
            *(build_migration(service) for service in databases),
            Preparation(
                name="topics",
                command=module("shared.messaging.topics"),
                environment=lambda context: {"KAFKA_BOOTSTRAP_SERVERS": context.address("kafka")},
            ),
        ),
        tools=tuple(build_tool(service) for service in databases),
    )


def module(*arguments: str) -> Sequence[str]:
    """`python -m` with the interpreter that runs this."""
    return [sys.executable, "-m", *arguments]


def build_process(
    declared: Declarations, service: Service, process: declarations.Process
) -> Process:
    needs = find_needs(process.needs)

    def environment(context: StackContext) -> Mapping[str, str]:
        return {
            **shared_variables(context),
            **({"DATABASE_URL": dsn(context, service.name)} if service.database else {}),
            "HTTP_HOST": HOST,
            "HTTP_PORT": str(context.ports[process.name]),
            **(relay_address(service, context) if process.notifies else {}),
            **{
                f"{name.upper()}_URL": f"http://{context.address(api_name(declared, name))}"
                for name in process.calls
            },
            **needed_variables(needs, context),
            **log_variables(process.name),
        }

    def prepare(context: StackContext) -> None:
        for need in needs:
            need.prepare(context)

    return Process(
        name=process.name,
        command=lambda context: module(service.package, process.command),
        environment=environment,
        ports=(Port(name=process.name, default=process.port, scheme="http://"),),
        prepare=prepare,
        probe=http_probe(process.name, "/health/ready"),
        ready_seconds_max=max([READY_SECONDS_MAX, *(need.ready_seconds_max for need in needs)]),
        stop_seconds_max=max([STOP_SECONDS_MAX, *(need.stop_seconds_max for need in needs)]),
        replaced_on="HUP" if process.command == API else None,
        required=process.profile is None,
        on_request=process.profile is not None,
    )


def shared_variables(context: StackContext) -> Mapping[str, str]:
    """Where a process finds the others, and which issuer it trusts."""
    return {
        "ENVIRONMENT": "development",
        "KAFKA_BOOTSTRAP_SERVERS": context.address("kafka"),
        **trace_variables(context),
        **issuer.variables(context.folder),
    }


def trace_variables(context: StackContext) -> Mapping[str, str]:
    """Where spans go; nowhere in a stack without Jaeger."""
    if "otlp" not in context.ports:
        return {}
    return {"OTEL_EXPORTER_OTLP_ENDPOINT": f"http://{context.address('otlp')}"}


def log_variables(process: str) -> Mapping[str, str]:
    """The level of one process alone; without a setting of its own, it inherits that of all."""
    level = os.environ.get(variable(LEVEL_PREFIX, process))
    return {"LOG_LEVEL": level} if level else {}


def api_name(declared: Declarations, service: str) -> str:
    return declared.service(service).processes[API].name


def relay_address(service: Service, context: StackContext) -> Mapping[str, str]:
    """Where a writer notifies the relay of its service: UDP, on the port of its health checks."""
    return {"RELAY_ADDRESS": context.address(service.processes[RELAY].name)}


def needed_variables(needs: Sequence[Need], context: StackContext) -> Mapping[str, str]:
    return {name: value for need in needs for name, value in need.variables(context).items()}


def owner_variables(service: Service, context: StackContext) -> Mapping[str, str]:
    """For what the role of a service cannot do."""
    return {
        **shared_variables(context),
        "DATABASE_URL": dsn(context, owner(service.name)),
        "DATABASE_SERVICE_ROLE": service.name,
        "DATABASE_READER_ROLE": RECONCILER,
    }


def build_migration(service: Service) -> Preparation:
    return Preparation(
        name=f"{service.name} tables",
        command=module(service.package, "migrate"),
        environment=lambda context: owner_variables(service, context),
    )


def build_tool(service: Service) -> Tool:
    """The commands of a service that run to their end."""
    needs = find_needs(service.tool.needs)

    def environment(context: StackContext) -> Mapping[str, str]:
        return {
            **owner_variables(service, context),
            **(relay_address(service, context) if service.has_event_store else {}),
            **needed_variables(needs, context),
        }

    return Tool(name=service.name, command=module(service.package), environment=environment)


HOMETOWN = build_spec(load_declarations())
