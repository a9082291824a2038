"""Events as bytes: explicit names, exact money, room to grow."""

from dataclasses import dataclass
from datetime import UTC, datetime
from decimal import Decimal
from typing import Any
from uuid import UUID

import pytest
from pydantic import ValidationError

from shared.eventsourcing.codec import Codec, UnknownSchemaVersion


@dataclass(frozen=True, slots=True, kw_only=True)
class Paid:
    order_id: UUID
    amount: Decimal
    paid_at: datetime
    note: str = ""


CODEC: Codec[Paid] = Codec({"order-paid": Paid})
PAID = Paid(
    order_id=UUID(int=1), amount=Decimal("10.10"), paid_at=datetime(2016, 11, 11, tzinfo=UTC)
)


def test_an_event_survives_the_round_trip() -> None:
    assert CODEC.decode("order-paid", CODEC.encode(PAID), 1) == PAID


def test_money_is_a_string_to_the_cent() -> None:
    assert b'"amount":"10.10"' in CODEC.encode(PAID)


def test_a_time_is_utc_with_a_z() -> None:
    assert b'"paid_at":"2016-11-11T00:00:00Z"' in CODEC.encode(PAID)


def test_a_field_of_a_newer_writer_is_ignored() -> None:
    newer = CODEC.encode(PAID).replace(b"{", b'{"colour":"red",', 1)

    assert CODEC.decode("order-paid", newer, 1) == PAID


def test_a_field_with_a_default_may_be_missing_in_old_events() -> None:
    older = CODEC.encode(PAID).replace(b',"note":""', b"")

    assert CODEC.decode("order-paid", older, 1) == PAID


def test_a_missing_field_is_an_error() -> None:
    with pytest.raises(ValidationError):
        CODEC.decode("order-paid", b"{}", 1)


def test_an_unknown_type_is_an_error() -> None:
    with pytest.raises(KeyError):
        CODEC.decode("order-forgotten", b"{}", 1)


@dataclass(frozen=True, slots=True, kw_only=True)
class PaidInCurrency:
    """Paid as its third version has it: renamed fields, and a currency."""

    order: UUID
    sum: Decimal
    currency: str


def with_currency(fields: dict[str, Any]) -> dict[str, Any]:
    return {**fields, "currency": "CNY"}


def with_short_names(fields: dict[str, Any]) -> dict[str, Any]:
    return {
        "order": fields["order_id"],
        "sum": fields["amount"],
        "currency": fields["currency"],
    }


THIRD: Codec[PaidInCurrency] = Codec(
    {"order-paid": PaidInCurrency}, {"order-paid": [with_currency, with_short_names]}
)
THIRD_PAID = PaidInCurrency(order=UUID(int=1), sum=Decimal("10.10"), currency="CNY")


def test_the_version_of_a_type_is_told_by_its_upcasts() -> None:
    assert CODEC.get_version("order-paid") == 1
    assert THIRD.get_version("order-paid") == 3
    assert THIRD.to_public_event(THIRD_PAID, topic="orders.v1", key="key").schema_version == 3


@pytest.mark.parametrize(
    ("version", "data"),
    [
        (1, CODEC.encode(PAID)),
        (2, CODEC.encode(PAID).replace(b"{", b'{"currency":"CNY",', 1)),
        (3, THIRD.encode(THIRD_PAID)),
    ],
)
def test_every_older_version_is_read_as_the_newest(version: int, data: bytes) -> None:
    assert THIRD.decode("order-paid", data, version) == THIRD_PAID


def test_without_its_upcasts_an_older_version_cannot_be_read() -> None:
    """The negative control."""
    with pytest.raises(ValidationError):
        Codec({"order-paid": PaidInCurrency}).decode("order-paid", CODEC.encode(PAID), 1)


@pytest.mark.parametrize("version", [4, 0, -1])
def test_an_unknown_version_is_not_guessed_at(version: int) -> None:
    with pytest.raises(UnknownSchemaVersion, match=f"version {version} of order-paid"):
        THIRD.decode("order-paid", THIRD.encode(THIRD_PAID), version)
