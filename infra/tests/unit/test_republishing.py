"""What `republish` asks the engine for, and what it does when a step fails."""

import json
import subprocess
from collections.abc import Collection, Mapping, Sequence
from pathlib import Path
from subprocess import CompletedProcess

import pytest

from containers.compose import PROFILES, Project
from containers.republishing import ContainerSteps, start_servers
from containers.settings import ContainerSettings
from containers.up import up as containers_up
from fetching.errors import Failure
from local_stack import republishing
from local_stack.backup import RESTORE
from local_stack.republishing import Steps, republish_all
from local_stack.run_folder import RunFolder
from local_stack.settings import Settings, Way
from local_stack.stack_spec import StackContext, StackSpec
from local_stack.up import up
from shared.runtime.declarations import load_declarations

STATES = {
    **{name: "running" for name in ("postgres", "kafka", "jaeger", "proxy", "spark-master")},
    "users-api": "running",
    "users-relay": "restarting",
    "orders-worker": "exited",
    **dict.fromkeys(PROFILES, "running"),
    "topics": "exited",
}
"""Containers of a stack whose services refuse to continue."""
SERVICES = {"users-api", "users-relay", "orders-worker", *PROFILES}


class Engine:
    """Docker with these containers; it keeps the commands that change something."""

    def __init__(self, states: Mapping[str, str]) -> None:
        self.states = dict(states)
        self.commands: list[list[str]] = []

    def run(self, command: Sequence[str], **options: object) -> "CompletedProcess[str]":
        words = [word for word in command[1:] if word not in ("compose", "--profile", "*")]
        output = ""
        match words:
            case ["ps", *_]:
                output = "\n".join(json.dumps(self._report(name)) for name in self.states)
            case ["config", *_]:
                output = json.dumps({"services": {name: declare(name) for name in self.states}})
            case _:
                self.commands.append(words)
                if words[0] == "start":
                    self.states |= dict.fromkeys(words[1:], "running")
        return CompletedProcess(command, 0, output, "")

    def _report(self, name: str) -> dict[str, object]:
        return {
            "Service": name,
            "ID": name,
            "Name": f"hometown-{name}-1",
            "State": self.states[name],
            "Health": "",
            "ExitCode": 0,
            "Publishers": None,
        }


def declare(name: str) -> dict[str, object]:
    """A service of a Compose file."""
    profiles = ["compare"] if name in PROFILES else []
    restart = "on-failure:5" if name == "topics" else "unless-stopped"
    return {"restart": restart, "profiles": profiles}


@pytest.fixture
def engine(monkeypatch: pytest.MonkeyPatch) -> Engine:
    engine = Engine(STATES)
    monkeypatch.setattr(subprocess, "run", engine.run)
    return engine


def steps_of(way: Way, tmp_path: Path) -> ContainerSteps:
    settings = ContainerSettings(HOMETOWN_IN=way, run_dir=tmp_path, ports_given={})
    return ContainerSteps(Project(settings=settings, ports={"kafka": 19092}))


def test_the_services_are_stopped_and_the_servers_go_on(engine: Engine, tmp_path: Path) -> None:
    steps_of("containers", tmp_path).stop_services()

    assert engine.commands == [["stop", *sorted(SERVICES)]]


def test_all_that_starts_by_itself_is_started(engine: Engine, tmp_path: Path) -> None:
    steps_of("containers", tmp_path).start_all()

    [[verb, *names]] = engine.commands
    assert verb == "start"
    assert set(names) == STATES.keys() - {*PROFILES, "topics"}


def test_in_a_cluster_the_administrator_deletes_the_topics(engine: Engine, tmp_path: Path) -> None:
    steps_of("cluster", tmp_path).delete_topics()

    assert engine.commands == [
        ["run", "--rm", "--no-TTY", "--no-deps", "access", "delete-topics"],
    ]


@pytest.mark.parametrize("server", ["postgres", "kafka"])
def test_without_a_server_nothing_is_touched(engine: Engine, tmp_path: Path, server: str) -> None:
    engine.states[server] = "exited"

    with pytest.raises(Failure, match=f"{server} does not run here: `make up in=cluster`"):
        steps_of("cluster", tmp_path).demand_servers()
    assert engine.commands == []


