"""One part of the benchmark, as the command sees it."""

from collections.abc import Callable, Coroutine, Sequence
from dataclasses import dataclass

from embedded.composition import Composition, Site
from series import Series
from sizes import Size

Measure = Callable[[Site, Size], Coroutine[object, object, Sequence[Series]]]


@dataclass(frozen=True, slots=True, kw_only=True)
class Part:
    """`measure` finds what `composition` says ready and empty, for itself alone."""

    name: str
    summary: str
    composition: Composition
    measure: Measure
