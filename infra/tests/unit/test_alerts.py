"""Every alert is known, has a runbook, fires for its cause and for nothing else."""

import re
import shutil
import subprocess
from collections.abc import Callable, Mapping
from pathlib import Path

import pytest
import yaml

from containers import certificates
from shared.runtime.declarations import load_declarations
from test_support.alerting.promql import NAME, Samples, evaluate
from test_support.alerting.rules import FILE, Alerts, Record, Rule, load_records, load_rules
from test_support.metric_registry import EXPOSED, SUFFIXES

RULES, RECORDS = load_rules(), load_records()
RULES_MAX = 10
RUNBOOKS = Path(__file__).parents[3] / "docs" / "runbooks.md"
SCRAPE_SECONDS = 5
SECONDS = 60
"""In which an alert has to fire."""
QUIET_SECONDS = 600

Value = float | Callable[[float], float]
"""Of a series: a constant, or a function of the time since the begin."""

QUIET: Mapping[tuple[str, tuple[tuple[str, str], ...]], Value] = {
    ("up", (("job", "users-api"),)): 1,
    ("hometown_consumer_state", (("consumer", "users-worker"),)): 0,
    ("hometown_outbox_age_seconds", (("database", "users"),)): 0.02,
    ("hometown_observer_reached", (("server", "kafka"),)): 1,
    ("hometown_process_clock_seconds", (("job", "users-api"),)): lambda at: at,
    ("hometown_clock_skew_seconds", (("database", "users"),)): -0.003,
    ("hometown_reconcile_differences", ()): 0,
    ("hometown_disk_size_bytes", (("disk", "postgres"),)): 1e12,
    ("hometown_disk_free_bytes", (("disk", "postgres"),)): 5e10,  # a twentieth, and enough
    ("hometown_disk_size_bytes", (("disk", "spark"),)): 8e9,
    ("hometown_disk_free_bytes", (("disk", "spark"),)): 4e9,
}
FAULTS: Mapping[str, tuple[str, Mapping[str, str], Value]] = {
    "ProcessDown": ("up", {"job": "users-api"}, 0),
    "ConsumerStopped": ("hometown_consumer_state", {"consumer": "users-worker"}, 3),
    "OutboxWaits": ("hometown_outbox_age_seconds", {"database": "users"}, lambda at: at),
    "ServerUnreachable": ("hometown_observer_reached", {"server": "kafka"}, 0),
    "StreamParked": ("hometown_parked_streams", {"database": "users", "consumer": "x"}, 1),
    "ClockSkewed": ("hometown_process_clock_seconds", {"job": "users-api"}, lambda at: at - 60),
    "DiskNearlyFull": ("hometown_disk_free_bytes", {"disk": "spark"}, lambda at: 4e9 - 2e8 * at),
    "CellsDiffer": ("hometown_reconcile_differences", {}, 2),
}
BUDGETS = {"BudgetBurnsFast", "BudgetBurnsSlowly"}
"""Alerts that need a history of days."""


def scrape(samples: Samples, at: float, fault: tuple[str, Mapping[str, str], Value] | None) -> None:
    series = dict(QUIET)
    if fault is not None:
        name, labels, value = fault
        series[name, tuple(labels.items())] = value
    for (name, known), value in series.items():
        samples.add(at, name, dict(known), value(at) if callable(value) else value)


def fire(seconds: int, fault: tuple[str, Mapping[str, str], Value] | None = None) -> set[str]:
    """All alerts that fired in this time."""
    samples, alerts, fired = Samples(), Alerts(), set[str]()
    for at in range(0, seconds + 1, SCRAPE_SECONDS):
        scrape(samples, at, fault)
        fired |= alerts.evaluate(samples, at).keys()
    return fired


@pytest.mark.parametrize("name", FAULTS)
def test_an_alert_fires_for_its_fault_within_a_minute_and_no_other_does(name: str) -> None:
    assert fire(SECONDS, FAULTS[name]) == {name}


def test_nothing_fires_while_all_is_well() -> None:
    assert fire(QUIET_SECONDS) == set()


MINUTE, HOUR, DAY = 60, 3600, 86400
TOTALS = {
    "decision": ("hometown_order_decision_duration_seconds_count", {"outcome": "confirmed"}),
    "row": ("hometown_job_orders_total", {"outcome": "counted"}),
}
ORDERS_PER_MINUTE = 60


NOW = 4 * DAY


