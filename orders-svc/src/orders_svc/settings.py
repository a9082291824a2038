"""The settings of orders-svc beside those that every process has."""

from datetime import timedelta

from pydantic import Field

from shared.runtime.settings import Settings


class OrdersSettings(Settings):
    relay_address: str | None = None
    """host:port where the relay is notified, by UDP; without it the relay only polls."""
    users_url: str | None = None
    analytics_url: str | None = None
    """Where an order's journey asks: http://host:port. Nothing else needs them."""
    order_timeout_seconds: float = Field(default=30, gt=0)
    """How long an order can wait for the decision on its credit."""

    @property
    def order_timeout(self) -> timedelta:
        return timedelta(seconds=self.order_timeout_seconds)
