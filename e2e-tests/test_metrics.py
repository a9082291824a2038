"""What the processes of a running stack expose is what the registry of metrics lists."""

import re
from collections.abc import Iterator

import pytest

from shared.runtime.declarations import load_declarations
from test_support.exposed_metrics import REGISTRY, Exposed, parse
from test_support.system.clients import Hometown
from test_support.system.eventually import eventually
from test_support.system.sample import Sample
from test_support.system.stack import Stack
from test_support.system.telemetry import PROCESSES

ID = re.compile(r"[0-9a-f]{8}-[0-9a-f]{4}-")

ON_REQUEST = [
    service.folder
    for service in load_declarations().services
    if all(each.profile for each in service.processes.values())
]
"""Folders of services none of whose processes runs before it is asked for."""


@pytest.fixture
def counted(hometown: Hometown, sample: Sample) -> Sample:
    """Orders that are counted: another test may have started processes again since the last."""
    eventually(
        lambda: hometown.hour(sample.hour)["purchases"],
        bool,
        what="the orders of the sample",
    )
    return sample


def read(stack: Stack) -> Iterator[Exposed]:
    for process in PROCESSES:
        yield from parse(stack.read_metrics(process))


@pytest.mark.parametrize("process", PROCESSES)
def test_a_process_exposes_only_what_the_registry_has(stack: Stack, process: str) -> None:
    found = list(parse(stack.read_metrics(process)))

    assert "hometown_process_clock_seconds" in {each.metric for each in found}
    for each in found:
        assert each.metric in REGISTRY, f"{each.metric} is not in docs/metrics.md"
        known = REGISTRY[each.metric]
        labels = {label for label in each.labels if label != "le"}
        assert (each.kind, labels) == (known.kind, {to_label(name) for name in known.attributes})
        assert not any(ID.search(value) for value in each.labels.values()), "a series of each id"


def to_label(attribute: str) -> str:
    return attribute.replace(".", "_")


@pytest.mark.usefixtures("counted")
def test_every_metric_of_the_registry_is_exposed(stack: Stack) -> None:
    expected = {
        name for name, each in REGISTRY.items() if each.path.partition("/")[0] not in ON_REQUEST
    }

    eventually(
        lambda: expected - {each.metric for each in read(stack)},
        lambda missing: not missing,
        what="every metric in the registry",
    )


def test_the_relay_of_a_service_is_active_and_counts_its_records(
    stack: Stack, counted: Sample
) -> None:
    active = stack.read_series("orders-relay", "hometown_relay_active")
    records = stack.read_series("orders-relay", "hometown_relay_records_total", topic="orders.v1")

    assert sorted(active)[-2:] in ([1], [0, 1]), "of two, one is in reserve"
    assert sum(records) >= len(counted.orders)
