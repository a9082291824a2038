"""The business of an aggregate as two pure functions over frozen values."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Generic, TypeVar

C = TypeVar("C")
S = TypeVar("S")
E = TypeVar("E")
T = TypeVar("T")


class ImpossibleHistory(Exception):
    """A stream holds an event that cannot follow the events before it."""


def count_none(state: object) -> int:
    """Of a state in which nothing can be many."""
    return 0


@dataclass(frozen=True, slots=True, kw_only=True)
class Decider(Generic[C, S, E]):
    """The business of one aggregate as two pure functions (after emmett and Helpdesk).

    `count_values` returns how many values a state has of what can be many, such as open orders: by
    these the memory of cached states is bounded.
    """

    initial: S
    decide: Callable[[C, S], Sequence[E]]
    evolve: Callable[[S, E], S]
    count_values: Callable[[S], int] = count_none

    def state_after(self, events: Sequence[E], state: S | None = None) -> S:
        state = self.initial if state is None else state
        for event in events:
            state = self.evolve(state, event)
        return state


def require_state(state: object, expected: type[T], event: object) -> T:
    """The state, for an event that happens in this state only.

    Raises:
        ImpossibleHistory: the state is another one.
    """
    if not isinstance(state, expected):
        raise ImpossibleHistory(f"{type(event).__name__} after {type(state).__name__}")
    return state
