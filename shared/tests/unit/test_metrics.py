"""What a process records is what it exposes; without an exporter that is nothing."""

import subprocess
import sys

import pytest

from shared.runtime import metrics

# In a process of its own: a process has one provider for its whole life.
SCRIPT = """
from shared.runtime import metrics
counter = metrics.Counter("hometown.test.things", "{{thing}}", "Things", ["kind"])
rare = metrics.Counter("hometown.test.faults", "{{fault}}", "Faults")
duration = "hometown.test.duration"
histogram = metrics.Histogram(duration, "s", "Time", ["kind"], bounds=(0.1, 1))
gauge = metrics.Gauge("hometown.test.level", "1", "A level", ["of"])
counter.add(1, "early")
with metrics.configured("notes-api", {exporter!r}):
    counter.add(2, "good")
    histogram.record(0.5, "good")
    with gauge.read_by(lambda: {{("a",): 1.0, ("b",): 2.0}}):
        print(metrics.expose().decode())
    print("---")
    print(metrics.expose().decode())
"""


def expose(exporter: str) -> tuple[list[str], list[str]]:
    """The lines while a gauge can be read, and after that."""
    script = SCRIPT.format(exporter=exporter)
    output = subprocess.check_output([sys.executable, "-c", script], text=True)
    during, _, after = output.partition("---")
    return during.splitlines(), after.splitlines()


def test_what_is_recorded_is_exposed() -> None:
    lines, _ = expose("prometheus")

    assert 'hometown_test_things_total{kind="early"} 1.0' in lines
    assert 'hometown_test_things_total{kind="good"} 2.0' in lines
    assert 'hometown_test_duration_seconds_bucket{kind="good",le="0.1"} 0.0' in lines
    assert 'hometown_test_duration_seconds_bucket{kind="good",le="1"} 1.0' in lines
    assert 'hometown_test_level{of="a"} 1.0' in lines
    assert 'hometown_test_level{of="b"} 2.0' in lines


def test_a_counter_without_attributes_begins_with_0() -> None:
    assert "hometown_test_faults_total 0.0" in expose("prometheus")[0]


def test_a_gauge_that_nothing_reads_any_more_is_not_exposed() -> None:
    during, after = expose("prometheus")

    assert any(line.startswith("hometown_test_level{") for line in during)
    assert not any(line.startswith("hometown_test_level{") for line in after)


def test_each_process_shows_its_name_its_clock_and_what_it_uses() -> None:
    lines = "\n".join(expose("prometheus")[0])

    assert 'service_name="notes-api"' in lines
    assert "\nhometown_process_clock_seconds " in lines
    assert "\nprocess_resident_memory_bytes " in lines


@pytest.mark.parametrize("part", [0, 1])
def test_without_an_exporter_nothing_is_exposed(part: int) -> None:
    assert not "".join(expose("none")[part]).strip()


def test_each_attribute_has_a_value() -> None:
    histogram = metrics.Histogram("hometown.test.pair", "s", "Two attributes", ["a", "b"])

    counter = metrics.Counter("hometown.test.pairs", "{pair}", "Two attributes", ["a", "b"])

    with pytest.raises(ValueError, match="shorter"):
        histogram.record(1, "only one")
    with pytest.raises(ValueError, match="are not the values of"):
        counter.add(1, "only one")
