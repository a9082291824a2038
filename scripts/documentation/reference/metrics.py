"""The metrics, as infra/observability/metrics.toml registers them."""

import tomllib
from collections.abc import Mapping
from typing import Any

from local_stack.settings import CHECKOUT
from scripts.documentation.reference.tables import code, codes, sections, table

REGISTRY = CHECKOUT / "infra" / "observability" / "metrics.toml"


def read_metrics() -> Mapping[str, Mapping[str, Any]]:
    """The entries of the registry by the names in OpenTelemetry."""
    return tomllib.loads(REGISTRY.read_text())


def write() -> str:
    rows = [
        (code(each["exposed_as"]), each["kind"], each["unit"], codes(each["attributes"]), text)
        for each in read_metrics().values()
        for text in [each["description"]]
    ]
    return sections(
        "# Metrics",
        "Every process serves its metrics at `/metrics`; [observability](../docs/observability.md)"
        " explains them. Names and attributes are those that Prometheus reads: a histogram also has"
        " `_bucket`, `_count` and `_sum`, and the dots of an attribute become underscores.",
        table(("metric", "kind", "unit", "attributes", "meaning"), rows),
    )
