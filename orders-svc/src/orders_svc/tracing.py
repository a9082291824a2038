"""Attributes of spans that only this service sets."""

ORDER_ID = "app.order.id"
