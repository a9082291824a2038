"""A container has room for a full cache of states, whatever the states are made of.

Every value of an event is an object of its own, as one that was read from the database is.
"""

import re
import tracemalloc
from collections.abc import Callable, Sequence
from datetime import UTC, datetime, timedelta
from decimal import Decimal
from pathlib import Path
from typing import Any
from uuid import UUID

import pytest

from orders_svc.item import item_cache
from orders_svc.item.events import ItemListed, ItemRepriced
from orders_svc.item.item import ITEM
from shared.eventsourcing.decider import Decider
from shared.eventsourcing.state_cache import VALUE_BYTES_MAX, VALUES_MAX, count_values
from shared.runtime.identifiers import new_id
from users_svc.events import CreditReserved, UserMoved, UserRegistered
from users_svc.user import USER

ROOT = Path(__file__).parents[3]
NOW = datetime(2016, 1, 1, tzinfo=UTC)
MEASURED_VALUES = 20_000
MEBIBYTE = 2**20
WITHOUT_CACHES_MIB_MAX = 120
"""What a process takes at rest, 90 to 100 MiB, and for a batch."""


def registered(user: UUID) -> list[Any]:
    return [
        UserRegistered(
            user_id=user,
            personal_data=f"{user}" * 6,
            address=f"BJ{user.int % 1000}",
            gender="female",
            credit_limit=Decimal("100000.00"),
            effective_at=NOW + timedelta(0),
        )
    ]


def with_open_orders(count: int) -> Callable[[UUID], list[Any]]:
    return lambda user: [
        *registered(user),
        *(
            CreditReserved(user_id=user, order_id=new_id(), amount=Decimal(f"{cents}.12"))
            for cents in range(count)
        ),
    ]


def moved(user: UUID) -> list[Any]:
    return registered(user) + [
        UserMoved(user_id=user, address=f"A{n}", gender="male", effective_at=NOW + timedelta(n))
        for n in range(5_000)
    ]


def repriced(count: int) -> Callable[[UUID], list[Any]]:
    def create(item: UUID) -> list[Any]:
        listed = ItemListed(
            item_id=item,
            name=f"item {item}",
            type="phone",
            origin=f"BJ{item.int % 1000}",
            price=Decimal("1.00"),
            effective_at=NOW + timedelta(0),
        )
        return [listed] + [
            ItemRepriced(item_id=item, price=Decimal(f"{n}.5"), effective_at=NOW + timedelta(n))
            for n in range(count)
        ]

    return create


@pytest.mark.parametrize(
    ("decider", "create"),
    [
        pytest.param(USER, registered, id="users without open orders"),
        pytest.param(USER, with_open_orders(6), id="users with a few open orders"),
        pytest.param(USER, with_open_orders(10_000), id="users with 10,000 open orders"),
        pytest.param(USER, moved, id="users who move"),
        pytest.param(ITEM, repriced(1), id="items"),
        pytest.param(ITEM, repriced(5_000), id="items with many prices"),
    ],
)
def test_a_value_takes_so_many_bytes_at_most(
    decider: Decider[Any, Any, Any], create: Callable[[UUID], Sequence[Any]]
) -> None:
    states, values = {}, 0
    tracemalloc.start()
    try:
        while values < MEASURED_VALUES:
            stream_id = new_id()
            states[stream_id] = decider.state_after(create(stream_id))
            values += count_values(decider, states[stream_id])
        taken, _ = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()

    assert taken / values <= VALUE_BYTES_MAX


@pytest.mark.parametrize(
    ("file", "limit"),
    [
        ("infra/compose/common.yml", r"^  service:(?:\n    .*)*?\n    mem_limit: (\d+)m$"),
        ("infra/k8s/users.yaml", r"args: \[worker\](?:\n .*)*? limits: \{memory: (\d+)Mi\}"),
        ("infra/k8s/orders.yaml", r"args: \[worker\](?:\n .*)*? limits: \{memory: (\d+)Mi\}"),
        ("infra/k8s/orders.yaml", r"args: \[api\](?:\n .*)*? limits: \{memory: (\d+)Mi\}"),
    ],
)
def test_a_container_has_room_for_full_caches(file: str, limit: str) -> None:
    [mebibytes] = re.findall(limit, (ROOT / file).read_text(), re.MULTILINE)
    caches = (VALUES_MAX + item_cache.VALUES_MAX) * VALUE_BYTES_MAX / MEBIBYTE

    assert caches + WITHOUT_CACHES_MIB_MAX <= int(mebibytes)
