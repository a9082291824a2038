"""A plan follows from a load and from figures that are measured, and the page shows it."""

import json
import os
from dataclasses import replace
from pathlib import Path

import pytest

from benchmarks import page, rows
from benchmarks.analytics import throughput
from benchmarks.capacity import command, costs, document
from benchmarks.capacity.costs import Figures, Measured, NotMeasured, derive_costs
from benchmarks.capacity.plan import (
    RECORD_BYTES,
    Load,
    Machine,
    Plan,
    Step,
    count_partitions,
    create_plan,
    format_bytes,
    format_days,
)
from benchmarks.delivery import consuming, draining, scaling
from benchmarks.delivery.parts import DELIVERY
from benchmarks.whole import carrying
from local_stack.figures import Figure
from local_stack.settings import CHECKOUT
from shared.messaging import wire
from shared.messaging.wire import OutgoingRecord, RecordBatch

LOAD = Load(rate=1_000, peak=10_000, size=1_000, days=1, replicas=3, readers=1)
MILLISECONDS = {
    costs.ACCEPT: 1,
    costs.ACCEPT_IN_POSTGRES: 0.5,
    costs.DECIDE: 0.25,
    costs.DECIDE_IN_POSTGRES: 0.125,
    costs.COUNT: 0.016,
}


def measure(value: float, unit: str) -> Measured:
    return Measured(value=value, unit=unit, day="2026-01-01", is_recorded=True, cores=2)


@pytest.fixture
def figures() -> dict[str, Measured]:
    return {name: measure(value, "ms") for name, value in MILLISECONDS.items()} | {
        costs.PUBLISH: measure(8, "s"),
        costs.WRITE: measure(100_000, "1/s"),
        costs.READ: measure(200_000, "1/s"),
    }


@pytest.fixture
def plan(figures: Figures) -> Plan:
    return create_plan(LOAD, derive_costs(figures), Machine())


def find_step(plan: Plan, name: str) -> Step:
    [step] = [step for step in plan.steps if step.name == name]
    return step


@pytest.mark.parametrize(
    ("name", "microseconds"),
    [
        ("api", 1_000),
        ("relay", 8),
        ("worker", 250),
        ("job", 16),
        ("postgres", 625),
        ("kafka", 3 * 20 + (2 + 1) * 10),
    ],
)
def test_a_step_costs_what_was_measured(plan: Plan, name: str, microseconds: float) -> None:
    assert find_step(plan, name).microseconds == pytest.approx(microseconds)


def test_processes_are_not_full_at_the_peak(plan: Plan) -> None:
    worker = find_step(plan, "worker")

    assert worker.count_cores(LOAD.peak) == pytest.approx(2.5)
    assert worker.count_units(LOAD.peak) == 4


def test_partitions_are_enough_for_the_readers_and_equal_on_all_brokers(plan: Plan) -> None:
    assert plan.partitions == count_partitions(4, plan.brokers.count)
    assert count_partitions(4, 3) == 6
    assert count_partitions(210, 16) == 224


def test_the_largest_demand_decides_how_many_brokers_there_are(figures: Figures) -> None:
    found = derive_costs(figures)
    small = create_plan(LOAD, found, Machine()).brokers
    kept = create_plan(replace(LOAD, days=365), found, Machine()).brokers
    fast = create_plan(replace(LOAD, peak=1_000_000), found, Machine()).brokers
    large = create_plan(replace(LOAD, peak=1_000_000, size=10**6), found, Machine()).brokers

    assert small.count == small.by_replicas == 3
    assert kept.count == kept.by_disk > 3
    assert fast.count == fast.by_cores > 3
    assert large.count == large.by_network > fast.count


def test_what_was_not_asked_for_is_not_in_the_plan(plan: Plan, figures: Figures) -> None:
    asked = create_plan(replace(LOAD, clusters=3, quota=10**7), derive_costs(figures), Machine())

    assert not {"mirrors", "quota"} & {need.what for need in plan.needs}
    needs = {need.what: need.amount for need in asked.needs}
    assert (needs["mirrors"], needs["quota"]) == ("6", "30 MB/s")


def test_the_job_is_planned_by_small_batches_where_full_ones_were_not_measured(
    figures: dict[str, Measured],
) -> None:
    del figures[costs.COUNT]
    figures[costs.COUNT_IN_SMALL_BATCHES] = measure(0.9, "ms")

    assert derive_costs(figures).count.microseconds == pytest.approx(900)


def test_a_figure_that_is_missing_is_named(figures: dict[str, Measured]) -> None:
    del figures[costs.READ]

    with pytest.raises(NotMeasured, match="bare getmany loop"):
        derive_costs(figures)


