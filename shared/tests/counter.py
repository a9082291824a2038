"""A counter: the smallest aggregate, to test the mechanisms without a business."""

from dataclasses import dataclass
from uuid import UUID

from shared.codec import Codec
from shared.identifiers import new_id
from shared.messages import Metadata, PublicEvent

TOPIC = "users.v1"


@dataclass(frozen=True, slots=True, kw_only=True)
class Counted:
    counter_id: UUID
    number: int


CODEC: Codec[Counted] = Codec({"counted": Counted})


def publish(event: Counted) -> PublicEvent:
    return CODEC.public(event, topic=TOPIC, key=str(event.counter_id))


def counted(counter_id: UUID, *numbers: int) -> list[Counted]:
    return [Counted(counter_id=counter_id, number=number) for number in numbers]


def some_metadata() -> Metadata:
    return Metadata(correlation_id=new_id(), causation_id=new_id())
