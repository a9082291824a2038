"""A read model: a table that follows a topic of its service, and can be rebuilt from its events.

To add one: a migration with a `version` column, a module with `project` and its READ_MODEL, which
is an entry in READ_MODELS of the service; `make new thing=read-model` writes all of them. The
worker fills it from then on, `make rebuild` with the past.
"""

from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass

from shared.messaging.messages import Message
from shared.runtime.postgres import Connection

Projection = Callable[[Connection, Sequence[Message]], Awaitable[None]]
"""Takes messages into the table, in their order. Twice is once, late is nothing."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ReadModel:
    """One table, filled by `project` from the messages of `types` of a topic of its own service.

    A later version has a table of its own, next to that of the version before (`versions`).
    """

    name: str
    topic: str
    types: tuple[str, ...]
    project: Projection
    version: int = 1

    @property
    def table(self) -> str:
        return self.name if self.version == 1 else f"{self.name}_{self.version}"
