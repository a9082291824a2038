"""Each writer, each reader: what is read is right, or wrong, or refused."""

from collections.abc import Iterator, Mapping, Sequence
from typing import Literal

from lessons.experiment import Finding, Lab
from lessons.formats.avro import AVRO
from lessons.formats.formats import Customer, Format, Refused
from lessons.formats.hand_made import HAND_MADE
from lessons.formats.json_schema import JSON

Outcome = Literal["reads right", "reads wrong", "refuses"]
RIGHT: Outcome = "reads right"
WRONG: Outcome = "reads wrong"
REFUSES: Outcome = "refuses"

JACK: Customer = {"id": 1, "name": "Jack"}
JACK_BY_HAND = "00000001 00000004 4A61636B"
"""TV-28."""

Cell = tuple[Format, str, str, Outcome]
"""The format, the version of the writer, that of the reader, and what is claimed."""

GRIDS: Sequence[tuple[Format, Mapping[str, Mapping[str, Outcome]]]] = (
    (
        HAND_MADE,
        {
            "v1": {
                "v1": RIGHT,
                "v2, with an email": REFUSES,
                "v3, with a wider id": REFUSES,
                "v1 or a default": RIGHT,
            },
            "v2, with an email": {
                "v1": RIGHT,  # by luck: the new field is at the end, and the rest is ignored
                "v2, with an email": RIGHT,
                "v3, with a wider id": REFUSES,
            },
            "v3, with a wider id": {
                "v1": WRONG,
                "v2, with an email": REFUSES,
                "v3, with a wider id": RIGHT,
            },
            "broken": {"v1": REFUSES, "v1 or a default": WRONG},
        },
    ),
    (
        JSON,
        {
            "v1": {
                "v1": RIGHT,
                "v2, email for fax": RIGHT,
                "v1, no other fields": RIGHT,
                "v1, no schema": RIGHT,
            },
            "v2, email for fax": {
                "v1": RIGHT,
                "v2, email for fax": RIGHT,
                "v1, no other fields": REFUSES,
                "v1, no schema": RIGHT,
            },
            "id as text": {"v1": REFUSES, "v1, no schema": WRONG},
            "broken": {"v1": REFUSES, "v1, no schema": REFUSES},
        },
    ),
    (
        AVRO,
        {
            "v1": {
                "v1": RIGHT,
                "v2, email for fax": RIGHT,
                "v3, with a wider id": RIGHT,
                "email without default": REFUSES,
                'default "null"': WRONG,
                "default null, not nullable": REFUSES,
                "v1, own schema only": RIGHT,
            },
            "v2, email for fax": {
                "v1": RIGHT,
                "v2, email for fax": RIGHT,
                "v3, with a wider id": RIGHT,
                "v1, own schema only": WRONG,
            },
            "v3, with a wider id": {"v1": REFUSES, "v3, with a wider id": RIGHT},
            "broken": {"v1": REFUSES},
        },
    ),
)
CONTROLS: Sequence[Cell] = (
    (HAND_MADE, "broken", "v1 or a default", REFUSES),
    (HAND_MADE, "v3, with a wider id", "v1", REFUSES),
    (JSON, "id as text", "v1, no schema", REFUSES),
    (AVRO, "v1", "email without default", RIGHT),
    (AVRO, "v1", 'default "null"', RIGHT),
    (AVRO, "v2, email for fax", "v1, own schema only", RIGHT),
)


def run(lab: Lab) -> Sequence[Finding]:
    """The grid of each format, and two records by hand."""
    return [write_jack(), read_no_name(WRONG), *map(read_cell, cells())]


def run_controls(lab: Lab) -> Sequence[Finding]:
    """A reader that accepts too much looks good, until its rows are compared with what was sent."""
    return [read_no_name(RIGHT), *map(read_cell, CONTROLS)]


def cells() -> Iterator[Cell]:
    for kind, grid in GRIDS:
        for writer, readers in grid.items():
            for reader, claim in readers.items():
                yield kind, writer, reader, claim


def read_cell(cell: Cell) -> Finding:
    kind, writer, reader, claim = cell
    customer = create_customer(writer)
    return try_reader(kind, writer, reader, customer, claim)


def create_customer(writer: str) -> Customer:
    """With the fields that this version writes."""
    more = {"email": "jack@example.org"} if "email" in writer else {"faxNumber": "555 0100"}
    return {**JACK, **more}


def read_no_name(claim: Outcome) -> Finding:
    """By hand there is no sign for None: it comes back as an empty text."""
    return try_reader(HAND_MADE, "v1", "v1", {"id": 1, "name": None}, claim)


def try_reader(
    kind: Format, writer: str, reader: str, customer: Customer, claim: Outcome
) -> Finding:
    data = kind.writers[writer](customer)
    outcome: Outcome
    try:
        found = kind.readers[reader](data)
    except Refused:
        outcome, text = REFUSES, "-"
    else:
        outcome = RIGHT if is_right(found, customer) else WRONG
        text = ", ".join(repr(value) for value in found.values())
    row = {"format": kind.name, "written": writer, "read by": reader, "found": text}
    return Finding(row=row, claim=claim, holds=outcome == claim)


def is_right(found: Customer, customer: Customer) -> bool:
    """All fields of the reader are as they were written; those that were not are None."""
    return found == {name: customer.get(name) for name in found}


def write_jack() -> Finding:
    written = HAND_MADE.writers["v1"](JACK).hex(" ", -4).upper()
    row = {"format": HAND_MADE.name, "written": "v1", "read by": "", "found": written}
    return Finding(row=row, claim=f"is {JACK_BY_HAND}", holds=written == JACK_BY_HAND)
