"""Every reader's view matches the contract, and one that does not is reported."""

from dataclasses import dataclass, replace
from decimal import Decimal
from typing import Any, Literal
from uuid import UUID

import pyarrow as pa
import pytest

from analytics_spark.job.topics import USERS
from contracts import views
from contracts.promises import SPARK_READER, VIEWS, types_read, view
from contracts.views import misread_by, misread_by_spark, misreadings
from shared.eventsourcing.codec import Codec
from shared.messaging.topics import TOPICS

ORDERS_WORKER = "orders-worker"


def test_every_reader_asks_for_what_the_contract_has() -> None:
    assert misreadings() == []


def test_the_readers_are_those_that_the_topics_declare() -> None:
    declared = {(reader, topic.name) for topic in TOPICS.values() for reader in topic.readers}

    assert types_read().keys() == declared
    assert {each.reader for each in VIEWS} | {SPARK_READER} == {reader for reader, _ in declared}


@dataclass(frozen=True, slots=True, kw_only=True)
class AnotherField:
    amount_in_cents: int


@dataclass(frozen=True, slots=True, kw_only=True)
class AnotherType:
    amount: int


@dataclass(frozen=True, slots=True, kw_only=True)
class MoneyOfAnyText:
    reason: Decimal


@dataclass(frozen=True, slots=True, kw_only=True)
class FewValues:
    reason: Literal["insufficient-credit"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Fitting:
    order_id: str
    user_id: UUID
    amount: Decimal
    reason: str | None


@pytest.mark.parametrize(
    ("class_", "sentence"),
    [
        (AnotherField, "requires `amount_in_cents`, which does not exist"),
        (AnotherType, "`amount`: requires type integer, and gets string"),
        (MoneyOfAnyText, "`reason`: requires pattern ^[0-9]"),
        (FewValues, "`reason`: knows only ['insufficient-credit'], and can get any value"),
    ],
)
def test_a_view_that_asks_for_something_else_is_found(class_: type, sentence: str) -> None:
    """The negative control."""
    other = view(ORDERS_WORKER, "users.v1", Codec({"credit-refused": class_}))

    [found] = misread_by(other, "credit-refused")
    assert found.startswith("orders-worker reads users.v1 credit-refused: ")
    assert sentence in found


def test_a_view_may_ask_for_less() -> None:
    fitting = view(ORDERS_WORKER, "users.v1", Codec({"credit-refused": Fitting}))

    assert list(misread_by(fitting, "credit-refused")) == []


def test_a_view_of_another_version_is_found() -> None:
    def upcast(fields: dict[str, Any]) -> dict[str, Any]:
        return fields

    newer: Codec[Any] = Codec({"credit-refused": Fitting}, {"credit-refused": [upcast]})
    [found] = misread_by(view(ORDERS_WORKER, "users.v1", newer), "credit-refused")

    assert "knows version 2, and version 1 is written" in found


def test_a_view_of_a_type_that_nobody_writes_is_found() -> None:
    unheard = view(ORDERS_WORKER, "users.v1", Codec({"unheard-of": Fitting}))

    assert list(misread_by(unheard, "unheard-of")) == [
        "orders-worker reads users.v1 unheard-of: there is no such type"
    ]


@pytest.mark.parametrize(
    ("schema", "sentence"),
    [
        ({"address_line": pa.string()}, "`address_line`: no type has such a field"),
        ({"address": pa.int64()}, "`address`: requires type integer, and gets string"),
        ({"gender": pa.decimal128(12, 2)}, "`gender`: requires pattern ^[0-9]"),
        ({"gender": pa.timestamp("us", "UTC")}, "`gender`: requires format date-time"),
        ({"amount": pa.string()}, "`amount`: no type has such a field"),
    ],
)
def test_a_form_of_spark_that_asks_for_something_else_is_found(schema: Any, sentence: str) -> None:
    """Also for a field of a type that Spark does not read."""
    found = list(misread_by_spark(replace(USERS, schema=schema)))

    assert found
    assert all(each.startswith(f"analytics-job reads users.v1: {sentence}") for each in found)


def test_a_version_that_spark_does_not_know_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(views, "SCHEMA_VERSION", 0)

    moved = "analytics-job reads users.v1 user-moved: knows version 0 only: give the contract a"
    assert any(each.startswith(moved) for each in misreadings())
