"""The processes of a stack, as the services declare them, and where each of them is."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal

from shared.runtime.declarations import API, RELAY, Declarations, Process, Service

Kind = Literal["api", "relay", "consumer", "server", "other"]

CONSOLE = "console"
OBSERVER = "observer"
POSTGRES, KAFKA, JAEGER = SERVERS = ("postgres", "kafka", "jaeger")
"""What the services stand on, by their names in addresses.json."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Entry:
    """One process. `url` is where the console reaches it by HTTP, `link` where a browser does."""

    name: str
    kind: Kind
    service: str
    url: str | None
    link: str | None
    on_request: bool = False

    @property
    def has_document(self) -> bool:
        return self.kind == "api" and self.link is not None


def list_entries(
    declared: Declarations, urls: Mapping[str, str], links: Mapping[str, str]
) -> tuple[Entry, ...]:
    """The servers, then the processes of all services that have an address here."""
    servers = [
        Entry(
            name=name,
            kind="server",
            service="",
            url=urls[name] if is_page(name) else None,
            link=links[name] if is_page(name) else None,
        )
        for name in SERVERS
        if name in links
    ]
    processes = [
        Entry(
            name=process.name,
            kind=get_kind(process),
            service=service.name,
            url=urls[process.name],
            link=links.get(process.name),
            on_request=process.profile is not None,
        )
        for service in declared.services
        for process in service.processes.values()
        if process.name in urls
    ]
    return (*servers, *processes)


def is_page(server: str) -> bool:
    """Whether a browser can open the address of a server."""
    return server == JAEGER


def get_kind(process: Process) -> Kind:
    if process.reads:
        return "consumer"
    if process.command == API:
        return "api"
    return "relay" if process.command == RELAY else "other"


def list_relays(declared: Declarations) -> tuple[str, ...]:
    return declared.names_of(RELAY)


def has_road(service: Service) -> bool:
    """Whether events begin at a service: it records them, and a relay publishes them."""
    return service.has_event_store
