"""What orders-svc confirms, analytics counts, also if an order is dated ahead."""

from datetime import timedelta

from analytics_spark.job.records import FUTURE_MAX_MILLISECONDS
from orders_svc.order.order import AHEAD_MAX
from shared.web.field_types import FUTURE_MAX


def test_an_order_that_is_confirmed_is_not_too_far_ahead_to_be_counted() -> None:
    assert FUTURE_MAX < AHEAD_MAX < timedelta(milliseconds=FUTURE_MAX_MILLISECONDS)
