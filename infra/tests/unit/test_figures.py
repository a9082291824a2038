"""The one form of every figure, and the figures of up and footprint."""

import json

import psutil

from local_stack import figures, footprint, up
from local_stack.figures import Figure
from local_stack.footprint import Memory
from local_stack.run_folder import RunFolder


def test_figures_are_replaced_as_a_list(folder: RunFolder) -> None:
    figures.write(folder, "up", [Figure(name="old", value=1, unit="s")])
    figures.write(folder, "up", [Figure(name="all", value=2.5, unit="s")])
    assert json.loads((folder / "bench" / "up.json").read_text()) == [
        {"name": "all", "value": 2.5, "unit": "s", "ratio": None, "ratio_to": None}
    ]


def test_each_process_is_compared_with_the_whole() -> None:
    kafka, whole = up.as_figures({"kafka": 1.0}, 4.0)
    assert (kafka.ratio, kafka.ratio_to) == (0.25, "all")
    assert (whole.name, whole.value) == ("all", 4.0)


def test_memory_counts_the_processes_that_are_there() -> None:
    here = psutil.Process()
    assert footprint.measure("here", [here]).resident > 0
    assert footprint.measure("nothing", []) == Memory(name="nothing", resident=0, proportional=0)
    assert footprint.family(here.pid)[0] == here


def test_an_unknown_share_leaves_the_sum_unknown() -> None:
    known = Memory(name="known", resident=4 << 20, proportional=2 << 20)
    unknown = Memory(name="unknown", resident=4 << 20, proportional=None)
    whole = footprint.total([known, unknown])
    assert (whole.resident, whole.proportional) == (8 << 20, None)
    names = [figure.name for figure in footprint.as_figures([known, unknown, whole])]
    assert names == [
        "known resident",
        "known fair share",
        "unknown resident",
        "all resident",
    ]
