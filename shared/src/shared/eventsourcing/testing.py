"""Given these events, when this command, then these events: a decider's tests as sentences."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Generic, TypeVar

from shared.eventsourcing.decider import Decider
from shared.eventsourcing.errors import NotFound, Refused

C = TypeVar("C")
S = TypeVar("S")
E = TypeVar("E")


@dataclass(frozen=True, slots=True)
class Given(Generic[C, S, E]):
    """The past of one aggregate."""

    decider: Decider[C, S, E]
    events: Sequence[E]

    def when(self, command: C) -> "When[E]":
        try:
            decided = self.decider.decide(command, self.decider.state_after(self.events))
        except (Refused, NotFound) as error:
            return When((), error)
        return When(tuple(decided), None)


@dataclass(frozen=True, slots=True)
class When(Generic[E]):
    """What the command led to."""

    events: Sequence[E]
    error: Refused | NotFound | None

    def then(self, *expected: E) -> None:
        """Exactly these events; none means that the decision stays quiet."""
        assert self.error is None, self.error
        assert list(self.events) == list(expected)

    def then_no(self, code: str) -> None:
        """The business refuses, with this code."""
        assert self.error is not None, f"expected {code}, but got {self.events}"
        assert self.error.code == code


def given(decider: Decider[C, S, E], *events: Any) -> Given[C, S, E]:
    return Given(decider, events)
