"""The business of an aggregate as two pure functions over frozen values."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Generic, TypeVar

C = TypeVar("C")
S = TypeVar("S")
E = TypeVar("E")


@dataclass(frozen=True, slots=True, kw_only=True)
class Decider(Generic[C, S, E]):
    """The business of one aggregate as two pure functions (after emmett and Helpdesk)."""

    initial: S
    decide: Callable[[C, S], Sequence[E]]
    evolve: Callable[[S, E], S]

    def state_after(self, events: Sequence[E], state: S | None = None) -> S:
        state = self.initial if state is None else state
        for event in events:
            state = self.evolve(state, event)
        return state
