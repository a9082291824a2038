"""Each command of a thing: its events, a refusal, or nothing."""

from uuid import UUID

from shared.eventsourcing.testing import given
from things_svc.commands import AddThing, RenameThing
from things_svc.events import ThingAdded, ThingRenamed
from things_svc.thing import THING, Added

FIRST = UUID(int=1)
ADD = AddThing(thing_id=FIRST, name="first")
ADDED = ThingAdded(thing_id=FIRST, name="first")
RENAMED = ThingRenamed(thing_id=FIRST, name="other")


def test_a_thing_is_added() -> None:
    given(THING).when(ADD).then(ADDED)


def test_a_thing_that_is_added_again_stays_as_it_is() -> None:
    given(THING, ADDED).when(ADD).then()


def test_a_thing_is_renamed() -> None:
    given(THING, ADDED).when(RenameThing(name="other")).then(RENAMED)


def test_an_unknown_thing_cannot_be_renamed() -> None:
    given(THING).when(RenameThing(name="other")).then_no("unknown-thing")


def test_the_same_name_is_refused() -> None:
    given(THING, ADDED).when(RenameThing(name="first")).then_no("same-name")
    given(THING, ADDED, RENAMED).when(RenameThing(name="other")).then_no("same-name")


def test_the_state_has_the_last_name() -> None:
    assert THING.state_after([ADDED]) == Added(thing_id=FIRST, name="first")
    assert THING.state_after([ADDED, RENAMED]) == Added(thing_id=FIRST, name="other")
