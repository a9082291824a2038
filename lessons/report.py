"""What a lesson prints: the records, what each engine answered, and what must come out."""

from collections.abc import Mapping, Sequence
from itertools import zip_longest

from lessons.experiment import Finding, Findings
from lessons.lesson import Case, Column, Record, Row, collapse, to_clock
from lessons.running import Outcome, Result
from local_stack.progress import Tone, table, tell

TITLES: Mapping[Column, str] = {
    "spark": "Spark",
    "faust": "Faust",
    "streams": "Kafka Streams",
    "experiment": "experiment",
}
VALUE_CHARACTERS_MAX = 34


def describe(record: Record) -> str:
    value = record.value if isinstance(record.value, str) else show(record.value)
    if len(value) > VALUE_CHARACTERS_MAX:
        value = f"{value[: VALUE_CHARACTERS_MAX - 1]}…"
    topic = "" if record.topic == "records" else f"{record.topic} "
    return f"{to_clock(record.time)} {topic}{record.key or '-'} {value}"


def show(value: object) -> str:
    """A value in few characters: the values of an object, without their names."""
    if isinstance(value, Mapping):
        return " ".join(show(each) for each in value.values())
    if isinstance(value, list):
        return "[" + " ".join(show(each) for each in value) + "]"
    return "-" if value is None else str(value)


def show_row(row: Row) -> str:
    if "dropped" in row:
        return f"{row['dropped']} dropped as too late"
    if "late_before" in row:
        late, closed = show(row["late_before"]), show(row["closed_before"])
        return f"batch {row['batch']}: late before {late}, closed before {closed}"
    return show(row)


def print_case(
    case: Case, outcomes: Sequence[Outcome], titles: Mapping[Column, str] = TITLES
) -> None:
    """A table of the steps; where an engine's rows are right, it has them next to its name."""
    tell(f"{case.name} ({case.function}): {case.shows}")
    header = ("in", *(titles[outcome.engine] for outcome in outcomes), "expected")
    lines: list[tuple[str, ...]] = []
    for number, step in enumerate(case.steps):
        columns = [[describe(record) for record in step.records]]
        for outcome in outcomes:
            expected = collapse(step.get_expected(outcome.engine), case.key)
            rows = collapse(outcome.answers[number], case.key)
            columns.append([mark(row, expected) for row in rows] + mark_missing(rows, expected))
        columns.append(show_expected(case, number, outcomes))
        lines += zip_longest(*columns, fillvalue="")
        lines.append(("",) * len(header))
    tell(table(header, lines[:-1]))


def mark(row: Row, expected: Sequence[Row]) -> str:
    return show_row(row) if row in expected else f"≠ {show_row(row)}"


def mark_missing(rows: Sequence[Row], expected: Sequence[Row]) -> list[str]:
    return ["≠ (nothing)"] * sum(row not in rows for row in expected if not rows)


def show_expected(case: Case, number: int, outcomes: Sequence[Outcome]) -> list[str]:
    """Once, if the engines do not differ."""
    step = case.steps[number]
    if not isinstance(step.out, Mapping):
        return [show_row(row) for row in collapse(step.out, case.key)]
    return [
        f"{TITLES[outcome.engine]}: {show_row(row)}"
        for outcome in outcomes
        for row in collapse(step.get_expected(outcome.engine), case.key)
    ]


def print_findings(findings: Sequence[Finding]) -> None:
    """A table of the rows with the claim of each, and their notes."""
    header = (*findings[0].row, "claim")
    lines = [
        (*map(show_number, each.row.values()), each.claim if each.holds else f"≠ {each.claim}")
        for each in findings
    ]
    tell(table(header, lines))
    for each in findings:
        if each.note:
            tell(f"  {each.subject}: {each.note}")


def show_number(value: object) -> str:
    return f"{value:,}" if isinstance(value, int | float) else str(value)


def print_verdict(lesson: str, results: Mapping[Column, Result | Findings], seconds: float) -> bool:
    """One line for all engines and the experiment, and one for each problem. Whether there is
    none."""
    problems = [
        f"{TITLES[column]}, {problem}"
        for column, result in results.items()
        for problem in result.problems
    ]
    verdict = f"{len(problems)} problems" if problems else "as expected"
    answered = ", ".join(f"{TITLES[column]} {result}" for column, result in results.items())
    tell(
        f"{lesson}: {answered}, {verdict}, {seconds:.0f} s",
        Tone.BAD if problems else Tone.GOOD,
    )
    for problem in problems:
        tell(f"  {problem}")
    return not problems
