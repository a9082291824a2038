"""What the outside may know: the public events of things.v1.

An event is public as it is in `events`, unless its public form is a class here.
"""

from shared.eventsourcing.codec import Codec
from shared.messaging.messages import PublicEvent
from things_svc.events import ThingAdded, ThingApproved, ThingEvent, ThingRenamed, ThingSettled

TOPIC = "things.v1"

PublicThingEvent = ThingAdded | ThingRenamed | ThingApproved | ThingSettled

CODEC: Codec[PublicThingEvent] = Codec(
    {
        "thing-added": ThingAdded,
        "thing-renamed": ThingRenamed,
        "thing-approved": ThingApproved,
        "thing-settled": ThingSettled,
    }
)


def publish(event: ThingEvent) -> PublicEvent:
    """The public form of an event; all events of a thing share its id as key."""
    return CODEC.to_public_event(event, topic=TOPIC, key=str(event.thing_id))
