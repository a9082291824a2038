"""The operator answers what definition.sql asks, and each step of that file matters."""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import pyarrow as pa
import pytest

from analytics_spark.job.cells import KEY, SALE_KEY, VALUES
from test_support.analytics.histories import Event
from test_support.analytics.small_job import RECORDED_AT, Amounts, Cell, SmallJob
from verification.differential import oracle
from verification.differential.history_trial import table
from verification.differential.oracle import BATCHES, CELLS, NEVER_MILLISECONDS, RECORDS, SALES
from verification.differential.random_history import RandomHistory

ORDERS = 500


@dataclass(frozen=True, slots=True, kw_only=True)
class Played:
    """What the operator read, in which batches, and its cells and sales (rows of CELLS, SALES)."""

    records: pa.Table
    batches: pa.Table
    cells: pa.Table
    sales: pa.Table
    late: int
    counted: int


def play(seed: int, batch_records: int) -> Played:
    """Read a random history with the operator, without Spark; every topic has one partition."""
    events = [
        Event(topic=each.topic, key=each.key, type=each.type, version=each.seq, data=each.value)
        for each in RandomHistory(seed, ORDERS)
    ]
    job = SmallJob(buckets=4)
    batches: list[tuple[object, ...]] = []
    for number, start in enumerate(range(0, len(events), batch_records)):
        batch = events[start : start + batch_records]
        first, end = batch[0].number, batch[-1].number + 1
        watermark = job.watermark or NEVER_MILLISECONDS
        batches += [
            (topic, 0, first, end, number, watermark)
            for topic in sorted({each.topic for each in batch})
        ]
        job.read(*batch)
    return Played(
        records=table([row_of(event) for event in events], RECORDS),
        batches=table(batches, BATCHES),
        cells=to_rows(job.cells(), [*KEY, *VALUES], CELLS),
        sales=to_rows(job.sales(), [*SALE_KEY, *VALUES], SALES),
        late=job.tally["late"],
        counted=job.tally["counted"],
    )


def row_of(event: Event) -> tuple[object, ...]:
    key, value = event.key.encode(), event.value
    return (event.topic, 0, event.number, key, value, event.type, event.version, RECORDED_AT)


def to_rows(found: Mapping[Cell, Amounts], names: Sequence[str], schema: pa.Schema) -> pa.Table:
    rows = [dict(zip(names, (*key, *sums), strict=True)) for key, sums in found.items()]
    return pa.Table.from_pylist(rows, schema=schema)


@pytest.fixture(scope="module")
def in_pieces() -> Played:
    """A history with orders and corrections that come too late."""
    return play(seed=1, batch_records=100)


@pytest.mark.parametrize("seed", [2, 3, 4])
@pytest.mark.parametrize("batch_records", [1_000_000, 100])
def test_the_operator_answers_what_the_definition_asks(seed: int, batch_records: int) -> None:
    played = play(seed, batch_records)

    right = oracle.answer(played.records, played.batches)

    assert oracle.differences(right.cells, played.cells) == []
    assert oracle.differences(right.sales, played.sales) == []
    assert (right.late, right.counted) == (played.late, played.counted)


STEPS = {
    "the version at the order's time": ("valid_from <= ordered_at", "true"),
    "the latest version": ("ORDER BY valid_from DESC", "ORDER BY valid_from"),
    "what was known in time": ("OR ordered_at > user_versions.watermark", "OR true"),
    "corrections of orders": ("OR ordered_at > user_versions.watermark", ""),
    "corrections of origins": ("OR ordered_at > item_versions.watermark", ""),
    "late orders": ("WHERE ordered_at > watermark", "WHERE true"),
    "cancellations": ("WHERE NOT EXISTS (", "WHERE true OR EXISTS ("),
    "repeated records": ('(PARTITION BY order_id ORDER BY "offset") = 1', "() > 0"),
    "what is local": ("address = origin", "address <> origin"),
}


STEPS_OF_SALES = {
    *("corrections of origins", "late orders", "cancellations", "repeated records"),
    *("the version at the order's time", "the latest version"),
}
"""Sales have no buyer, so it does not matter where one lived."""


@pytest.mark.parametrize("step", STEPS)
def test_with_another_step_the_answer_is_another_one(
    step: str, in_pieces: Played, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """So the oracle runs that file, and these histories have something to find in each step."""
    right = oracle.answer(in_pieces.records, in_pieces.batches)
    text, other = oracle.DEFINITION.read_text(), tmp_path / "definition.sql"
    before, after = STEPS[step]
    assert before in text
    other.write_text(text.replace(before, after))
    monkeypatch.setattr(oracle, "DEFINITION", other)

    wrong = oracle.answer(in_pieces.records, in_pieces.batches)

    assert oracle.differences(right.cells, in_pieces.cells) == []
    assert oracle.differences(right.sales, in_pieces.sales) == []
    assert oracle.differences(wrong.cells, in_pieces.cells) != []
    if step in STEPS_OF_SALES:
        assert oracle.differences(wrong.sales, in_pieces.sales) != []


def test_the_definition_is_a_file_of_the_job() -> None:
    assert oracle.DEFINITION.parts[-2:] == ("analytics_spark", "definition.sql")


def test_what_the_readme_shows_is_in_that_file() -> None:
    readme = Path(__file__).parents[3] / "analytics-spark" / "README.md"
    [excerpt] = re.findall(r"```sql\n(.*?)```", readme.read_text(), re.DOTALL)
    shown = [part.strip() for part in excerpt.split("-- ...")]

    assert len(shown) > 1
    assert all(part in oracle.DEFINITION.read_text() for part in shown)


def to_cells(row: Sequence[object]) -> pa.Table:
    return pa.Table.from_arrays([pa.array([value]) for value in row], schema=CELLS)


def test_a_cell_that_is_missing_and_one_that_is_too_much_are_named() -> None:
    cell = (0, "item", "phone", "BJ", "male", "user", 1, 2, 300)
    other = (*cell[:-1], 301)

    assert oracle.differences(to_cells(cell), to_cells(other)) == [
        f"expected {cell}",
        f"found {other}",
    ]
