"""What things.v1 holds."""

import json
from uuid import UUID

from things_svc import contract
from things_svc.events import ThingAdded

ADDED = ThingAdded(thing_id=UUID(int=1), name="first")


def test_the_id_is_the_key_of_all_events() -> None:
    public = contract.publish(ADDED)

    assert (public.topic, public.key) == ("things.v1", str(UUID(int=1)))
    assert public.type == "thing-added"


def test_the_public_event_holds_these_fields_and_no_others() -> None:
    value = json.loads(contract.publish(ADDED).value)

    assert value == {"thing_id": str(UUID(int=1)), "name": "first"}
