"""What happened to an item. Private: the outside sees `contract`."""

from dataclasses import dataclass
from datetime import datetime
from decimal import Decimal
from uuid import UUID

from shared.codec import Codec


@dataclass(frozen=True, slots=True, kw_only=True)
class ItemListed:
    item_id: UUID
    name: str
    type: str
    origin: str
    price: Decimal
    effective_at: datetime


ItemEvent = ItemListed

CODEC: Codec[ItemEvent] = Codec({"item-listed": ItemListed})
