"""The operations of the APIs, as their own documents have them."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from scripts.openapi import Schema, list_operations
from test_support.system.clients import Json
from test_support.system.scene import Scene

SERVICES = ("users-api", "orders-api", "analytics-api")


@dataclass(frozen=True, slots=True, kw_only=True)
class Operation:
    service: str
    method: str
    path: str
    described: Schema

    @property
    def parameters(self) -> list[Json]:
        return list(self.described.get("parameters", []))

    def fill(self, texts: Mapping[str, str], query: str = "") -> str:
        """The path with ids in it, and all that the query must have."""
        path = self.path
        for name, text in texts.items():
            path = path.replace(f"{{{name}}}", text)
        required = [each for each in self.parameters if each["in"] == "query" and each["required"]]
        values = [f"{each['name']}={each['schema'].get('example', 0)}" for each in required]
        return f"{path}?{'&'.join([*values, query])}"


def find_operations(scene: Scene) -> Iterator[Operation]:
    """Every operation of the documents, also a future one."""
    for service in SERVICES:
        document = scene.send("GET", service, "/openapi.json").json()
        for each in list_operations(document):
            yield Operation(
                service=service, method=each.method, path=each.path, described=each.described
            )
