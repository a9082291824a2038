"""One part of the benchmark, as the command sees it."""

from collections.abc import Callable, Coroutine, Sequence
from dataclasses import dataclass
from typing import Generic, TypeVar

from benchmarks.series import Series
from local_stack.composition import Composition, Site

S = TypeVar("S")
"""What says how much is measured; each benchmark has its own."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Part(Generic[S]):
    """`measure` finds what `composition` says ready and empty, for itself alone."""

    name: str
    summary: str
    composition: Composition
    measure: Callable[[Site, S], Coroutine[object, object, Sequence[Series]]]
