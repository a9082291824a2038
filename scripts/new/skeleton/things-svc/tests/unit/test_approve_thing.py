"""ApproveThing: its event, and its refusal."""

from pathlib import Path

from shared.eventsourcing.testing import given
from things_svc.commands import ApproveThing
from things_svc.events import CODEC, ThingApproved
from things_svc.thing import THING

SAMPLE = Path(__file__).parent / "samples/thing-added.v1.json"

FIRST = CODEC.decode("thing-added", SAMPLE.read_bytes(), 1)
EVENT = ThingApproved(thing_id=FIRST.thing_id)


def test_its_event_is_recorded() -> None:
    given(THING, FIRST).when(ApproveThing()).then(EVENT)


def test_it_is_refused_where_there_is_no_thing() -> None:
    given(THING).when(ApproveThing()).then_no("unknown-thing")