def sample_orders(
    objective: str,
    begin: int,
    end: int,
    share: float,
    *,
    orders_per_minute: float = ORDERS_PER_MINUTE,
) -> Samples:
    """A share of the orders missed the objective between two times; all others were good since the
    beginning."""
    samples, missed = Samples(), 0.0
    for at in range(0, NOW + 1, MINUTE):
        total = orders_per_minute * at / MINUTE
        missed += orders_per_minute * share if begin < at <= end else 0
        for name, (series, labels) in TOTALS.items():
            samples.add(at, series, labels, total)
            bad = missed if name == objective else 0.0
            if name == "row":
                samples.add(at, "hometown_job_slow_total", {}, bad)
            else:
                bucket = series.replace("_count", "_bucket")
                samples.add(at, bucket, {**labels, "le": "1.0"}, total - bad)
    return samples


BURNS = pytest.mark.parametrize(
    ("begin", "end", "share", "fired"),
    [
        pytest.param(NOW - 10 * MINUTE, NOW, 1.0, {"BudgetBurnsFast"}, id="all, for 10 minutes"),
        pytest.param(NOW - 8 * MINUTE, NOW, 1.0, set(), id="all, for 8 minutes"),
        pytest.param(NOW - HOUR, NOW, 0.15, {"BudgetBurnsFast"}, id="15 of 100, for an hour"),
        pytest.param(NOW - 6 * HOUR, NOW, 0.07, {"BudgetBurnsFast"}, id="7 of 100, for 6 hours"),
        pytest.param(NOW - DAY, NOW, 0.031, {"BudgetBurnsSlowly"}, id="3 of 100, for a day"),
        pytest.param(0, NOW, 0.011, {"BudgetBurnsSlowly"}, id="11 of 1,000, for days"),
        pytest.param(0, NOW, 0.009, set(), id="9 of 1,000, for days"),
        pytest.param(NOW - 25 * MINUTE, NOW - 10 * MINUTE, 1.0, set(), id="all, but it is over"),
    ],
)


@pytest.mark.parametrize("objective", TOTALS)
@BURNS
def test_a_budget_that_burns_too_fast_fires_as_long_as_it_burns(
    objective: str, begin: int, end: int, share: float, fired: set[str]
) -> None:
    assert Alerts().evaluate(sample_orders(objective, begin, end, share), NOW).keys() == fired


@BURNS
def test_prometheus_evaluates_the_rules_in_the_same_way(
    begin: int, end: int, share: float, fired: set[str], promtool: str, tmp_path: Path
) -> None:
    samples = sample_orders("row", begin, end, share)
    test = {
        "rule_files": [str(FILE)],
        "evaluation_interval": "10m",
        "group_eval_order": ["objectives", "hometown"],
        "tests": [
            {
                "interval": "1m",
                "input_series": [
                    {
                        "series": to_selector(dict(labels)),
                        "values": " ".join(str(value) for _, value in points),
                    }
                    for labels, points in samples.series.items()
                ],
                "promql_expr_test": [
                    {
                        "expr": 'count by (alertname, slo) (ALERTS{alertstate="firing"})',
                        "eval_time": f"{NOW // MINUTE}m",
                        "exp_samples": [
                            {"labels": f'{{alertname="{name}", slo="row"}}', "value": 1}
                            for name in fired
                        ],
                    }
                ],
            }
        ],
    }
    (tmp_path / "test.yml").write_text(yaml.safe_dump(test))

    check(promtool, "test", "rules", tmp_path / "test.yml")


def to_selector(labels: Mapping[str, str]) -> str:
    others = (f'{name}="{value}"' for name, value in labels.items() if name != NAME)
    return f"{labels[NAME]}{{{', '.join(others)}}}"


def test_a_few_slow_orders_of_a_quiet_day_fire_nothing() -> None:
    share, few = 1.0, 9 / 60

    def fire(orders_per_minute: float) -> set[str]:
        samples = sample_orders(
            "decision", NOW - HOUR, NOW, share, orders_per_minute=orders_per_minute
        )
        return set(Alerts().evaluate(samples, NOW))

    assert fire(few) == set()
    assert fire(2 * few) == {"BudgetBurnsFast", "BudgetBurnsSlowly"}


def test_an_alert_that_is_not_pending_long_enough_does_not_fire() -> None:
    samples, alerts = Samples(), Alerts()
    for at, value in [(0, 0.0), (5, 0.0), (10, 1.0), (15, 0.0), (30, 0.0)]:
        samples.add(at, "up", {"job": "a"}, value)
        assert not alerts.evaluate(samples, at)


