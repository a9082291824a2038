"""Bytes by hand: numbers of a fixed width, and texts behind their length. Nothing has a name."""

import struct
from collections.abc import Mapping
from functools import partial
from typing import Literal

from lessons.formats.formats import Customer, Format, Refused

Width = Literal["i", "q"]
"""Of the id: 4 bytes or 8."""
LENGTH = struct.Struct(">i")
SHORTEST_BYTES = 8
"""An id and the length of a name."""


def write(customer: Customer, width: Width = "i", more: tuple[str, ...] = ()) -> bytes:
    """`more` are texts behind the name. There is no sign for None: it is an empty text."""
    texts = [str(customer.get(name) or "").encode() for name in ("name", *more)]
    return struct.pack(f">{width}", customer["id"]) + b"".join(
        LENGTH.pack(len(text)) + text for text in texts
    )


def read(data: bytes, width: Width = "i", more: tuple[str, ...] = ()) -> Customer:
    """Ignores what follows. Raises Refused if there are too few bytes."""
    if len(data) < SHORTEST_BYTES:
        raise Refused(f"{len(data)} bytes are no customer")
    try:
        (number,) = struct.unpack_from(f">{width}", data)
        at = struct.calcsize(f">{width}")
        customer: dict[str, object] = {"id": number}
        for name in ("name", *more):
            (length,) = LENGTH.unpack_from(data, at)
            at += LENGTH.size
            customer[name] = cut(data, at, length)
            at += length
    except (struct.error, UnicodeDecodeError) as error:
        raise Refused(str(error)) from error
    return customer


def cut(data: bytes, at: int, length: int) -> str:
    if not 0 <= length <= len(data) - at:
        raise Refused(f"a text of {length} bytes, and {len(data) - at} are there")
    return data[at : at + length].decode()


def read_or_default(data: bytes) -> Customer:
    """A broken record becomes a customer without a name, which looks like any other."""
    try:
        return read(data)
    except Refused:
        return {"id": 0, "name": ""}


def write_half(customer: Customer) -> bytes:
    """A record that is broken: its first five bytes."""
    return write(customer)[:5]


VERSIONS: Mapping[str, tuple[Width, tuple[str, ...]]] = {
    "v1": ("i", ()),
    "v2, with an email": ("i", ("email",)),
    "v3, with a wider id": ("q", ()),
}

HAND_MADE = Format(
    name="by hand",
    writers={
        **{name: partial(write, width=w, more=more) for name, (w, more) in VERSIONS.items()},
        "broken": write_half,
    },
    readers={
        **{name: partial(read, width=w, more=more) for name, (w, more) in VERSIONS.items()},
        "v1 or a default": read_or_default,
    },
)
