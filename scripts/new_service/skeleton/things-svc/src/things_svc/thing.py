"""A thing as two pure functions: `decide` on a command, `evolve` by an event."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import assert_never
from uuid import UUID

from shared.eventsourcing.decider import Decider
from shared.eventsourcing.errors import NotFound, Refused
from things_svc.commands import AddThing, RenameThing, ThingCommand
from things_svc.events import ThingAdded, ThingEvent, ThingRenamed

UNKNOWN_THING = "unknown-thing"
SAME_NAME = "same-name"


@dataclass(frozen=True, slots=True, kw_only=True)
class Thing:
    """The state of a thing that was added; before that it is None."""

    thing_id: UUID
    name: str


def require_added(thing: Thing | None) -> Thing:
    """The thing. Raises NotFound: it was never added."""
    if thing is None:
        raise NotFound(UNKNOWN_THING, "there is no such thing")
    return thing


def decide(command: ThingCommand, thing: Thing | None) -> Sequence[ThingEvent]:
    """The events that a command leads to; none when there is nothing to do.

    Raises:
        NotFound: the thing was never added.
        Refused: a business rule forbids it.
    """
    match command:
        case AddThing():
            return add(command, thing)
        case RenameThing():
            return rename(command, thing)
        case _:
            assert_never(command)


def add(command: AddThing, thing: Thing | None) -> Sequence[ThingEvent]:
    """Stays quiet when it was added before: a message can lead to the command twice."""
    if thing is not None:
        return []
    return [ThingAdded(thing_id=command.thing_id, name=command.name)]


def rename(command: RenameThing, thing: Thing | None) -> Sequence[ThingEvent]:
    known = require_added(thing)
    if command.name == known.name:
        raise Refused(SAME_NAME, f"the name is {command.name} already")
    return [ThingRenamed(thing_id=known.thing_id, name=command.name)]


def evolve(thing: Thing | None, event: ThingEvent) -> Thing | None:
    """The state after one more event."""
    match event:
        case ThingAdded():
            return Thing(thing_id=event.thing_id, name=event.name)
        case ThingRenamed():
            return replace(require_added(thing), name=event.name)
        case _:
            assert_never(event)


THING: Decider[ThingCommand, Thing | None, ThingEvent] = Decider(
    initial=None, decide=decide, evolve=evolve
)
