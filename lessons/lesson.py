"""A lesson: its cases, each with records in steps and the rows that must come out of an engine.

A lesson is a folder with a README.md, a vector.json and an exercise, with a program for each engine
if it has cases, and perhaps with an experiment. The cases of the vector name the functions that
answer them. A new lesson is a new folder.
"""

from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Annotated, Any, Literal

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field

FOLDER = Path(__file__).parent
DAY = "2016-11-11"
"""The date of a time that is given without one."""

Engine = Literal["spark", "faust", "streams"]
ENGINES: tuple[Engine, ...] = ("spark", "faust", "streams")
Column = Literal["spark", "faust", "streams", "experiment"]
COLUMNS: tuple[Column, ...] = (*ENGINES, "experiment")
"""Of the grid: where a lesson has results."""
BY_DEFAULT: tuple[Column, ...] = ("spark", "faust", "experiment")
"""Kafka Streams needs a Java compiler, which not every machine has."""

Topic = Any
"""A topic of Faust, which is not typed: agents read it, and it is sent to."""
Topics = Mapping[str, Topic]

Row = Mapping[str, Any]
Rows = list[Row]
"""The rows of one step, with texts, numbers and None only."""


def to_instant(value: str) -> datetime:
    """A time in UTC from `08:15:30.5`, on the DAY, or with its date."""
    full = value if "T" in value else f"{DAY}T{value}"
    return datetime.fromisoformat(full).replace(tzinfo=UTC)


def to_clock(instant: datetime) -> str:
    """The opposite of `to_instant`."""
    text = instant.astimezone(UTC).replace(tzinfo=None).isoformat().removeprefix(f"{DAY}T")
    return text.rstrip("0") if "." in text else text


class Part(BaseModel):
    """A part of what is read from JSON, such as a vector.json."""

    model_config = ConfigDict(frozen=True, extra="forbid")


class Record(Part):
    """One record of a Kafka topic. A value that is no text is sent as JSON."""

    topic: str = "records"
    key: str | None = None
    value: Any
    headers: Mapping[str, str] = {}
    time: Annotated[datetime, BeforeValidator(to_instant)] = Field(
        default_factory=lambda: to_instant("00:00:00")
    )


class Step(Part):
    """Records that are published together, and read to the end before the next step begins.

    `out` are the rows that they lead to; those of one engine, where the engines differ.
    """

    records: Sequence[Record]
    out: Sequence[Row] | Mapping[Engine, Sequence[Row]]

    def get_expected(self, engine: Engine) -> Rows:
        return list(self.out[engine] if isinstance(self.out, Mapping) else self.out)


class Control(Part):
    """A function that leaves something out, so that its rows must be wrong, and what this shows."""

    function: str
    shows: str


class Case(Part):
    """One question of a lesson.

    `function` answers it. `key` names the columns that identify a row: of several rows of one step
    with equal ones, the last is compared. Without a key, all rows are. With `watermarks`, Spark
    also has a row for each batch: before which time a record is late in it, and before which time
    a window is closed.
    """

    name: str
    function: str
    shows: str
    key: Sequence[str] = ()
    watermarks: bool = False
    controls: Sequence[Control] = ()
    steps: Sequence[Step]

    @property
    def topics(self) -> list[str]:
        return sorted({record.topic for step in self.steps for record in step.records})


class Vector(Part):
    """A whole vector.json. `position` is the place of the lesson in the order of learning."""

    position: int
    cases: Sequence[Case]


class Lesson:
    """One of the folders. Raises ValidationError if its vector.json is malformed."""

    def __init__(self, name: str) -> None:
        self.name = name
        self.title = read_title(name)
        vector = Vector.model_validate_json((FOLDER / name / "vector.json").read_text())
        self.position = vector.position
        self.cases = vector.cases


def read_title(name: str) -> str:
    """The first line of a lesson's README.md."""
    first, _, _ = (FOLDER / name / "README.md").read_text().partition("\n")
    return first.removeprefix("# ")


def find_lessons() -> list[str]:
    """The names of all lessons, in the order of learning."""
    names = [path.parent.name for path in FOLDER.glob("*/vector.json")]
    return sorted(names, key=lambda name: (Lesson(name).position, name))


def count_right(unit: str, rights: Sequence[bool], controls: Sequence[bool]) -> str:
    """`4 of 4 cases, 3 of 3 controls`: the cases that are right, and the controls that are not."""
    counted = f"{sum(rights)} of {len(rights)} {unit}"
    if not controls:
        return counted
    return f"{counted}, {len(controls) - sum(controls)} of {len(controls)} controls"


def normalize(value: object) -> object:
    """As in a vector.json: times as on a clock, floats rounded to four digits."""
    if isinstance(value, datetime):
        return to_clock(value)  # PySpark's are naive, in the time zone of this machine
    if isinstance(value, str) and value.startswith(f"{DAY}T"):
        return to_clock(datetime.fromisoformat(value))
    return round(value, 4) if isinstance(value, float) else value


def collapse(rows: Sequence[Row], key: Sequence[str]) -> Rows:
    """The last row of each key, sorted: rows of equal keys within a step replace each other. Those
    that count what was dropped are added up."""
    dropped = sum(row["dropped"] for row in rows if "dropped" in row)
    kept = [
        {name: normalize(value) for name, value in row.items()}
        for row in rows
        if "dropped" not in row
    ]
    if key:
        kept = list({repr([row.get(name) for name in key]): row for row in kept}.values())
    return sorted([*kept, *([{"dropped": dropped}] if dropped else [])], key=repr)


def find_columns(rows: Sequence[Row]) -> list[str]:
    """The names in the first row that is an answer, not a figure of the engine."""
    for row in rows:
        if "dropped" not in row and "late_before" not in row:
            return list(row)
    return []


def find_differences(case: Case, engine: Engine, answers: Sequence[Rows]) -> list[str]:
    """What an engine's rows of each step have too much or too little; empty if they are right."""
    found = []
    for number, (step, rows) in enumerate(zip(case.steps, answers, strict=True), start=1):
        expected = collapse(step.get_expected(engine), case.key)
        answered = collapse(rows, case.key)
        missing = [row for row in expected if row not in answered]
        surplus = [row for row in answered if row not in expected]
        found += [f"step {number}: missing {row}" for row in missing]
        found += [f"step {number}: not expected {row}" for row in surplus]
        if not missing and not surplus and len(expected) != len(answered):
            found.append(f"step {number}: {len(answered)} rows instead of {len(expected)}")
    return found
