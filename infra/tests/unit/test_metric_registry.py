"""The registry of metrics has every instrument of the code, and no other."""

import ast
from collections.abc import Iterator
from pathlib import Path

import pytest

from shared.runtime.declarations import load_declarations
from test_support.metric_registry import REGISTRY

CHECKOUT = Path(__file__).parents[3]
KINDS = {"Count": "counter", "measure": "histogram", "Gauge": "gauge"}
"""By the function of shared.runtime.metrics that creates an instrument."""


def find_instruments() -> Iterator[tuple[str, dict[str, str]]]:
    """The name of each instrument in the code of services, with its kind, unit and description."""
    folders = ["shared", *(service.folder for service in load_declarations().services)]
    for folder in folders:
        for file in (CHECKOUT / folder / "src").rglob("*.py"):
            for node in ast.walk(ast.parse(file.read_text())):
                match node:
                    case ast.Call(func=function, args=[ast.Constant(), *_]) if kind := (
                        find_kind(function)
                    ):
                        name, unit, description = map(ast.literal_eval, node.args[:3])
                        yield name, {"kind": kind, "unit": unit, "description": description}


def find_kind(function: ast.expr) -> str | None:
    match function:
        case ast.Attribute(value=ast.Name(id="metrics"), attr=called):
            return KINDS.get(called)
        case ast.Name(id="Gauge"):  # in the module itself
            return KINDS["Gauge"]
    return None


def test_the_registry_has_the_instruments_of_the_code() -> None:
    found = list(find_instruments())

    assert len(found) == len(dict(found)), "an instrument is created once"
    assert dict(found) == {
        name: {key: entry[key] for key in ("kind", "unit", "description")}
        for name, entry in REGISTRY.items()
        if "view" not in entry
    }


@pytest.mark.parametrize("name", REGISTRY)
def test_the_name_for_prometheus_follows_from_the_name(name: str) -> None:
    entry = REGISTRY[name]
    words = [name.replace(".", "_")]
    words += {"s": ["seconds"], "By": ["bytes"]}.get(entry["unit"], [])
    words += ["total"] if entry["kind"] == "counter" else []

    assert entry["exposed_as"] == "_".join(words)


def test_names_are_in_their_order() -> None:
    assert list(REGISTRY) == sorted(REGISTRY)
