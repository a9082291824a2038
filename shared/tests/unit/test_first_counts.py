"""A counter that an alert or a dashboard watches is there before its first count.

Prometheus computes an increase from two values: the first dead letter of a process would be none.
"""

import pytest

from shared.inbox import outcomes
from test_support.metric_registry import Recorder


def test_a_consumer_begins_with_a_zero_for_each_outcome_in_each_topic(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    recorder = Recorder()
    monkeypatch.setattr(outcomes, "MESSAGES", recorder.of("messages"))

    outcomes.begin_counts(["users.v1", "orders.v1"])

    assert len(recorder.values) == 10
    assert set(recorder.values.values()) == {0}
    dead_letters = ("outcome", "dead-letter"), ("topic", "orders.v1")
    assert ("messages", dead_letters) in recorder.values
