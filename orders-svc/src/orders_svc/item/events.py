"""What happened to an item. Private: the outside sees `contract`."""

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
    item_id: UUID
    price: Decimal
    effective_at: datetime


@dataclass(frozen=True, slots=True, kw_only=True)
class ItemOriginCorrected:
    """The type stays with the origin: the two are what purchases are counted by."""

    item_id: UUID
    type: str
    origin: str
    effective_at: datetime


@dataclass(frozen=True, slots=True, kw_only=True)
class ItemDelisted:
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
