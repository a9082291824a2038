"""The map of the system: the parent of each span in the trace of a confirmed order."""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Step:
    """A span by its service and name."""

    service: str
    operation: str


ORDER_PLACED = Step("orders-api", "POST /v1/orders")
PLACEMENT_APPENDED = Step("orders-api", "append order")
PLACEMENT_SENT = Step("orders-relay", "send orders.v1")
PLACEMENT_PROCESSED = Step("users-worker", "process orders.v1")
CREDIT_APPENDED = Step("users-worker", "append user")
CREDIT_SENT = Step("users-relay", "send users.v1")
CREDIT_PROCESSED = Step("orders-worker", "process users.v1")
CONFIRMATION_APPENDED = Step("orders-worker", "append order")
CONFIRMATION_SENT = Step("orders-relay", "send orders.v1")
COUNTED = Step("analytics-job", "merge cell")
BATCH = Step("analytics-job", "merge batch")

EDGES = [
    (ORDER_PLACED, PLACEMENT_APPENDED),
    (PLACEMENT_APPENDED, PLACEMENT_SENT),
    (PLACEMENT_SENT, PLACEMENT_PROCESSED),
    (PLACEMENT_PROCESSED, CREDIT_APPENDED),
    (CREDIT_APPENDED, CREDIT_SENT),
    (CREDIT_SENT, CREDIT_PROCESSED),
    (CREDIT_PROCESSED, CONFIRMATION_APPENDED),
    (CONFIRMATION_APPENDED, CONFIRMATION_SENT),
    (CONFIRMATION_SENT, COUNTED),
]
"""(parent, child), from the request to the cell that counts the order."""
