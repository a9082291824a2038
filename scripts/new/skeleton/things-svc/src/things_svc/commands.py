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


ThingCommand = AddThing | RenameThing
