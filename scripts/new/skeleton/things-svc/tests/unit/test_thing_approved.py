"""thing-approved: the state after it, and its public form."""

from pathlib import Path

from things_svc import contract
from things_svc.events import CODEC, ThingApproved
from things_svc.thing import THING

SAMPLE = Path(__file__).parent / "samples/thing-added.v1.json"

FIRST = CODEC.decode("thing-added", SAMPLE.read_bytes(), 1)
EVENT = ThingApproved(thing_id=FIRST.thing_id)


def test_the_state_stays_as_it_is() -> None:
    assert THING.state_after([FIRST, EVENT]) == THING.state_after([FIRST])


def test_it_is_public_under_its_name() -> None:
    public = contract.publish(EVENT)

    assert (public.topic, public.type) == ("things.v1", "thing-approved")
