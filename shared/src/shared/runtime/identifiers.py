"""New identifiers: UUIDv7, so that they sort by the time they were made."""

from uuid import UUID

from uuid_utils import compat


def new_id() -> UUID:
    """A UUIDv7 (RFC 9562, section 5.7) of this moment."""
    return compat.uuid7()
