"""What the processes of a running stack expose is what the registry of metrics says."""

import re

import pytest

from test_support.metric_registry import EXPOSED, PROCESSES, parse
from test_support.system.stack import Stack

ID = re.compile(r"[0-9a-f]{8}-[0-9a-f]{4}-")


@pytest.mark.parametrize("process", PROCESSES)
def test_a_process_exposes_only_what_the_registry_has(stack: Stack, process: str) -> None:
    samples = list(parse(stack.read_metrics(process)))

    assert samples, "a process exposes at least its clock"
    for name, kind, sample in samples:
        assert name in EXPOSED, f"{name} is not in the registry"
        labels = {label for label in sample.labels if label != "le"}
        known = {each.replace(".", "_") for each in EXPOSED[name]["attributes"]}
        assert not any(ID.search(value) for value in sample.labels.values()), "labels have no ids"
        assert (kind, labels) == (EXPOSED[name]["kind"], known)


FIRST_COUNTS = {
    "users-worker": {"hometown_inbox_messages_total", "hometown_inbox_retries_total"},
    "orders-worker": {"hometown_inbox_messages_total", "hometown_inbox_retries_total"},
    "users-relay": {"hometown_relay_retries_total"},
    "analytics-job": {"hometown_job_orders_total", "hometown_job_slow_total"},
}


@pytest.mark.parametrize("process", FIRST_COUNTS)
def test_a_count_of_what_has_not_happened_is_zero(stack: Stack, process: str) -> None:
    found = [
        (sample.name, tuple(sample.labels.values()), sample.value)
        for _, _, sample in parse(stack.read_metrics(process))
    ]

    assert {name for name, _, _ in found} >= FIRST_COUNTS[process]
    assert any(value == 0 for name, _, value in found if name in FIRST_COUNTS[process])
