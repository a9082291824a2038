"""The commands to an item."""

from dataclasses import dataclass
from datetime import datetime
from decimal import Decimal
from uuid import UUID


@dataclass(frozen=True, slots=True, kw_only=True)
class ListItem:
    item_id: UUID
    name: str
    type: str
    origin: str
    price: Decimal
    effective_at: datetime


@dataclass(frozen=True, slots=True, kw_only=True)
class RepriceItem:
    price: Decimal
    effective_at: datetime


@dataclass(frozen=True, slots=True, kw_only=True)
class CorrectItemOrigin:
    origin: str
    effective_at: datetime


@dataclass(frozen=True, slots=True, kw_only=True)
class DelistItem:
    effective_at: datetime


ItemCommand = ListItem | RepriceItem | CorrectItemOrigin | DelistItem
