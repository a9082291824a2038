"""SettleThing: its event, the state after it, and none where there is no thing."""

from pathlib import Path

from shared.eventsourcing.testing import given
from things_svc import contract
from things_svc.commands import SettleThing
from things_svc.events import CODEC, ThingSettled
from things_svc.thing import THING

SAMPLE = Path(__file__).parent / "samples/thing-added.v1.json"

FIRST = CODEC.decode("thing-added", SAMPLE.read_bytes(), 1)
EVENT = ThingSettled(thing_id=FIRST.thing_id)


def test_its_event_is_recorded() -> None:
    given(THING, FIRST).when(SettleThing()).then(EVENT)


def test_nothing_is_recorded_where_there_is_no_thing() -> None:
    given(THING).when(SettleThing()).then()


def test_the_state_stays_as_it_is() -> None:
    assert THING.state_after([FIRST, EVENT]) == THING.state_after([FIRST])


def test_its_event_is_public_under_its_name() -> None:
    public = contract.publish(EVENT)

    assert (public.topic, public.type) == ("things.v1", "thing-settled")
