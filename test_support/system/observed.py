"""What the observer of a stack has measured last."""

from test_support.metric_registry import parse
from test_support.system.stack import Stack

OBSERVER = "observer"


def read_observed(stack: Stack, name: str, **labels: str) -> float | None:
    """The sum of the values of a metric with these labels; None without any."""
    found = [
        sample.value
        for exposed, _, sample in parse(stack.read_metrics(OBSERVER))
        if exposed == name and labels.items() <= sample.labels.items()
    ]
    return sum(found) if found else None
