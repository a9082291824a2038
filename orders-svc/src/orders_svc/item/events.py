"""What happened to an item. The event store holds these.

`contract` lists those that are public; their docstrings are published with them, as descriptions.
"""

from dataclasses import dataclass
from datetime import datetime
from decimal import Decimal
from uuid import UUID

from shared.eventsourcing.codec import Codec


@dataclass(frozen=True, slots=True, kw_only=True)
class ItemListed:
    item_id: UUID
    name: str
    type: str
    origin: str
    price: Decimal
    effective_at: datetime


@dataclass(frozen=True, slots=True, kw_only=True)
class ItemRepriced:
    """Orders hold the price at which they were placed; this changes none of them."""

    item_id: UUID
    price: Decimal
    effective_at: datetime


@dataclass(frozen=True, slots=True, kw_only=True)
class ItemOriginCorrected:
    """The item comes from `origin` since `effective_at`, which may lie in the past."""

    # Purchases are counted by origin and type.
    item_id: UUID
    type: str
    origin: str
    effective_at: datetime


@dataclass(frozen=True, slots=True, kw_only=True)
class ItemDelisted:
    """No order is placed with the item any more; those that were are not touched."""

    item_id: UUID
    effective_at: datetime


ItemEvent = ItemListed | ItemRepriced | ItemOriginCorrected | ItemDelisted

CODEC: Codec[ItemEvent] = Codec(
    {
        "item-listed": ItemListed,
        "item-repriced": ItemRepriced,
        "item-origin-corrected": ItemOriginCorrected,
        "item-delisted": ItemDelisted,
    }
)
