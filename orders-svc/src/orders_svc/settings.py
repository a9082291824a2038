"""The settings of orders-svc beside those that every process has."""

from pydantic import Field

from shared.runtime.settings import Settings


class OrdersSettings(Settings):
    relay_doorbell: str | None = None
    """host:port of the relay's UDP doorbell; without it the relay looks by itself."""
    users_url: str | None = None
    analytics_url: str | None = None
    """Where an order's journey asks: http://host:port. Nothing else needs them."""
    order_timeout_seconds: float = Field(default=30, gt=0)
    """How long an order may wait for an answer about its credit."""
