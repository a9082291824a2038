"""One part of the benchmark, as the command sees it."""

from collections.abc import Callable, Coroutine, Sequence
from dataclasses import dataclass
from typing import Generic, TypeVar

from benchmarks.series import Series
from local_stack.stack_spec import StackContext, StackSpec

S = TypeVar("S")
"""What says how much is measured; each benchmark has its own."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Part(Generic[S]):
    """`measure` finds the processes of `spec` ready and empty, for itself alone."""

    name: str
    summary: str
    spec: StackSpec
    measure: Callable[[StackContext, S], Coroutine[object, object, Sequence[Series]]]
