"""The processes with their ports and topics, and the scopes, as the services declare them."""

from collections.abc import Iterator

from scripts.documentation.reference.tables import code, codes, sections, table
from shared.runtime.declarations import Process, load_declarations


def write() -> str:
    return sections(
        "# Processes",
        "Each service declares its processes in its `service.toml`; `make status` has the address"
        " and the state of each. In containers, each process listens on its own port 8000, and the"
        " port here is the one on which an API is published.",
        table(
            ("process", "of", "port", "reads", "writes", "calls the API of", "starts"),
            process_rows(),
        ),
        "## Scopes",
        "What a token allows, and the roles of the development issuer that have it.",
        table(("scope", "of", "allows to", "roles"), scope_rows()),
    )


def process_rows() -> Iterator[tuple[str, ...]]:
    for service in load_declarations().services:
        for process in service.processes.values():
            yield (
                code(process.name),
                service.folder,
                str(process.port),
                codes(process.reads),
                codes(process.writes),
                ", ".join(process.calls),
                describe_start(process),
            )


def describe_start(process: Process) -> str:
    if process.profile is not None:
        return f"on request: `make {process.profile}`"
    return "with the others, in development only" if process.development else "with the others"


def scope_rows() -> Iterator[tuple[str, ...]]:
    for service in load_declarations().services:
        for scope in service.scopes.values():
            yield code(scope.name), service.folder, scope.allows, ", ".join(scope.roles)
