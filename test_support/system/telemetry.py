"""Comparing what a stack shows of an act with case files: its spans, series and lines.

`telemetry/*.toml` has a file for each signal. By acts, it has patterns of what is there, `present`
and the `errors` of the act; and of what is not, `absent`, but for what is `allowed`.
"""

import json
import re
import time
import tomllib
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal, get_args

from shared.runtime import log_lines
from shared.runtime.declarations import load_declarations
from test_support.exposed_metrics import parse
from test_support.system.clients import Hometown
from test_support.system.stack import Stack
from test_support.system.traces import Step, find_paths, spans_of

FOLDER = Path(__file__).with_name("telemetry")
Signal = Literal["spans", "series", "lines"]
SIGNALS: tuple[Signal, ...] = get_args(Signal)

PROCESSES = [each.name for each in load_declarations().processes if each.profile is None]
"""Those that run as soon as a stack does."""

Record = Mapping[str, str]
"""A span, a series or a line: its attributes, labels or fields as texts."""
Pattern = Mapping[str, str]
"""Regular expressions for the whole texts of some of them."""
SpanPath = tuple[Step, ...]
"""From the request to a span."""

ID = re.compile(r"\{[a-z_]+\}")
"""The name of an id of the act, in a pattern; the braces of a route are escaped there."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Case:
    """What a signal has after an act, and what it does not have."""

    present: Sequence[Pattern] = ()
    errors: Sequence[Pattern] = ()
    """Each of them is there, and is one of those that are `absent` elsewhere."""
    absent: Sequence[Pattern] = ()
    allowed: Sequence[Pattern] = ()

    def fill(self, ids: Mapping[str, str]) -> "Case":
        """Put ids in the places of their names. Raises KeyError if one is missing."""

        def fill_each(patterns: Sequence[Pattern]) -> Sequence[Pattern]:
            return [
                {
                    name: ID.sub(lambda found: ids[found[0].strip("{}")], text)
                    for name, text in pattern.items()
                }
                for pattern in patterns
            ]

        return Case(
            present=fill_each(self.present),
            errors=fill_each(self.errors),
            absent=fill_each(self.absent),
            allowed=fill_each(self.allowed),
        )

    def find_missing(self, records: Sequence[Record]) -> Sequence[Pattern]:
        """Find what should be there and is not."""
        errors = [one for one in records if fits_any(one, self.absent)]
        return [
            *(each for each in self.present if not any(fits(one, each) for one in records)),
            *(each for each in self.errors if not any(fits(one, each) for one in errors)),
        ]

    def find_unwanted(self, records: Sequence[Record]) -> Sequence[Record]:
        """Find what should not be there and is."""
        return [
            one
            for one in records
            if fits_any(one, self.absent) and not fits_any(one, [*self.errors, *self.allowed])
        ]


def fits(record: Record, pattern: Pattern) -> bool:
    return all(
        name in record and re.fullmatch(text, record[name], re.DOTALL)
        for name, text in pattern.items()
    )


def fits_any(record: Record, patterns: Sequence[Pattern]) -> bool:
    return any(fits(record, each) for each in patterns)


def load_cases(signal: Signal) -> Mapping[str, Case]:
    """Load the cases of a signal by their acts. What the file has of all acts, each of them has."""
    acts = load_file(signal)
    absent, allowed = acts.pop("absent"), acts.pop("allowed", [])
    cases = {}
    for act, case in acts.items():
        trace = [to_pattern(path) for path in read_paths(case.pop("trace", ""))]
        case["present"] = trace + case.get("present", [])
        case["absent"] = absent + case.get("absent", [])
        case["allowed"] = allowed + case.get("allowed", [])
        cases[act] = Case(**case)
    return cases


def load_edges(act: str) -> list[tuple[Step, Step]]:
    """Load (parent, child) of all spans in the trace of an act, from its request on."""
    paths = read_paths(load_file("spans")[act]["trace"])
    return [(path[-2], path[-1]) for path in paths if len(path) > 1]


def load_file(signal: Signal) -> dict[str, Any]:
    return tomllib.loads((FOLDER / f"{signal}.toml").read_text())


def read_paths(trace: str) -> Iterator[SpanPath]:
    """Read lines of a service and its span; indented below each are its children."""
    path: list[Step] = []
    for line in trace.strip().splitlines():
        depth = (len(line) - len(line.lstrip())) // 2
        path[depth:] = [Step(*line.strip().split(": "))]
        yield tuple(path)


def to_pattern(path: SpanPath) -> Pattern:
    return {"trace": "{trace_id}", "path": re.escape(to_text(path))}


def to_text(value: object) -> str:
    """Write a value of a record: a path with an arrow between its steps, others as JSON."""
    if isinstance(value, tuple):
        return " → ".join(map(str, value))
    return value if isinstance(value, str) else json.dumps(value)


class Telemetry:
    """Reads what a stack has shown since this was made, or since its start."""

    def __init__(self, stack: Stack, hometown: Hometown, *, since_start: bool = False) -> None:
        self._stack = stack
        self._hometown = hometown
        self._began_at = 0 if since_start else time.time_ns() // 1_000
        self._series = {} if since_start else self._read_series()
        logs = {} if since_start else stack.logs()
        self._lengths = {process: len(log) for process, log in logs.items()}

    def read(self, signal: Signal) -> Sequence[Record]:
        """Read all that is there until now."""
        match signal:
            case "spans":
                return list(self._read_spans())
            case "series":
                return list(self._read_risen())
            case "lines":
                return list(self._read_lines())

    def _read_spans(self) -> Iterator[Record]:
        """Read spans: each with its trace, its step, and its path from the request."""
        for trace in self._hometown.traces_since(self._began_at):
            spans = spans_of(trace)
            paths = find_paths(spans)
            for each in spans:
                if each.start_microseconds >= self._began_at:
                    place = {"trace": trace["traceID"], "path": paths[each.span_id]}
                    record = {**place, "span": str(each.step), **each.attributes}
                    yield {name: to_text(value) for name, value in record.items()}

    def _read_risen(self) -> Iterator[Record]:
        """Read the series whose values have risen: each with its process and its labels."""
        for series, value in self._read_series().items():
            if value > self._series.get(series, 0):
                yield dict(series)

    def _read_series(self) -> Mapping[frozenset[tuple[str, str]], float]:
        """Read the values of all series; those of several processes of one name are added up."""
        values: defaultdict[frozenset[tuple[str, str]], float] = defaultdict(float)
        for process in PROCESSES:
            for each in parse(self._stack.read_metrics(process)):
                record = {"process": process, "series": each.series, **each.labels}
                values[frozenset(record.items())] += each.value
        return values

    def _read_lines(self) -> Iterator[Record]:
        """Read the lines of logs: each with its process; the line of a server is one text."""
        for process, log in self._stack.logs().items():
            length = self._lengths.get(process, 0)
            # A log that has become shorter has been rotated: all of it is new.
            for text in log[length if length <= len(log) else 0 :].splitlines():
                line = log_lines.parse(text) or {"text": text}
                fields = {name: to_text(value) for name, value in line.items()}
                yield {"process": process, **fields}
