"""A read model: a table that follows a topic, and can be built again from event 0."""

from collections.abc import Awaitable, Callable
from dataclasses import dataclass

from shared.messaging.messages import Message
from shared.runtime.postgres import Connection

Projection = Callable[[Connection, Message], Awaitable[None]]
"""Takes one message into the table. Twice is once, late is nothing."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ReadModel:
    """One table, filled by `project` from the messages of `types` of one topic."""

    table: str
    topic: str
    types: tuple[str, ...]
    project: Projection
