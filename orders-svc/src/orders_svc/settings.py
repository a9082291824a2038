"""The settings of orders-svc, besides those of every process."""

from datetime import timedelta

from pydantic import Field

from shared.runtime.settings import Settings

ORDER_WAIT_SHARE = 1 / 3
"""Of the order timeout: what is left is for a pause that begins while orders wait."""


class OrdersSettings(Settings):
    relay_address: str | None = None
    """host:port of the relay's notifications, by UDP; without it the relay only polls."""
    users_url: str | None = None
    """`http://host:port` of users-svc, for journeys; used for nothing else."""
    analytics_url: str | None = None
    """`http://host:port` of analytics-spark, for journeys; used for nothing else."""
    order_timeout_seconds: float = Field(default=30, gt=0)
    """How long an order can wait for the decision on its credit."""
    order_wait_seconds_max: float | None = Field(default=None, gt=0)
    """New orders are refused while they would wait for longer than this, by default a third of the
    order timeout (ORDER_WAIT_SHARE); the order timeout, or more, refuses none."""

    @property
    def order_timeout(self) -> timedelta:
        return timedelta(seconds=self.order_timeout_seconds)

    @property
    def order_wait_max(self) -> timedelta:
        if self.order_wait_seconds_max is None:
            return self.order_timeout * ORDER_WAIT_SHARE
        return timedelta(seconds=self.order_wait_seconds_max)
