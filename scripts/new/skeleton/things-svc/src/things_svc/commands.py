"""Commands to a thing's stream, with everything that the decision needs."""

from dataclasses import dataclass
from uuid import UUID


@dataclass(frozen=True, slots=True, kw_only=True)
class AddThing:
    thing_id: UUID
    name: str


@dataclass(frozen=True, slots=True, kw_only=True)
class RenameThing:
    name: str


@dataclass(frozen=True, slots=True, kw_only=True)
class ApproveThing:
    """It has no fields yet; the stream says which thing is meant."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SettleThing:
    """It has no fields yet; the stream says which thing is meant."""


ThingCommand = AddThing | RenameThing | ApproveThing | SettleThing
