"""What a process records is what it exposes; without an exporter that is nothing."""

import subprocess
import sys

import pytest

# In a process of its own: a process has one provider for its whole life.
SCRIPT = """
from shared.runtime import metrics
counter = metrics.Count("hometown.test.things", "{{thing}}", "Things")
histogram = metrics.measure("hometown.test.duration", "s", "Time of a thing", (0.1, 1))
gauge = metrics.Gauge("hometown.test.level", "1", "A level")
counter.add(1, {{"kind": "early"}})
with metrics.configured("notes-api", {exporter!r}):
    print(metrics.expose().decode())
    print("---")
    counter.add(2, {{"kind": "good"}})
    histogram.record(0.5)
    gauge.set_reader(lambda: [({{"of": "a"}}, 1.0), ({{"of": "b"}}, 2.0)])
    print(metrics.expose().decode())
"""


def expose(exporter: str) -> tuple[list[str], list[str]]:
    """The lines before and after something was recorded."""
    script = SCRIPT.format(exporter=exporter)
    output = subprocess.check_output([sys.executable, "-c", script], text=True)
    before, _, after = output.partition("---")
    return before.splitlines(), after.splitlines()


def test_what_is_recorded_is_exposed() -> None:
    before, after = expose("prometheus")

    [early] = [line for line in before if line.startswith("hometown_test")]
    assert early == 'hometown_test_things_total{kind="early"} 1.0'
    assert 'hometown_test_things_total{kind="good"} 2.0' in after
    assert 'hometown_test_duration_seconds_bucket{le="0.1"} 0.0' in after
    assert 'hometown_test_duration_seconds_bucket{le="1"} 1.0' in after
    assert 'hometown_test_level{of="a"} 1.0' in after
    assert 'hometown_test_level{of="b"} 2.0' in after


def test_each_process_shows_its_name_its_clock_and_what_it_uses() -> None:
    lines = "\n".join(expose("prometheus")[1])

    assert 'service_name="notes-api"' in lines
    assert "\nhometown_process_clock_seconds " in lines
    assert "\nprocess_resident_memory_bytes " in lines


@pytest.mark.parametrize("part", [0, 1])
def test_without_an_exporter_nothing_is_recorded(part: int) -> None:
    assert not "".join(expose("none")[part]).strip()
