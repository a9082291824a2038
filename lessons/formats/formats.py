"""What a format consists of here: how customers are written and read, each in several versions."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass

Customer = Mapping[str, object]
"""Its fields by their names; one that is missing counts as None."""

Write = Callable[[Customer], bytes]
Read = Callable[[bytes], Customer]


class Refused(Exception):
    """The reader can see that these bytes are not for it, and returns nothing."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Format:
    """Writers and readers by the name of their version. A reader raises Refused."""

    name: str
    writers: Mapping[str, Write]
    readers: Mapping[str, Read]
