"""The command line of the benchmarks: which parts it selects, and which files it writes."""

import json
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime
from pathlib import Path

import pytest

from benchmarks import command, page
from benchmarks.goals import at_least
from benchmarks.part import Benchmark, Part
from benchmarks.series import Series
from fetching.errors import Failure
from local_stack.stack_spec import StackContext, StackSpec


async def measure(context: StackContext, size: float) -> list[Series]:
    return [Series(name="rows", unit="1", rounds=(size,))]


async def miss(context: StackContext, size: float) -> list[Series]:
    return [Series(name="rows", unit="1", rounds=(size,), goal=at_least(1_000))]


async def fail(context: StackContext, size: float) -> list[Series]:
    raise Failure("no compiler", details=["install a JDK"])


MEASURES = {"broken": fail, "slow": miss}


def create_part(name: str) -> Part[float]:
    return Part(
        name=name,
        summary=f"{name}: some rows.\n\nWhy.",
        spec=StackSpec(processes=()),
        measure=MEASURES.get(name, measure),
    )


def create_benchmark(name: str, *parts: str) -> Benchmark[float]:
    return Benchmark(
        name=name,
        parts=tuple(create_part(each) for each in parts),
        sizes={"full": 100.0, "quick": 10.0, "tiny": 1.0},
    )


@pytest.fixture(autouse=True)
def bench(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Path:
    """Two small benchmarks without servers; the folder to which figures are written."""

    @contextmanager
    def no_servers(spec: StackSpec) -> Iterator[None]:
        yield

    benchmarks = [
        create_benchmark("delivery", "drain", "latency", "fold"),
        create_benchmark("analytics", "latency", "broken", "state"),
    ]
    monkeypatch.setattr(command, "BENCHMARKS", {each.name: each for each in benchmarks})
    monkeypatch.setattr("local_stack.testing.throwaway_stack", no_servers)
    monkeypatch.setattr(page, "PAGE", tmp_path / "figures.md")
    monkeypatch.setenv("HOMETOWN_RUN_DIR", str(tmp_path))
    return tmp_path / "bench"


def read_names(path: Path) -> list[str]:
    return [figure["name"] for figure in json.loads(path.read_text())]


def test_all_parts_of_a_benchmark_write_one_file(bench: Path) -> None:
    assert command.main(["delivery"]) == 0

    assert [path.name for path in bench.iterdir()] == ["delivery.json"]
    loads = [f"{part}: load average before" for part in ("drain", "latency", "fold")]
    assert read_names(bench / "delivery.json")[::2] == loads


@pytest.mark.parametrize(
    ("option", "rows"), [([], 100), (["--quick"], 10), (["-q"], 10), (["--tiny"], 1)]
)
def test_the_size_is_full_unless_asked_otherwise(bench: Path, option: list[str], rows: int) -> None:
    assert command.main(["delivery", *option]) == 0

    values = [each["value"] for each in json.loads((bench / "delivery.json").read_text())]
    assert values[1::2] == [rows] * 3


def test_single_parts_run_in_the_order_of_their_names_and_leave_the_file_of_all_alone(
    bench: Path,
) -> None:
    assert command.main(["delivery", "--only", "fold", "--only", "drain"]) == 0

    assert [path.name for path in bench.iterdir()] == ["delivery-fold-drain.json"]
    names = read_names(bench / "delivery-fold-drain.json")
    assert names[::2] == ["fold: load average before", "drain: load average before"]


def test_a_part_without_a_benchmark_is_measured_in_each_that_has_it(bench: Path) -> None:
    assert command.main(["--only", "latency"]) == 0

    names = sorted(path.name for path in bench.iterdir())
    assert names == ["analytics-latency.json", "delivery-latency.json"]


def test_a_part_that_fails_keeps_no_other_from_being_measured(
    bench: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert command.main([]) == 1

    assert "hometown: broken was not measured: no compiler" in capsys.readouterr().err
    loads = [f"{part}: load average before" for part in ("latency", "state")]
    assert read_names(bench / "analytics.json")[::2] == loads
    assert (bench / "delivery.json").exists()


@pytest.mark.parametrize(("option", "status"), [([], 1), (["--quick"], 1), (["--tiny"], 0)])
def test_a_missed_goal_is_named_and_is_a_failure_unless_the_figures_mean_nothing(
    monkeypatch: pytest.MonkeyPatch,
    bench: Path,
    capsys: pytest.CaptureFixture[str],
    option: list[str],
    status: int,
) -> None:
    delivery = create_benchmark("delivery", "slow", "fold")
    monkeypatch.setattr(command, "BENCHMARKS", {"delivery": delivery})

    assert command.main(option) == status

    error = capsys.readouterr().err
    assert ("slow misses a goal: rows is" in error) == (status == 1)
    assert len(read_names(bench / "delivery.json")) == 4, "the figures are written all the same"


def test_the_screen_has_each_goal_also_of_parts_that_were_recorded_before(
    monkeypatch: pytest.MonkeyPatch, bench: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    benchmarks = [create_benchmark("delivery", "fold"), create_benchmark("analytics", "slow")]
    monkeypatch.setattr(command, "BENCHMARKS", {each.name: each for each in benchmarks})
    assert command.main(["analytics", "--quick", "--record"]) == 1
    capsys.readouterr()

    assert command.main(["delivery", "--record"]) == 0

    (row,) = [line for line in capsys.readouterr().out.splitlines() if "at least" in line]
    assert row.split()[:3] == ["slow", "rows", "10"]
    assert row.split()[-1] == str(datetime.now(UTC).date())
    assert list(page.read_page(page.PAGE)) == ["delivery: fold", "analytics: slow"]


def test_figures_that_mean_nothing_are_not_recorded(bench: Path) -> None:
    with pytest.raises(SystemExit):
        command.main(["--tiny", "--record"])

    assert not page.PAGE.exists()


def test_parts_are_listed_and_not_measured(bench: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert command.main(["--list"]) == 0

    header, *lines = capsys.readouterr().out.splitlines()
    assert header.split() == ["benchmark", "part", "measures"]
    assert lines[0].split(maxsplit=2) == ["delivery", "drain", "some rows."]
    assert len(lines) == 6
    assert not bench.exists()


@pytest.mark.parametrize(
    ("arguments", "known"),
    [
        (["--only", "nothing"], "drain, latency, fold, latency, broken, state"),
        (["analytics", "--only", "drain"], "latency, broken, state"),
        (["everything"], "delivery"),
    ],
)
def test_an_unknown_part_or_benchmark_is_refused_and_the_known_ones_are_named(
    arguments: list[str], known: str, capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(SystemExit) as ended:
        command.main(arguments)

    assert ended.value.code == 2
    assert known in capsys.readouterr().err
