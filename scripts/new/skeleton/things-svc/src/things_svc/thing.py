"""A thing as two pure functions: `decide` on a command, `evolve` by an event."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import assert_never
from uuid import UUID

from shared.eventsourcing.decider import Decider, require_state
from shared.eventsourcing.errors import NotFound, Refused
from things_svc.commands import AddThing, ApproveThing, RenameThing, SettleThing, ThingCommand
from things_svc.events import ThingAdded, ThingApproved, ThingEvent, ThingRenamed, ThingSettled

UNKNOWN_THING = "unknown-thing"
SAME_NAME = "same-name"


@dataclass(frozen=True, slots=True, kw_only=True)
class NotAdded:
    """No thing has this id."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Added:
    thing_id: UUID
    name: str


Thing = NotAdded | Added


def require_added(thing: Thing) -> Added:
    """The thing, if it was added. Raises NotFound."""
    match thing:
        case NotAdded():
            raise NotFound(UNKNOWN_THING, "there is no such thing")
        case Added():
            return thing
        case _:
            assert_never(thing)


def decide(command: ThingCommand, thing: Thing) -> Sequence[ThingEvent]:
    """The events that a command leads to; none when there is nothing to do.

    Raises:
        NotFound: the thing was never added.
        Refused: a business rule forbids it.
    """
    match command:
        case AddThing():
            return add(command, thing)
        case RenameThing():
            return rename(command, require_added(thing))
        case ApproveThing():
            return approve(require_added(thing))
        case SettleThing():
            return settle(thing)
        case _:
            assert_never(command)


def add(command: AddThing, thing: Thing) -> Sequence[ThingEvent]:
    """No event when it was added before: a repeated message leads here again."""
    if isinstance(thing, Added):
        return []
    return [ThingAdded(thing_id=command.thing_id, name=command.name)]


def rename(command: RenameThing, thing: Added) -> Sequence[ThingEvent]:
    if command.name == thing.name:
        raise Refused(SAME_NAME, f"the name is {thing.name} already")
    return [ThingRenamed(thing_id=thing.thing_id, name=command.name)]


def approve(thing: Added) -> Sequence[ThingEvent]:
    return [ThingApproved(thing_id=thing.thing_id)]


def settle(thing: Thing) -> Sequence[ThingEvent]:
    """No event where there is no such thing: the message can be about another one."""
    return [ThingSettled(thing_id=thing.thing_id)] if isinstance(thing, Added) else []


def evolve(thing: Thing, event: ThingEvent) -> Thing:
    """The state after one more event. Raises ImpossibleHistory."""
    match event:
        case ThingAdded():
            require_state(thing, NotAdded, event)
            return Added(thing_id=event.thing_id, name=event.name)
        case ThingRenamed():
            return replace(require_state(thing, Added, event), name=event.name)
        case ThingApproved():
            return thing
        case ThingSettled():
            return thing
        case _:
            assert_never(event)


THING: Decider[ThingCommand, Thing, ThingEvent] = Decider(
    initial=NotAdded(), decide=decide, evolve=evolve
)