def test_the_figures_are_those_of_the_benchmarks() -> None:
    api, worker = (scaling.name_rate(each, 1) for each in (scaling.APIS, scaling.WORKERS))
    busy = carrying.at(DELIVERY.sizes["full"].busy_rate)

    assert scaling.name_cpu(api, "own") == costs.ACCEPT
    assert scaling.name_cpu(api, "postgres") == costs.ACCEPT_IN_POSTGRES
    assert scaling.name_cpu(worker, "own") == costs.DECIDE
    assert scaling.name_cpu(worker, "postgres") == costs.DECIDE_IN_POSTGRES
    assert (draining.CPU, draining.LIMIT, consuming.BARE) == (
        costs.PUBLISH,
        costs.WRITE,
        costs.READ,
    )
    assert throughput.get_name(throughput.OURS, throughput.STEADY_CPU) == costs.COUNT
    assert f"{carrying.CPU_OF}analytics-job, per order at {busy}" == costs.COUNT_IN_SMALL_BATCHES


def test_a_record_is_as_large_as_those_that_are_measured() -> None:
    batch = RecordBatch("users.v1", 0, 10**9)
    for _ in range(1_000):
        headers = wire.pack(rows.RECORD_HEADERS)
        key, value = rows.EVENT_ID.encode(), rows.VALUE.encode()
        batch.append(OutgoingRecord("users.v1", 0, key, value, headers, 0))

    assert batch.size() / 1_000 == pytest.approx(RECORD_BYTES, rel=0.01)


def test_figures_of_this_machine_replace_recorded_ones_and_the_newest_counts(
    tmp_path: Path,
) -> None:
    for age, value in enumerate((1.0, 2.0)):
        file = tmp_path / str(age) / "bench" / f"delivery-{age}.json"
        file.parent.mkdir(parents=True)
        figure = Figure(name=costs.DECIDE, value=value, unit="ms")
        file.write_text(json.dumps([{"name": figure.name, "value": value, "unit": "ms"}]))
        os.utime(file, (1_700_000_000 - age, 1_700_000_000 - age))

    [found] = costs.read_measured([tmp_path / "0", tmp_path / "1"]).values()

    assert found.value == 1.0
    assert found.source == "measured here 2023-11-14"


def test_a_chosen_run_folder_is_the_only_one_that_is_read(tmp_path: Path) -> None:
    usual = costs.list_run_folders(CHECKOUT / ".run" / "cluster")

    assert {folder.name for folder in usual} >= {"containers", "cluster"}
    assert costs.list_run_folders(tmp_path) == [tmp_path]


def test_recorded_figures_have_the_day_and_the_cores_of_their_section() -> None:
    found = costs.read_recorded()
    sections = page.read_page(page.PAGE)

    assert found[costs.WRITE].day == sections["delivery: drain"].measured.partition(",")[0]
    assert f"{found[costs.WRITE].cores} cores of" in sections["delivery: drain"].measured
    assert found[costs.WRITE].value > 1_000
    derive_costs(found)


def test_the_page_shows_what_the_command_prints() -> None:
    """`make generate` writes it again, after figures were recorded."""
    text = document.PAGE.read_text()

    assert text.count("make plan rate=") >= 2
    assert document.render(text, command.plan_as_recorded) == text


def test_another_output_on_the_page_would_be_found() -> None:
    """The negative control."""
    text = document.PAGE.read_text().replace("partitions ", "partitions?", 1)

    assert document.render(text, command.plan_as_recorded) != text


def test_a_plan_is_printed_with_its_figures(capsys: pytest.CaptureFixture[str]) -> None:
    assert command.main(["--rate", "100", "--recorded"]) == 0

    printed = capsys.readouterr().out
    assert printed.startswith("100 records a second on average, 100 at the peak; 780 bytes each")
    assert f"worker: {costs.DECIDE}: " in printed


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ([], "rate is missing"),
        (["--rate", "many"], "rate: 'many' is no whole number"),
        (["--rate", "0"], "rate: '0' is no whole number"),
        (["--rate", "1.5"], "rate: '1.5' is no whole number"),
        (["--rate", "1", "--days", "-7"], "days: "),
        (["--rate", "10", "--peak", "9"], "peak: 9 is less than the rate, 10"),
        (["--rate", str(10**13)], "rate: "),
        (["--speed", "1"], "unrecognized arguments: --speed 1"),
    ],
)
def test_a_bad_value_is_one_line(
    arguments: list[str], message: str, capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(SystemExit) as ended:
        command.main(arguments)

    printed = capsys.readouterr()
    assert ended.value.code == command.EXIT_MALFORMED
    assert printed.out == ""
    assert printed.err.startswith(f"hometown: {message}")
    assert printed.err.count("\n") == 1


def test_every_option_has_a_line_of_help(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit):
        command.main(["--help"])

    printed = capsys.readouterr().out
    for name in (*command.LOAD_OPTIONS, *command.MACHINE_OPTIONS, "quota", "recorded"):
        assert f"--{name}" in printed


@pytest.mark.parametrize(
    ("count", "text"),
    [(5, "5 bytes"), (1_500, "1.5 KB"), (24 * 10**6, "24 MB"), (156 * 10**12, "156 TB")],
)
def test_bytes_have_a_decimal_unit(count: int, text: str) -> None:
    assert format_bytes(count) == text


@pytest.mark.parametrize(
    ("days", "text"), [(17, "17 days"), (0.5, "12 h"), (1.5, "36 h"), (1 / 48, "30 min")]
)
def test_a_duration_has_a_unit_that_fits(days: float, text: str) -> None:
    assert format_days(days) == text
