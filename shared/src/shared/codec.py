"""Events as bytes: an explicit type name beside JSON of a frozen dataclass."""

from collections.abc import Mapping
from typing import Generic, TypeVar

from pydantic import TypeAdapter

from shared.messages import PublicEvent

E = TypeVar("E")


class Codec(Generic[E]):
    """Translates the events of one union by their type names.

    Names are given, never derived from a class: a renamed class must not make history unreadable.
    JSON form by pydantic: Decimal and UUID as strings, datetimes in ISO 8601. Unknown fields are
    ignored, so that a newer writer can add some; a missing field without default is an error.
    """

    def __init__(self, types: Mapping[str, type[E]]) -> None:
        self._adapters: Mapping[str, TypeAdapter[E]] = {
            name: TypeAdapter(type_) for name, type_ in types.items()
        }
        self._names = {type_: name for name, type_ in types.items()}

    @property
    def names(self) -> list[str]:
        return list(self._adapters)

    def name_of(self, event: E) -> str:
        return self._names[type(event)]

    def encode(self, event: E) -> bytes:
        return self._adapters[self.name_of(event)].dump_json(event)

    def public(self, event: E, *, topic: str, key: str) -> PublicEvent:
        """The event as it leaves the service, under its name."""
        return PublicEvent(topic=topic, key=key, type=self.name_of(event), value=self.encode(event))

    def decode(self, name: str, data: bytes | str) -> E:
        """The event that was encoded under `name`.

        Raises:
            KeyError: no such type.
            pydantic.ValidationError: the bytes are not such an event.
        """
        return self._adapters[name].validate_json(data)
