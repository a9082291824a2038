"""Events as bytes: explicit names, exact money, room to grow."""

from dataclasses import dataclass
from datetime import UTC, datetime
from decimal import Decimal
from uuid import UUID

import pytest
from pydantic import ValidationError

from shared.codec import Codec


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
    assert CODEC.decode("order-paid", CODEC.encode(PAID)) == PAID


def test_money_is_a_string_to_the_cent() -> None:
    assert b'"amount":"10.10"' in CODEC.encode(PAID)


def test_a_time_is_utc_with_a_z() -> None:
    assert b'"paid_at":"2016-11-11T00:00:00Z"' in CODEC.encode(PAID)


def test_a_field_of_a_newer_writer_is_ignored() -> None:
    newer = CODEC.encode(PAID).replace(b"{", b'{"colour":"red",', 1)

    assert CODEC.decode("order-paid", newer) == PAID


def test_a_field_with_a_default_may_be_missing_in_old_events() -> None:
    older = CODEC.encode(PAID).replace(b',"note":""', b"")

    assert CODEC.decode("order-paid", older) == PAID


def test_a_missing_field_is_an_error() -> None:
    with pytest.raises(ValidationError):
        CODEC.decode("order-paid", b"{}")


def test_an_unknown_type_is_an_error() -> None:
    with pytest.raises(KeyError):
        CODEC.decode("order-forgotten", b"{}")
