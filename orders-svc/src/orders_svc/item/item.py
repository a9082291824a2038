"""An item as two pure functions: `decide` what a command leads to, `evolve` by what happened."""

from collections.abc import Sequence
from dataclasses import dataclass
from decimal import Decimal
from uuid import UUID

from orders_svc.item.commands import ItemCommand
from orders_svc.item.events import ItemEvent, ItemListed
from shared.decider import Decider


@dataclass(frozen=True, slots=True, kw_only=True)
class Item:
    """An item as it is listed."""

    item_id: UUID
    name: str
    type: str
    origin: str
    price: Decimal


def decide(command: ItemCommand, item: Item | None) -> Sequence[ItemEvent]:
    """What a command leads to."""
    return [
        ItemListed(
            item_id=command.item_id,
            name=command.name,
            type=command.type,
            origin=command.origin,
            price=command.price,
            effective_at=command.effective_at,
        )
    ]


def evolve(item: Item | None, event: ItemEvent) -> Item | None:
    """The state after one more event."""
    return Item(
        item_id=event.item_id,
        name=event.name,
        type=event.type,
        origin=event.origin,
        price=event.price,
    )


ITEM: Decider[ItemCommand, Item | None, ItemEvent] = Decider(
    initial=None, decide=decide, evolve=evolve
)
