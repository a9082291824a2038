"""Metrics as a process exposes them, and the registry that they are compared with."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from prometheus_client.parser import text_string_to_metric_families

from containers.metric_registry import Metric, find_metrics
from shared.runtime.declarations import services_dir

REGISTRY: Mapping[str, Metric] = {each.exposed_as: each for each in find_metrics(services_dir())}
"""By the name in Prometheus."""

OF_LIBRARIES = ("process_", "target")
"""The beginnings of names that are not ours."""


@dataclass(frozen=True, slots=True)
class Exposed:
    """A series of a process."""

    metric: str
    """The name of its metric; a histogram has several series for each of its values."""
    kind: str
    series: str
    labels: Mapping[str, str]
    value: float


def parse(text: str) -> Iterator[Exposed]:
    """The series of our own metrics in what a process exposes."""
    for family in text_string_to_metric_families(text):
        metric = f"{family.name}_total" if family.type == "counter" else family.name
        if metric.startswith(OF_LIBRARIES):
            continue
        for sample in family.samples:
            yield Exposed(metric, family.type, sample.name, sample.labels, sample.value)
