"""The registry of metrics finds each definition in the code, and names it as Prometheus does."""

from pathlib import Path

import pytest

from containers.metric_registry import BadMetric, Metric, find_in, find_metrics, write
from shared.runtime.declarations import services_dir

SOURCE = """
from collections import Counter
from shared.runtime import metrics

WORDS = Counter(["a", "b"])
NOTES = metrics.Counter("hometown.notes", "{note}", "Notes", ["colour"])
SECONDS = metrics.Histogram(
    "hometown.note.duration", "s", "Time", bounds=metrics.SIZES, attributes=["colour"]
)


class Shelf:
    gauge = metrics.Gauge("hometown.note.size", "By", "Size of all notes")
"""


def test_each_definition_is_found_with_its_name_in_prometheus() -> None:
    found = {each.exposed_as: (each.kind, each.attributes) for each in find_in(SOURCE, "notes.py")}

    assert found == {
        "hometown_notes_total": ("counter", ("colour",)),
        "hometown_note_duration_seconds": ("histogram", ("colour",)),
        "hometown_note_size_bytes": ("gauge", ()),
    }


@pytest.mark.parametrize(
    "definition",
    [
        'metrics.Counter(NAME, "{note}", "Notes")',
        'metrics.Counter("hometown.notes", "{note}", "Notes", ATTRIBUTES)',
        'metrics.Counter(f"hometown.{what}", "{note}", "Notes")',
        'metrics.Histogram("hometown.note.duration", "ms", "Time of a note")',
        'metrics.Counter("hometown.notes", "{note}", "Notes", "colour")',
    ],
)
def test_a_definition_that_cannot_be_read_is_refused(definition: str) -> None:
    with pytest.raises(BadMetric, match=r"^notes\.py:2: "):
        list(find_in(f"\nNOTES = {definition}", "notes.py"))


def test_a_name_that_is_taken_is_refused_with_both_places(tmp_path: Path) -> None:
    for package in ("a", "b"):
        (tmp_path / package / "src").mkdir(parents=True)
        (tmp_path / package / "src" / "notes.py").write_text(SOURCE)

    with pytest.raises(BadMetric, match=r"^b/src/notes\.py: .* a/src/notes\.py$"):
        find_metrics(tmp_path)


def test_every_metric_of_the_code_has_a_row_with_its_file() -> None:
    page = write(find_metrics(services_dir()))

    [row] = [line for line in page.splitlines() if "hometown_order_decision_duration" in line]
    assert "(../orders-svc/src/orders_svc/order/decision_times.py)" in row
    assert "confirmed" in row


@pytest.mark.parametrize("metric", find_metrics(services_dir()), ids=lambda each: each.name)
def test_names_have_the_forms_of_opentelemetry(metric: Metric) -> None:
    assert metric.name.replace(".", "").replace("_", "").isalnum()
    assert metric.name.islower()
    assert metric.name.startswith(("hometown.", "http.", "db.client."))
    assert metric.description[0].isupper()
    assert not metric.description.endswith(".")
    assert "|" not in metric.description
