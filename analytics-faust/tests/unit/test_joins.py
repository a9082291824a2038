"""The two joins, without Kafka."""

from datetime import UTC, datetime, timedelta, timezone
from decimal import Decimal
from uuid import UUID

import pytest

from analytics_faust.joins import LINE, PURCHASE, get_hour_start, to_cents, to_lines, to_purchase
from analytics_faust.messages import OrderCancelled, OrderConfirmed, OrderLine

ORDER, USER, IPHONE = UUID(int=1), UUID(int=2), UUID(int=3)
AT = datetime(2016, 11, 11, 0, 30, tzinfo=UTC)
LINES = (OrderLine(item_id=IPHONE, quantity=3, unit_price=Decimal("5388.88")),)
CONFIRMED = OrderConfirmed(order_id=ORDER, user_id=USER, lines=LINES, ordered_at=AT)


def cancelled(*, was_confirmed: bool = True) -> OrderCancelled:
    return OrderCancelled(
        order_id=ORDER, user_id=USER, lines=LINES, ordered_at=AT, was_confirmed=was_confirmed
    )


def test_a_line_from_home_is_a_purchase_of_its_hour() -> None:
    [line] = to_lines(CONFIRMED, 2, "BJ")
    purchase = to_purchase(line, "BJ")

    assert purchase is not None
    assert (purchase.hour, purchase.user_id) == (datetime(2016, 11, 11, tzinfo=UTC), USER)
    assert (purchase.version, purchase.quantity, purchase.cents) == (2, 3, 16_166_64)


@pytest.mark.parametrize("origin", ["SH", None, "bj"])
def test_a_line_from_elsewhere_or_of_an_unknown_item_is_none(origin: str | None) -> None:
    [line] = to_lines(CONFIRMED, 2, "BJ")

    assert to_purchase(line, origin) is None


def test_an_order_of_an_unknown_user_has_no_lines() -> None:
    assert to_lines(CONFIRMED, 2, None) == []


@pytest.mark.parametrize(("address", "origin"), [("BJ", "SH"), (None, None)])
def test_a_cancellation_needs_neither_user_nor_item(
    address: str | None, origin: str | None
) -> None:
    """It takes out what was counted, wherever the user lives now."""
    [line] = to_lines(cancelled(), 3, address)
    purchase = to_purchase(line, origin)

    assert purchase is not None
    assert (purchase.version, purchase.quantity, purchase.cents) == (3, 0, 0)


def test_an_order_cancelled_before_its_confirmation_never_counted() -> None:
    assert to_lines(cancelled(was_confirmed=False), 3, "BJ") == []


def test_lines_and_purchases_survive_json() -> None:
    [line] = to_lines(CONFIRMED, 2, "BJ")
    purchase = to_purchase(line, "BJ")

    assert LINE.validate_json(LINE.dump_json(line)) == line
    assert purchase is not None
    assert PURCHASE.validate_json(PURCHASE.dump_json(purchase)) == purchase


def test_hours_are_those_of_utc_whatever_the_zone() -> None:
    india = timezone(timedelta(hours=5, minutes=30))

    assert get_hour_start(datetime(2016, 11, 11, 6, 0, tzinfo=india)) == datetime(
        2016, 11, 11, tzinfo=UTC
    )
    assert get_hour_start(AT.replace(minute=59, second=59, microsecond=999_999)) == AT.replace(
        minute=0
    )


def test_cents_are_exact() -> None:
    """TV-4: with binary floats, 91 times this price is inexact."""
    assert 91 * to_cents(Decimal("4888.88")) == 444_888_08
