"""Benchmarks and their parts, as the command line sees them."""

from collections.abc import Callable, Coroutine, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Generic, TypeVar

from benchmarks.series import Series
from local_stack.stack_spec import StackContext, StackSpec

S = TypeVar("S")
"""The type that sets how much is measured; each benchmark has its own."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Part(Generic[S]):
    """One measurement, on servers of its own.

    `summary` begins with a line "name: what is measured". `measure` gets the processes of `spec`,
    ready, empty and used by no other part.
    """

    name: str
    summary: str
    spec: StackSpec
    measure: Callable[[StackContext, S], Coroutine[object, object, Sequence[Series]]]

    @property
    def title(self) -> str:
        """The first line of the summary."""
        return self.summary.splitlines()[0]


@dataclass(frozen=True, slots=True, kw_only=True)
class Benchmark(Generic[S]):
    """Parts that share their sizes ("full", "quick", "tiny") and a file of figures."""

    name: str
    parts: tuple[Part[S], ...]
    sizes: Mapping[str, S]

    def reduce_to(self, names: Sequence[str]) -> "Benchmark[S]":
        """The same with the named parts alone, in the order of the names."""
        by_name = {part.name: part for part in self.parts}
        return replace(self, parts=tuple(by_name[name] for name in names if name in by_name))
