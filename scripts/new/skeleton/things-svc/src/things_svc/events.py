"""What happened to a thing. Private: the outside sees `contract`."""

from dataclasses import dataclass
from uuid import UUID

from shared.eventsourcing.codec import Codec


@dataclass(frozen=True, slots=True, kw_only=True)
class ThingAdded:
    thing_id: UUID
    name: str


@dataclass(frozen=True, slots=True, kw_only=True)
class ThingRenamed:
    thing_id: UUID
    name: str


@dataclass(frozen=True, slots=True, kw_only=True)
class ThingApproved:
    thing_id: UUID


@dataclass(frozen=True, slots=True, kw_only=True)
class ThingSettled:
    thing_id: UUID


ThingEvent = ThingAdded | ThingRenamed | ThingApproved | ThingSettled

CODEC: Codec[ThingEvent] = Codec(
    {
        "thing-added": ThingAdded,
        "thing-renamed": ThingRenamed,
        "thing-approved": ThingApproved,
        "thing-settled": ThingSettled,
    }
)
