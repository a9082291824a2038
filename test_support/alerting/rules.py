"""The rules of `infra/observability/alerts.yml`: what they record, and which alerts fire."""

import math
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import promql_parser as promql
import yaml

from fetching.settings import INFRA
from test_support.alerting.promql import Labels, Samples, evaluate

FILE = INFRA / "observability" / "alerts.yml"


@dataclass(frozen=True, slots=True, kw_only=True)
class Rule:
    """An alert, which fires when its expression has had a value for `pending_seconds`."""

    name: str
    expression: str
    pending_seconds: float
    runbook: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Record:
    """A series that follows from others."""

    name: str
    labels: Mapping[str, str]
    expression: str


def load_records() -> Sequence[Record]:
    return [
        Record(name=each["record"], labels=each["labels"], expression=each["expr"])
        for each in load_entries()
        if "record" in each
    ]


def load_entries() -> Iterable[Mapping[str, Any]]:
    """Of all groups, in the order in which they are evaluated."""
    for group in yaml.safe_load(FILE.read_text())["groups"]:
        yield from group["rules"]


def load_rules() -> Sequence[Rule]:
    return [
        Rule(
            name=each["alert"],
            expression=each["expr"],
            pending_seconds=to_seconds(each.get("for")),
            runbook=each["annotations"]["runbook"],
        )
        for each in load_entries()
        if "alert" in each
    ]


def to_seconds(duration: str | None) -> float:
    """Of a duration such as 15s; none is zero."""
    return float(promql.parse_duration(duration).total_seconds()) if duration else 0.0


@dataclass(slots=True)
class Alerts:
    """Evaluates rules again and again, as Prometheus does."""

    rules: Sequence[Rule] = field(default_factory=load_rules)
    records: Sequence[Record] = field(default_factory=load_records)
    _since: dict[tuple[str, Labels], float] = field(default_factory=dict)

    def evaluate(self, samples: Samples, now: float) -> Mapping[str, set[Labels]]:
        """The alerts that fire now, by name, each with the labels that it fires for.

        What the rules record is added to the samples.
        """
        for record in self.records:
            for labels, value in evaluate(record.expression, samples, now).items():
                if not math.isnan(value):
                    samples.add(now, record.name, {**dict(labels), **record.labels}, value)
        firing: dict[str, set[Labels]] = defaultdict(set)
        for rule in self.rules:
            for labels in self._evaluate(rule, samples, now):
                firing[rule.name].add(labels)
        return firing

    def _evaluate(self, rule: Rule, samples: Samples, now: float) -> Iterable[Labels]:
        found = {(rule.name, labels) for labels in evaluate(rule.expression, samples, now)}
        for gone in [each for each in self._since if each[0] == rule.name and each not in found]:
            del self._since[gone]
        for each in found:
            if now - self._since.setdefault(each, now) >= rule.pending_seconds:
                yield each[1]
