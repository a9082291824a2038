"""What a command may answer instead of doing its work: the only errors that the HTTP edge knows."""

from dataclasses import dataclass
from uuid import UUID


@dataclass(eq=False)
class Refused(Exception):
    """The business refuses: `code` is stable and for programs, `reason` is for people."""

    code: str
    reason: str

    def __str__(self) -> str:
        return f"{self.code}: {self.reason}"


@dataclass(eq=False)
class NotFound(Exception):
    """There is no such thing."""

    code: str
    reason: str


@dataclass(eq=False)
class Gone(NotFound):
    """There was such a thing, and it was deleted."""


class StaleRead(Exception):
    """A decision was made on other streams as well, and one of them has grown since."""


@dataclass(eq=False)
class UnexpectedVersion(Exception):
    """A command was meant for another version than `current_version`."""

    current_version: int


@dataclass(eq=False)
class VersionConflict(Exception):
    """Another writer was first; `current_version` is what it has now."""

    stream_id: UUID
    current_version: int
