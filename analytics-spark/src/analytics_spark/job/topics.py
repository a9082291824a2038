"""The topics that analytics reads, the event types that matter, and their schema."""

from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum

import pyarrow as pa

INSTANT = pa.timestamp("us", "UTC")
AMOUNT = pa.decimal128(12, 2)

SCHEMA_VERSION = 1
"""The version of all event types that the schemas below describe."""


class Kind(StrEnum):
    """The content of a packed row (see `pack`)."""

    ORDERS = "orders"
    USERS = "users"
    ITEMS = "items"
    CLOCK = "clock"
    BAD = "bad"


@dataclass(frozen=True, slots=True, kw_only=True)
class Topic:
    """One topic as analytics sees it.

    `types` are the event types that matter; all others are filtered out before Python sees them.
    `schema` has every field that is read of any of them; the record's key is the field `key`.
    """

    name: str
    kind: Kind
    key: str
    types: frozenset[str]
    schema: Mapping[str, pa.DataType]


CONFIRMED = "order-confirmed"
CANCELLED = "order-cancelled"
DELETED = "user-deleted"

ORDERS = Topic(
    name="orders.v1",
    kind=Kind.ORDERS,
    key="user_id",
    types=frozenset({CONFIRMED, CANCELLED}),
    schema={
        "order_id": pa.string(),
        "user_id": pa.string(),
        "ordered_at": INSTANT,
        "was_confirmed": pa.bool_(),
        "lines": pa.list_(
            pa.struct(
                {
                    "item_id": pa.string(),
                    "quantity": pa.int64(),
                    "unit_price": AMOUNT,
                }
            )
        ),
    },
)
USERS = Topic(
    name="users.v1",
    kind=Kind.USERS,
    key="user_id",
    types=frozenset({"user-registered", "user-moved", DELETED}),
    schema={
        "user_id": pa.string(),
        "effective_at": INSTANT,
        "address": pa.string(),
        "gender": pa.string(),
    },
)
ITEMS = Topic(
    name="items.v1",
    kind=Kind.ITEMS,
    key="item_id",
    types=frozenset({"item-listed", "item-origin-corrected"}),
    schema={
        "item_id": pa.string(),
        "effective_at": INSTANT,
        "origin": pa.string(),
        "type": pa.string(),
    },
)

USER_ATTRIBUTES = {"address": pa.string(), "gender": pa.string()}
ITEM_ATTRIBUTES = {"origin": pa.string(), "type": pa.string()}
