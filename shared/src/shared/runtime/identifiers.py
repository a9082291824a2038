"""Identifiers: UUIDv7, so that they sort by the time they were made."""

import hashlib
from datetime import datetime
from uuid import UUID

from uuid_utils import compat


def new_id() -> UUID:
    """A UUIDv7 (RFC 9562, section 5.7) of this moment."""
    return compat.uuid7()


def first_id_at(instant: datetime) -> UUID:
    """Greater than every id that was made in an earlier millisecond, and less than all others."""
    milliseconds = int(instant.timestamp() * 1000)
    return UUID(bytes=milliseconds.to_bytes(6) + bytes(10))


def to_timestamp(identifier: UUID) -> float:
    """Return when a UUIDv7 was made, in seconds since 1970, to the millisecond.

    It is no datetime: the bits of an id that is no UUIDv7 can mean a year that there is not.
    """
    return int.from_bytes(identifier.bytes[:6]) / 1000


def derive_id(source: UUID, kind: str) -> UUID:
    """The id of the one `kind` that follows from `source`, the same each time.

    It is a UUIDv7 of the source's moment; its other 74 bits are a hash (SHA-256) of both arguments.
    An id names one stream, so what follows from another aggregate cannot have the id of that one:
    a consumer of both would take the events of one for repeats of the other's.
    """
    moment = source.bytes[:6]
    digest = bytearray(hashlib.sha256(source.bytes + kind.encode()).digest()[:10])
    digest[0] = 0x70 | digest[0] & 0x0F  # the version
    digest[2] = 0x80 | digest[2] & 0x3F  # the variant
    return UUID(bytes=moment + bytes(digest))
