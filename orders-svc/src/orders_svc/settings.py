"""The settings of orders-svc, besides those of every process."""

from datetime import timedelta

from pydantic import Field

from shared.runtime.settings import Settings


class OrdersSettings(Settings):
    relay_address: str | None = None
    """host:port of the relay's notifications, by UDP; without it the relay only polls."""
    users_url: str | None = None
    analytics_url: str | None = None
    """http://host:port of the services of which a journey is composed; used for nothing else."""
    order_timeout_seconds: float = Field(default=30, gt=0)
    """How long an order can wait for the decision on its credit."""
    order_wait_seconds_max: float = Field(default=3, gt=0)
    """New orders are refused while earlier ones wait for longer than this; the order timeout, or
    more, refuses none."""

    @property
    def order_timeout(self) -> timedelta:
        return timedelta(seconds=self.order_timeout_seconds)

    @property
    def order_wait_max(self) -> timedelta:
        return timedelta(seconds=self.order_wait_seconds_max)
