"""Trap T22: money as floating point. There is no float in anything that carries values."""

import json
import pkgutil
import typing
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, is_dataclass
from importlib import import_module
from types import ModuleType
from typing import Any

import pyarrow as pa
import pytest
from pydantic import BaseModel

import orders_svc
import users_svc
from contracts.contract_files import ROOT
from contracts.promises import SPARK_TOPICS


def modules_of(package: ModuleType) -> list[str]:
    """All modules of a service but its settings, where seconds may be fractions."""
    found = pkgutil.walk_packages(package.__path__, f"{package.__name__}.")
    return [each.name for each in found if not each.name.endswith(("settings", ".__main__"))]


CARRIERS = [
    *modules_of(users_svc),
    *modules_of(orders_svc),
    "analytics_spark.serving.api",
    "analytics_spark.job.cells",
    "analytics_spark.serving.hour_queries",
    "shared.messaging.messages",
]
"""Modules with events, commands, contracts, states, rows, requests and responses."""

Class = type[Any]


def classes_of(module: ModuleType) -> list[Class]:
    """The dataclasses and models that a module defines."""
    return [
        each
        for each in vars(module).values()
        if isinstance(each, type)
        and each.__module__ == module.__name__
        and (is_dataclass(each) or issubclass(each, BaseModel))
    ]


def floats_in(class_: Class) -> list[str]:
    """The fields in which a float may be, however deep."""
    hints = typing.get_type_hints(class_, include_extras=True)
    return [name for name, hint in hints.items() if float in parts_of(hint)]


def parts_of(hint: Any) -> Iterator[Any]:
    """A type and all that it is made of."""
    yield hint
    for part in typing.get_args(hint):
        yield from parts_of(part)


@pytest.mark.parametrize("name", CARRIERS)
def test_trap_t22_no_value_that_travels_is_a_float(name: str) -> None:
    classes = classes_of(import_module(name))

    assert {class_.__name__: floats for class_ in classes if (floats := floats_in(class_))} == {}


def test_trap_t22_the_classes_that_matter_are_among_those() -> None:
    names = {class_.__name__ for name in CARRIERS for class_ in classes_of(import_module(name))}

    assert names >= {"PlaceOrder", "OrderPlaced", "OrderLine", "PlaceOrderRequest", "OrderResponse"}
    assert names >= {"RegisterUser", "UserRegistered", "RegisterUserRequest", "UserResponse"}
    assert names >= {"ListItem", "ItemListed", "ListItemRequest", "ItemResponse", "PublicEvent"}


@dataclass(frozen=True, slots=True, kw_only=True)
class PaidInFloats:
    order_id: str
    amount: float
    tips: tuple[float, ...] | None
    by_currency: Mapping[str, float]


class PaidInFloatsRequest(BaseModel):
    amount: float | None = None


def test_a_class_with_a_float_is_found() -> None:
    """The negative control."""
    assert floats_in(PaidInFloats) == ["amount", "tips", "by_currency"]
    assert floats_in(PaidInFloatsRequest) == ["amount"]


def test_trap_t22_no_contract_says_number() -> None:
    schemas = sorted((ROOT / "schemas").glob("*/*.json"))

    assert schemas
    for path in (*schemas, ROOT / "released.json", ROOT / "asyncapi.json"):
        assert "number" not in types_in(json.loads(path.read_text())), path


def types_in(schema: Any) -> set[str]:
    """The JSON types that a document allows anywhere."""
    match schema:
        case dict():
            inner = [types_in(each) for each in schema.values()]
            own = {schema["type"]} if isinstance(schema.get("type"), str) else set()
            return own.union(*inner)
        case list():
            return set().union(*(types_in(each) for each in schema))
        case _:
            return set()


def test_a_number_in_a_contract_is_found() -> None:
    """The negative control."""
    assert "number" in types_in({"properties": {"a": {"anyOf": [{"type": "number"}]}}})


@pytest.mark.parametrize("topic", SPARK_TOPICS, ids=lambda topic: topic.name)
def test_trap_t22_spark_reads_no_float(topic: Any) -> None:
    assert not any(pa.types.is_floating(part) for part in arrow_parts_of(pa.struct(topic.schema)))


def arrow_parts_of(type_: Any) -> Iterator[Any]:
    yield type_
    for index in range(type_.num_fields):
        yield from arrow_parts_of(type_.field(index).type)


def test_a_float_of_spark_is_found() -> None:
    """The negative control."""
    form = pa.struct({"lines": pa.list_(pa.struct({"price": pa.float64()}))})

    assert pa.float64() in arrow_parts_of(form)
