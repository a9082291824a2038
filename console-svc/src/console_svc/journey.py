"""The journey of an order, as orders-api has it, as a line of time."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

Json = Mapping[str, Any]

WORDS = {
    "recorded": "recorded in the event store",
    "published": "published to {topic}, partition {partition}, offset {offset}",
    "credit-decided": "credit decided by users-worker",
    "counted": "counted by Spark in batch {batch_id}",
    "too-late": "read by Spark in batch {batch_id}: its hour was final",
    "parked": "parked by {process}",
}
"""What each hop of the API means."""

LAST_HOPS = ("counted", "too-late")
FINAL_WITHOUT_COUNT = ("rejected", "cancelled")


@dataclass(frozen=True, slots=True, kw_only=True)
class Hop:
    """One step, with the time since the first one."""

    what: str
    type: str
    at: datetime
    after_milliseconds: float
    reason: str
    detail: str
    trace_id: str | None
    is_bad: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class Journey:
    order_id: str
    status: str
    hops: Sequence[Hop]
    unknown: Sequence[str]
    trace_id: str | None
    """Of the placement, which all later hops of a whole trace belong to."""
    is_over: bool
    """Whether no further hop is expected."""


def build_journey(journey: Json) -> Journey:
    """The line of time of a response of `/v1/orders/<id>/journey`."""
    hops = journey["hops"]
    times = [datetime.fromisoformat(hop["at"]) for hop in hops]
    made = [
        Hop(
            what=WORDS.get(hop["hop"], hop["hop"]).format_map(hop),
            type=hop.get("type") or "",
            at=at,
            after_milliseconds=(at - times[0]).total_seconds() * 1000,
            reason=hop.get("reason") or "",
            detail=describe_cells(hop),
            trace_id=hop.get("trace_id"),
            is_bad=hop["hop"] in ("parked", "too-late") or bool(hop.get("reason")),
        )
        for hop, at in zip(hops, times, strict=True)
    ]
    status = journey["status"]
    is_counted = any(hop["hop"] in LAST_HOPS for hop in hops)
    return Journey(
        order_id=journey["order_id"],
        status=status,
        hops=made,
        unknown=journey["unknown"],
        trace_id=made[0].trace_id if made else None,
        is_over=is_counted or status in FINAL_WITHOUT_COUNT,
    )


def describe_cells(hop: Json) -> str:
    """What is counted of the order's items now."""
    cells = hop.get("cells")
    if cells is None:
        return ""
    if not cells:
        return "no local purchase: the item comes from elsewhere, or was cancelled"
    return "; ".join(
        f"{cell['quantity']} for {cell['amount']} from {cell['address']}, where the buyer lives"
        for cell in cells
    )
