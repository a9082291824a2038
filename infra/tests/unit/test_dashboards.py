"""The dashboards are current, and every expression in them is one of metrics that exist."""

import json
import re
from collections.abc import Iterator
from typing import Any

import promql_parser as promql
import pytest

from local_stack.settings import CHECKOUT
from scripts.dashboards import DASHBOARDS, FOLDER, SERVICE, SOURCE, generate, write
from shared.runtime.declarations import load_declarations
from test_support.alerting.rules import load_records
from test_support.metric_registry import EXPOSED, SUFFIXES

FILES = [f"{uid}.json" for uid in DASHBOARDS]
OF_PROMETHEUS = {"up": {"job"}} | {
    f"process_{name}": {"job"}
    for name in ("resident_memory_bytes", "cpu_seconds_total", "open_fds")
}
RECORDED = {record.name: set(record.labels) for record in load_records()}


def load_panels(name: str) -> list[dict[str, Any]]:
    return [
        panel
        for panel in json.loads((FOLDER / name).read_text())["panels"]
        if panel["type"] != "row"
    ]


def find_queries() -> Iterator[tuple[str, str]]:
    """Each expression, and its legend."""
    for name in FILES:
        for panel in load_panels(name):
            for target in panel["targets"]:
                yield target["expr"], target["legendFormat"]


QUERIES = sorted(set(find_queries()))


def find_selectors(node: Any) -> Iterator[Any]:
    match node:
        case promql.VectorSelector():
            yield node
        case promql.MatrixSelector():
            yield node.vector_selector
        case promql.BinaryExpr():
            yield from find_selectors(node.lhs)
            yield from find_selectors(node.rhs)
        case promql.AggregateExpr() | promql.ParenExpr():
            yield from find_selectors(node.expr)
        case promql.Call():
            for argument in node.args:
                yield from find_selectors(argument)


def get_labels(metric: str) -> set[str]:
    """Those that a metric has, with the one that Prometheus adds."""
    if metric in OF_PROMETHEUS:
        return OF_PROMETHEUS[metric]
    if metric in RECORDED:
        return RECORDED[metric]
    name = metric
    for suffix in SUFFIXES:
        name = name.removesuffix(suffix)
    return {each.replace(".", "_") for each in EXPOSED[name]["attributes"]} | {"job", "le"}


@pytest.mark.parametrize("name", FILES)
def test_a_dashboard_is_up_to_date(name: str) -> None:
    """`make generate` brings it up to date."""
    assert (FOLDER / name).read_text() == generate()[name]


def test_no_dashboard_is_left_that_is_not_generated() -> None:
    assert {path.name for path in FOLDER.iterdir()} == set(FILES)


def test_a_dashboard_that_was_changed_is_written_again(tmp_path: Any) -> None:
    (tmp_path / FILES[0]).write_text("{}")
    write(tmp_path)

    assert {path.name: path.read_text() for path in tmp_path.iterdir()} == generate()


@pytest.mark.parametrize(("expression", "legend"), QUERIES, ids=[each for each, _ in QUERIES])
def test_an_expression_uses_metrics_and_labels_that_exist(expression: str, legend: str) -> None:
    selectors = list(find_selectors(promql.parse(expression)))
    assert selectors

    for selector in selectors:
        labels = get_labels(selector.name)
        assert {each.name for each in selector.matchers.matchers} <= labels
        for grouped in re.findall(r"by \(([^)]+)\)", expression):
            assert set(grouped.split(", ")) <= labels
        assert set(re.findall(r"{{(\w+)}}", legend)) <= labels


def test_an_unknown_metric_or_label_is_found() -> None:
    """The negative control."""
    with pytest.raises(KeyError):
        test_an_expression_uses_metrics_and_labels_that_exist("sum(hometown_nothing)", "x")
    with pytest.raises(AssertionError):
        test_an_expression_uses_metrics_and_labels_that_exist(
            "sum by (colour) (hometown_consumer_lag)", "{{colour}}"
        )


@pytest.mark.parametrize("name", FILES)
def test_each_panel_has_a_description_and_the_data_source(name: str) -> None:
    panels = load_panels(name)

    assert len({panel["title"] for panel in panels}) == len(panels)
    for panel in panels:
        assert panel["description"].endswith(".")
        assert panel["datasource"]["uid"] == SOURCE.uid
        assert panel["gridPos"]["x"] + panel["gridPos"]["w"] <= 24


def test_the_services_to_choose_from_are_those_with_an_event_store() -> None:
    [choice] = json.loads((FOLDER / f"{SERVICE}.json").read_text())["templating"]["list"]

    assert choice["query"] == ",".join(load_declarations().event_stores)
    assert [each["value"] for each in choice["options"]] == choice["query"].split(",")


def test_every_chart_of_a_service_is_of_that_service_alone() -> None:
    for panel in load_panels(f"{SERVICE}.json"):
        for target in panel["targets"]:
            for selector in find_selectors(promql.parse(target["expr"])):
                chosen = {each.value for each in selector.matchers.matchers}
                assert chosen & {"$service-.+", "$service"}, target["expr"]


def test_the_page_after_the_start_is_a_dashboard() -> None:
    compose = (CHECKOUT / "docker-compose.grafana.yml").read_text()
    [home] = re.findall(r"HOME_DASHBOARD_PATH: /etc/grafana/dashboards/(\S+)", compose)

    assert home in FILES
