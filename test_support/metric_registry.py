"""The registry of metrics, and metrics as processes expose them."""

import tomllib
from collections import defaultdict
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

from prometheus_client.parser import text_string_to_metric_families
from prometheus_client.samples import Sample

from fetching.settings import INFRA
from shared.runtime.declarations import load_declarations

REGISTRY: dict[str, dict[str, Any]] = tomllib.loads(
    (INFRA / "observability" / "metrics.toml").read_text()
)
"""By the name in OpenTelemetry."""

EXPOSED = {entry["exposed_as"]: entry for entry in REGISTRY.values()}
"""By the name in Prometheus."""

PROCESSES = [each.name for each in load_declarations().processes if each.profile is None]
"""Those that expose metrics as soon as a stack runs."""

OF_LIBRARIES = ("process_", "target_info", "target")
"""The beginnings of names that are not ours."""

SUFFIXES = ("_bucket", "_count", "_sum", "_created")
"""What a histogram adds to its name."""


def parse(text: str) -> Iterator[tuple[str, str, Sample]]:
    """The name, the kind and each sample of our metrics in the text of a process."""
    for family in text_string_to_metric_families(text):
        name = f"{family.name}_total" if family.type == "counter" else family.name
        if not name.startswith(OF_LIBRARIES):
            for sample in family.samples:
                yield name, family.type, sample


@dataclass(frozen=True, slots=True)
class Recorder:
    """Instruments in place of real ones; `values` are sums by name and attributes."""

    values: dict[tuple[str, tuple[tuple[str, str], ...]], float] = field(
        default_factory=lambda: defaultdict(float)
    )

    def of(self, name: str) -> "Recorded":
        return Recorded(self, name)


@dataclass(frozen=True, slots=True)
class Recorded:
    """One of them: a counter or a histogram."""

    recorder: Recorder
    name: str

    def add(self, value: float, attributes: Mapping[str, str] | None = None) -> None:
        self.recorder.values[self.name, tuple(sorted((attributes or {}).items()))] += value

    record = add