class RecordedSteps(Steps):
    """Notes each step; the one that is called `failing` fails."""

    def __init__(self, failing: str = "") -> None:
        self.done: list[str] = []
        self._failing = failing

    def demand_servers(self) -> None:
        self._do("demand servers")

    def stop_services(self) -> None:
        self._do("stop")

    def delete_topics(self) -> None:
        self._do("delete")

    def prepare(self) -> None:
        self._do("prepare")

    def run_tool(self, service: str, *arguments: str) -> None:
        self._do(" ".join((service, *arguments)))

    def start(self, names: Collection[str]) -> None:
        self._do(f"start {', '.join(names)}")

    def start_all(self) -> None:
        self._do("start all")

    def _do(self, step: str) -> None:
        if step == self._failing:
            raise Failure(step)
        self.done.append(step)


@pytest.fixture
def context(folder: RunFolder, monkeypatch: pytest.MonkeyPatch) -> StackContext:
    async def is_published(context: StackContext, database: str) -> None:
        pass

    monkeypatch.setattr(republishing, "wait_until_published", is_published)
    settings = Settings(run_dir=folder.path, ports_given={})
    return StackContext(settings=settings, folder=folder, ports={}, passwords={})


STORES = load_declarations().event_stores
REPLAYS = [f"{name} replay --topics-lost" for name in STORES]
START_RELAYS = f"start {', '.join(f'{name}-relay' for name in STORES)}"


def test_orders_are_counted_from_a_new_checkpoint_when_all_is_published(
    context: StackContext,
) -> None:
    """What a job with its old one would leave out: `test_lost_records.py` of analytics-spark."""
    steps = RecordedSteps()

    republish_all(steps, context)

    assert steps.done == [
        *("demand servers", "stop", "delete", "prepare"),
        *(*REPLAYS, START_RELAYS),
        *("analytics reprocess --from-scratch --switch", "analytics reprocess --drop"),
        "start all",
    ]


def test_after_a_step_that_failed_nothing_is_started(context: StackContext) -> None:
    steps = RecordedSteps(failing="orders replay --topics-lost")

    with pytest.raises(Failure, match="orders replay"):
        republish_all(steps, context)

    assert steps.done[-1] == "users replay --topics-lost"


AFTER_THE_TOPICS = [
    *("delete", "prepare"),
    *(*REPLAYS, START_RELAYS),
    "analytics reprocess --from-scratch --switch",
]


@pytest.mark.parametrize("failing", AFTER_THE_TOPICS)
def test_after_an_interruption_nothing_but_another_republish_is_done(
    context: StackContext, failing: str
) -> None:
    """The job would count from its old checkpoint: `up` of processes, and of containers."""
    with pytest.raises(Failure, match=failing):
        republish_all(RecordedSteps(failing), context)

    in_containers = ContainerSettings(run_dir=context.folder.path, ports_given={})
    with pytest.raises(Failure, match="run `make republish`"):
        up(StackSpec(processes=()), context.settings)
    context.folder.way_file.unlink()
    with pytest.raises(Failure, match="run `make republish`"):
        containers_up(in_containers)

    republish_all(RecordedSteps(), context)
    context.folder.demand_finished()


@pytest.mark.parametrize("failing", ["stop", "analytics reprocess --drop", "start all"])
def test_before_the_topics_are_deleted_and_once_all_is_counted_a_stack_can_be_started(
    context: StackContext, failing: str
) -> None:
    with pytest.raises(Failure, match=failing):
        republish_all(RecordedSteps(failing), context)

    context.folder.demand_finished()


def test_an_interrupted_restore_is_not_republished(context: StackContext) -> None:
    """The event stores are not complete."""
    context.folder.begin(RESTORE)
    steps = RecordedSteps()

    with pytest.raises(Failure, match="make clean"):
        republish_all(steps, context)

    assert steps.done == []


def test_after_an_interruption_the_servers_alone_are_started(
    engine: Engine, tmp_path: Path
) -> None:
    engine.states |= dict.fromkeys(STATES, "exited")
    settings = ContainerSettings(HOMETOWN_IN="containers", run_dir=tmp_path, ports_given={})

    start_servers(Project(settings=settings, ports={}))

    assert engine.commands == [
        ["up", "--no-start"],
        ["start", "postgres", "kafka", "jaeger", "spark-master"],
    ]