def test_there_are_few() -> None:
    assert len(RULES) <= RULES_MAX
    assert {rule.name for rule in RULES} == FAULTS.keys() | BUDGETS


@pytest.mark.parametrize("rule", [*RULES, *RECORDS], ids=lambda rule: rule.name)
def test_a_rule_uses_metrics_of_the_registry(rule: Rule | Record) -> None:
    recorded = set(re.findall(r"\bslo:\w+:\w+", rule.expression))
    assert recorded <= {record.name for record in RECORDS}

    names = set(re.findall(r"\b(?:hometown|http)_\w+", rule.expression))
    for suffix in SUFFIXES:
        names = {name.removesuffix(suffix) for name in names}

    assert names <= EXPOSED.keys()
    for labels in re.findall(r"by \((.+?)\)", rule.expression):
        known = {each for name in names for each in EXPOSED[name]["attributes"]}
        assert set(labels.split(", ")) <= known


@pytest.mark.parametrize("rule", RULES, ids=lambda rule: rule.name)
def test_an_alert_names_no_service(rule: Rule) -> None:
    """So that a new one needs no rule of its own."""
    declared = load_declarations()
    names = {each.name for each in declared.services} | {each.name for each in declared.processes}

    assert not names & set(re.findall(r'"([^"]*)"', rule.expression))


@pytest.mark.parametrize("rule", RULES, ids=lambda rule: rule.name)
def test_an_alert_has_a_runbook_that_says_when_it_is_over(rule: Rule) -> None:
    assert rule.runbook == f"docs/runbooks.md#{rule.name.lower()}"
    [section] = re.findall(rf"^## {rule.name}\n(.+?)(?=^## |\Z)", RUNBOOKS.read_text(), re.M | re.S)
    assert "\n1. " in section
    assert "\nIt is over " in section


@pytest.fixture
def promtool() -> str:
    found = shutil.which("promtool")
    if found is None:
        pytest.skip("there is no promtool here; the other tests evaluate the rules as well")
    return found


def check(promtool: str, *words: str | Path) -> None:
    checked = subprocess.run([promtool, *words], capture_output=True, text=True, check=False)
    assert checked.returncode == 0, checked.stdout + checked.stderr


def test_prometheus_accepts_the_rules(promtool: str) -> None:
    check(promtool, "check", "rules", FILE)


@pytest.mark.parametrize("name", ["containers", "containers-tls", "cluster", "cluster-tls"])
def test_prometheus_accepts_what_containers_scrape(
    promtool: str, name: str, tmp_path: Path
) -> None:
    authority = certificates.authority(tmp_path)
    text = (FILE.parent / "prometheus" / f"{name}.yml").read_text()
    for inside, outside in {
        "/etc/prometheus/alerts.yml": FILE,
        "/run/secrets/authority.pem": authority,
    }.items():
        text = text.replace(inside, str(outside))
    (tmp_path / "prometheus.yml").write_text(text)

    check(promtool, "check", "config", tmp_path / "prometheus.yml")


def test_a_counter_that_was_reset_grows_from_zero() -> None:
    samples = Samples()
    for at, value in [(0, 10.0), (10, 30.0), (20, 5.0)]:
        samples.add(at, "a_total", {"b": "c"}, value)

    assert evaluate("increase(a_total[1m])", samples, 20) == {(("b", "c"),): 25.0}
    assert evaluate("rate(a_total{b=~'c|d'}[1m])", samples, 20) == {(("b", "c"),): 1.25}
    assert evaluate("a_total{b!='c'}", samples, 20) == {}


def test_a_series_that_is_no_longer_scraped_goes() -> None:
    samples = Samples()
    samples.add(0, "a", {}, 1.0)

    assert evaluate("a", samples, 299) != {}
    assert evaluate("a", samples, 301) == {}


def test_a_series_that_a_scrape_does_not_return_goes_at_once() -> None:
    samples = Samples()
    for at in (0, 5):
        samples.add(at, "a", {"job": "b", "kept": "no"}, 1.0)
        samples.add(at, "a", {"job": "c"}, 1.0)
    samples.add(10, "up", {"job": "b"}, 1.0)
    samples.end_missing(10, {"job": "b"})

    assert evaluate("a", samples, 9).keys() == evaluate("a{job=~'b|c'}", samples, 9).keys()
    assert [dict(labels)["job"] for labels in evaluate("a", samples, 10)] == ["c"]
    assert evaluate("increase(a[1m])", samples, 10).keys() == {
        (("job", "b"), ("kept", "no")),
        (("job", "c"),),
    }
