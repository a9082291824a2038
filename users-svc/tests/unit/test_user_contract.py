"""The public events of users.v1, and what is not in them."""

import json
from datetime import UTC, datetime
from decimal import Decimal
from uuid import UUID

from users_svc import contract
from users_svc.events import UserRegistered

REGISTERED = UserRegistered(
    user_id=UUID(int=1),
    personal_data="sealed",
    address="BJ",
    gender="male",
    credit_limit=Decimal("100000.00"),
    effective_at=datetime(2015, 12, 11, tzinfo=UTC),
)


def test_a_user_is_the_key_of_its_events() -> None:
    public = contract.publish(REGISTERED)

    assert (public.topic, public.key) == ("users.v1", str(UUID(int=1)))
    assert public.type == "user-registered"


def test_neither_name_nor_birth_year_leave_the_service() -> None:
    value = json.loads(contract.publish(REGISTERED).value)

    assert value == {
        "user_id": str(UUID(int=1)),
        "address": "BJ",
        "gender": "male",
        "credit_limit": "100000.00",
        "effective_at": "2015-12-11T00:00:00Z",
    }
