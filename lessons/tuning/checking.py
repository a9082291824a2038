"""Checks of a learner's functions: the options and the query that they choose."""

import asyncio
import json
import math
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from datetime import UTC, datetime, timedelta
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from pyspark.sql import DataFrame
from pyspark.sql.types import TimestampType

from lessons.broker import PREFIX, open_topics
from lessons.experiment import Finding, Findings
from lessons.lab import Lab
from lessons.programs import execute, surviving
from lessons.question.experiment import to_record
from lessons.question.history import GRACE, HOURS
from lessons.spark_engine import CONFIGURATION, CORES, open_apart, read_records
from lessons.tuning import solution
from lessons.tuning.job import LIMIT, PARTITIONS, Measured, run_query
from lessons.tuning.orders import ORDER_TOPIC
from test_support.analytics.histories import HOUR, Event, confirmed

Count = Callable[[DataFrame], DataFrame]

ORDERS = 2_000
TWIN_EACH, TWIN_LATER = 10, 200
"""Of so many orders one comes again, after so many others, which are less than the grace."""
RECORDS = ORDERS + ORDERS // TWIN_EACH
QUANTITY_MAX = 4

GIVEN: Mapping[str, str] = {**CONFIGURATION, PARTITIONS: "200", LIMIT: "400"}
"""Options, unless a program chooses others."""
TWO_BATCHES: Mapping[str, str] = {**CONFIGURATION, LIMIT: str(RECORDS // 2)}
BATCHES_MAX = 2
STATE_ROWS_MAX = ORDERS // 2


def check(lab: Lab, program: Path, function: str) -> Findings:
    """Run a function of a learner's program.

    Raises:
        TypeError: it returns something else.
        Exception: what it raises, or its query.
    """
    checks: Mapping[str, Callable[[Lab, Any], Sequence[Finding]]] = {
        "choose_options": check_options,
        "count_orders": check_query,
    }
    return Findings(claims=checks[function](lab, execute(program)[function]))


def check_options(lab: Lab, choose: Callable[[], Mapping[str, str]]) -> Sequence[Finding]:
    """Look at the options, and run a query with them if it will not take a minute."""
    with surviving():
        options = choose()
    if not isinstance(options, Mapping):
        raise TypeError(f"choose_options returned {name_kind(options)}, not a dict")
    chosen = {**GIVEN, **options}
    partitions = int(str(open_apart(lab.session, chosen).conf.get(PARTITIONS)))
    batches = math.ceil(RECORDS / read_limit(chosen))
    expected = [judge_partitions(partitions), judge_batches(batches)]
    if not all(finding.holds for finding in expected):
        return expected
    measured = measure(lab, chosen, solution.count_orders)
    return [
        judge_partitions(measured.shape.partitions),
        judge_batches(measured.shape.batches),
        judge_hours(measured),
    ]


def read_limit(options: Mapping[str, str]) -> int:
    """Records of a batch at most. Raises ValueError."""
    text = str(options[LIMIT])
    if not text.isdecimal() or not int(text):
        raise ValueError(f"{LIMIT} is {text}, not a whole number of at least 1")
    return int(text)


def check_query(lab: Lab, count: Count) -> Sequence[Finding]:
    """Run a query in two batches."""
    measured = measure(lab, TWO_BATCHES, count)
    uses_python = measured.shape.uses_python
    return [
        judge_hours(measured),
        make_finding(
            "plan",
            "Python" if uses_python else "no Python",
            "no row goes to Python",
            not uses_python,
        ),
        make_finding(
            "rows of state",
            f"{measured.state_rows:,}",
            f"at most {STATE_ROWS_MAX:,}",
            measured.state_rows <= STATE_ROWS_MAX,
        ),
    ]


def judge_partitions(number: int) -> Finding:
    claim = f"at most {CORES}, as Spark runs {CORES} tasks at a time"
    return make_finding("partitions", number, claim, number <= CORES)


def judge_batches(number: int) -> Finding:
    return make_finding("batches", number, f"at most {BATCHES_MAX}", number <= BATCHES_MAX)


def judge_hours(measured: Measured) -> Finding:
    """Compare rows with those of a plain loop."""
    expected = count_orders()
    found = [(to_instant(row["hour"]), row["orders"], row["pieces"]) for row in measured.rows]
    right = sum(hour in found for hour in expected)
    others = len(found) - right
    return make_finding(
        "hours",
        f"{right} of {len(expected)}" + (f", and {others} more" if others else ""),
        "all closed hours once, and no other",
        right == len(expected) and not others,
    )


def to_instant(time: datetime | None) -> datetime | None:
    """Give a time its zone: Spark returns times of the machine's zone, without naming it."""
    return time and time.astimezone(UTC)


def make_finding(subject: str, found: object, claim: str, holds: bool) -> Finding:
    return Finding(
        row={"asked": subject, "found": found},
        claim=claim,
        difference="" if holds else f"found {found}",
    )


def measure(lab: Lab, options: Mapping[str, str], count: Count) -> Measured:
    """Run a query of orders, with options of the session and of the source."""
    session = open_apart(lab.session, options)
    of_source = {name: text for name, text in options.items() if not name.startswith("spark.")}

    async def run() -> Measured:
        async with (
            open_topics(lab.servers) as topics,
            topics.remove_around(f"{PREFIX}tuning.exercise.") as prefix,
        ):
            records = read_records(session, topics.servers, prefix, [ORDER_TOPIC], of_source)
            rows = call(count, records)
            await topics.create([f"{prefix}{ORDER_TOPIC}"])
            await topics.publish(prefix, map(to_record, repeat_some(make_orders())))
            with TemporaryDirectory(prefix="hometown-lesson-") as folder:
                return await run_query(rows, Path(folder))

    return asyncio.run(run())


def call(count: Count, records: DataFrame) -> DataFrame:
    """Call a learner's function. Raises TypeError if it returns something else than such rows."""
    with surviving():
        rows = count(records)
    if not isinstance(rows, DataFrame):
        raise TypeError(f"{count.__name__} returned {name_kind(rows)}, not a DataFrame")
    expected = solution.count_orders(records)
    if set(rows.columns) != set(expected.columns):
        raise TypeError(
            f"its columns are {', '.join(rows.columns)}; expected are {', '.join(expected.columns)}"
        )
    if not isinstance(kind := rows.schema["hour"].dataType, TimestampType):
        raise TypeError(f"hour is a {kind.simpleString()}; expected is a timestamp")
    return rows


def name_kind(value: object) -> str:
    return "nothing" if value is None else type(value).__name__


def make_orders() -> list[Event]:
    """Make orders of one line. Each two of them have one time."""
    pace = timedelta(hours=HOURS) / ORDERS
    return [
        confirmed(
            f"order {number}",
            "Jack",
            ("ipad", 1 + number % QUANTITY_MAX),
            ordered_at=HOUR + number // 2 * 2 * pace,
        )
        for number in range(ORDERS)
    ]


def repeat_some(orders: Sequence[Event]) -> list[Event]:
    """Let some of them come again later."""
    twins = {number + TWIN_LATER: orders[number] for number in range(0, ORDERS, TWIN_EACH)}
    last = [twin for place, twin in twins.items() if place >= ORDERS]
    some = [
        [order, twins[number]] if number in twins else [order]
        for number, order in enumerate(orders)
    ]
    return [event for events in [*some, last] for event in events]


def count_orders() -> Sequence[tuple[datetime, int, int]]:
    """Count the orders of each closed hour and their pieces, by a plain loop."""
    orders: Counter[datetime] = Counter()
    pieces: Counter[datetime] = Counter()
    parsed = [json.loads(event.value) for event in make_orders()]
    times = [datetime.fromisoformat(order["ordered_at"]) for order in parsed]
    for order, ordered_at in zip(parsed, times, strict=True):
        hour = begin_hour(ordered_at)
        orders[hour] += 1
        pieces[hour] += sum(line["quantity"] for line in order["lines"])
    open_since = begin_hour(max(times) - GRACE)
    return [(hour, orders[hour], pieces[hour]) for hour in orders if hour < open_since]


def begin_hour(time: datetime) -> datetime:
    return time.replace(minute=0, second=0, microsecond=0)
