"""Events as bytes: an explicit type name and version, and JSON of a frozen dataclass."""

import json
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Generic, TypeVar

from pydantic import TypeAdapter

from shared.messaging.messages import Message, PublicEvent

E = TypeVar("E")

FIRST_VERSION = 1

Upcast = Callable[[dict[str, Any]], dict[str, Any]]
"""Makes the fields of an event, as JSON has them, those of its type's next version."""


class UnknownSchemaVersion(Exception):
    """The event is of a version that is not understood here."""


class Codec(Generic[E]):
    """Translates the events of one union by their type names and versions.

    Names are given, never derived from a class: a renamed class must not make history unreadable.
    JSON form by pydantic: Decimal and UUID as strings, datetimes in ISO 8601. Unknown fields are
    ignored, so that a newer writer can add some; a missing field without default is an error.

    What cannot be said by adding a field is a new version: the class has the new fields, and
    `upcasts` has, oldest first, what makes each older version the next one. Their number is the
    version of a type, less one.
    """

    def __init__(
        self, types: Mapping[str, type[E]], upcasts: Mapping[str, Sequence[Upcast]] | None = None
    ) -> None:
        self._adapters: Mapping[str, TypeAdapter[E]] = {
            name: TypeAdapter(type_) for name, type_ in types.items()
        }
        self._names = {type_: name for name, type_ in types.items()}
        self._upcasts = upcasts or {}
        assert self._upcasts.keys() <= types.keys()

    @property
    def names(self) -> list[str]:
        return list(self._adapters)

    def get_adapter(self, name: str) -> TypeAdapter[E]:
        """What knows the form of a type's newest version. Raises KeyError: no such type."""
        return self._adapters[name]

    def get_name(self, event: E) -> str:
        return self._names[type(event)]

    def get_version(self, name: str) -> int:
        """The newest version of a type, which is the one that is written."""
        return FIRST_VERSION + len(self._upcasts.get(name, ()))

    def encode(self, event: E) -> bytes:
        return self._adapters[self.get_name(event)].dump_json(event)

    def to_public_event(self, event: E, *, topic: str, key: str) -> PublicEvent:
        """The event as it leaves the service, under its name."""
        name = self.get_name(event)
        return PublicEvent(
            topic=topic,
            key=key,
            type=name,
            value=self.encode(event),
            schema_version=self.get_version(name),
        )

    def decode(self, name: str, data: bytes | str, version: int) -> E:
        """The event that was encoded under `name` when its version was `version`.

        Raises:
            KeyError: no such type.
            UnknownSchemaVersion: this codec does not know that version.
            pydantic.ValidationError: the bytes are not such an event.
        """
        newest = self.get_version(name)
        if not FIRST_VERSION <= version <= newest:
            raise UnknownSchemaVersion(f"version {version} of {name}")
        if version < newest:
            data = self._upcasted(name, data, version)
        return self._adapters[name].validate_json(data, strict=True)

    def read(self, message: Message) -> E:
        """The event in a message. Raises what `decode` raises."""
        return self.decode(message.type, message.data, message.schema_version)

    def _upcasted(self, name: str, data: bytes | str, version: int) -> str:
        fields = json.loads(data)
        for upcast in self._upcasts[name][version - FIRST_VERSION :]:
            fields = upcast(fields)
        return json.dumps(fields)
