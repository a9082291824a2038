"""A real Prometheus scrapes a small stack, evaluates all rules, and fires when a process stops."""

from collections.abc import Iterator, Mapping
from dataclasses import replace
from typing import Any

import httpx
import pytest

from fetching.errors import Failure
from local_stack import supervision
from local_stack.hometown import HOMETOWN
from local_stack.prometheus import PROGRAM, PROMETHEUS, find_program
from local_stack.settings import Settings
from local_stack.stack_spec import StackContext, StackSpec
from local_stack.testing import throwaway_stack
from local_stack.up import up
from test_support.alerting.rules import load_records, load_rules
from test_support.system.eventually import eventually

SCRAPED = {"users-relay", "observer"}
FIRED_SECONDS_MAX = 120
SMALL = StackSpec(
    processes=tuple(
        replace(each, on_request=False, required=True) if each is PROMETHEUS else each
        for each in HOMETOWN.processes
        if each.name in {"postgres", "kafka", PROGRAM, *SCRAPED}
    ),
    preparations=HOMETOWN.preparations,
)


@pytest.fixture(scope="module")
def small_stack() -> Iterator[StackContext]:
    if find_program(Settings()) is None:
        pytest.skip("there is no Prometheus here: install it, or set PROMETHEUS_BIN")
    with throwaway_stack(SMALL) as context:
        yield context


def ask(context: StackContext, path: str, **query: str) -> Mapping[str, Any]:
    url = f"http://{context.address(PROGRAM)}/api/v1/{path}"
    data: Mapping[str, Any] = httpx.get(url, params=query).raise_for_status().json()["data"]
    return data


def find_values(context: StackContext, expression: str) -> dict[str, float]:
    """The values of an expression by the job of their series."""
    found = ask(context, "query", query=expression)["result"]
    return {each["metric"].get("job", ""): float(each["value"][1]) for each in found}


def test_it_scrapes_the_processes_and_a_stop_of_one_fires(small_stack: StackContext) -> None:
    everything = dict.fromkeys(SCRAPED, 1.0)
    eventually(
        lambda: find_values(small_stack, "up"), lambda seen: seen == everything, what="all are up"
    )
    eventually(
        lambda: find_values(small_stack, "min by (job) (hometown_observer_reached)"),
        lambda seen: seen == {"observer": 1.0},
        what="what a process exposes is stored",
    )

    supervision.stop(small_stack.folder, "users-relay")
    eventually(
        lambda: find_values(small_stack, 'ALERTS{alertname="ProcessDown", alertstate="firing"}'),
        lambda seen: seen == {"users-relay": 1.0},
        what="ProcessDown fires for the relay",
        seconds_max=FIRED_SECONDS_MAX,
    )
    supervision.start(small_stack.folder, "users-relay")
    eventually(
        lambda: find_values(small_stack, 'ALERTS{alertname="ProcessDown"}'),
        lambda seen: seen == {},
        what="it is over",
    )


def test_it_evaluates_every_rule(small_stack: StackContext) -> None:
    def find_rules() -> list[Mapping[str, Any]]:
        return [each for group in ask(small_stack, "rules")["groups"] for each in group["rules"]]

    found = eventually(
        find_rules,
        lambda rules: all(each["health"] != "unknown" for each in rules),
        what="each rule is evaluated",
    )

    assert {each["health"] for each in found} == {"ok"}
    names = [*(rule.name for rule in load_rules()), *(record.name for record in load_records())]
    assert sorted(each["name"] for each in found) == sorted(names)


def test_without_a_program_the_verb_names_what_is_missing(
    tmp_path: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.delenv("PROMETHEUS_BIN", raising=False)
    settings = Settings(run_dir=tmp_path / "run", ports="free", ports_given={})

    with pytest.raises(Failure, match="there is no Prometheus: install it, or set PROMETHEUS_BIN"):
        up(HOMETOWN, settings, asked=[PROGRAM])
    assert not (tmp_path / "run").exists()
