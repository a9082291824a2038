"""Fixtures of the stack's tests: a run folder without processes, and small stacks that run."""

import shutil
import signal
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from local_stack.kafka import KAFKA
from local_stack.postgres import POSTGRES, ROLES
from local_stack.readiness import http_probe
from local_stack.run_folder import RunFolder
from local_stack.settings import Settings
from local_stack.stack_spec import Port, Process, StackContext, StackSpec
from local_stack.testing import throwaway_stack
from shared.runtime.declarations import Declarations, load_declarations, services_dir

WEB = Process(
    name="web",
    command=lambda context: [
        *(sys.executable, "-m", "http.server", "--bind", "127.0.0.1"),
        str(context.ports["web"]),
    ],
    ports=(Port(name="web", default=18099, scheme="http://"),),
    probe=http_probe("web", "/"),
    stop_seconds_max=5,
)

NOTES = """
name = "notes"
package = "notes_svc"

[processes.api]
port = 8905
public = true
calls = ["users"]
notifies = true
response_minutes_max = 2

[processes.relay]
port = 8915
writes = ["notes.v1"]

[processes.worker]
port = 8925
reads = ["notes.v1", "users.v1"]
settings = ["NOTE_SECONDS"]

[database]
event_store = true

[topics."notes.v1"]
partitions = 1
key = "note_id"
contract = "notes_svc.contract"
types = ["note-written"]
"""


@pytest.fixture
def settings(tmp_path: Path) -> Settings:
    return Settings(run_dir=tmp_path / "run", cache_dir=tmp_path / "cache", ports_given={})


@pytest.fixture
def folder(settings: Settings) -> RunFolder:
    folder = RunFolder(settings.run_dir)
    folder.create()
    return folder


@pytest.fixture
def context(settings: Settings, folder: RunFolder) -> StackContext:
    """The context of a stack that does not run."""
    return StackContext(
        settings=settings,
        folder=folder,
        ports={"postgres": 15432, "kafka": 19092, "kafka-controller": 19093, "web": 8099},
        passwords={role: f"password-of-{role}" for role in ROLES},
    )


@pytest.fixture(scope="session")
def small() -> StackSpec:
    """PostgreSQL, Kafka, and one tiny service."""
    return StackSpec(processes=(POSTGRES, KAFKA, WEB))


@pytest.fixture
def usual_signals() -> Iterator[None]:
    """Handle signals as a program in a terminal does; one in the background ignores some."""
    usual: dict[signal.Signals, Any] = {
        signal.SIGINT: signal.default_int_handler,
        signal.SIGHUP: signal.SIG_DFL,
        signal.SIGTERM: signal.SIG_DFL,
    }
    before = {number: signal.signal(number, handler) for number, handler in usual.items()}
    yield
    for number, handler in before.items():
        signal.signal(number, handler)


@pytest.fixture(scope="session")
def web_only() -> StackSpec:
    return StackSpec(processes=(WEB,))


@pytest.fixture(scope="module")
def running(small: StackSpec) -> Iterator[StackContext]:
    """The small stack, ready; every test leaves it ready."""
    with throwaway_stack(small) as context:
        yield context


@pytest.fixture
def running_web(web_only: StackSpec) -> Iterator[StackContext]:
    """The tiny service alone, ready."""
    with throwaway_stack(web_only) as context:
        yield context


@pytest.fixture
def with_notes(tmp_path: Path) -> Declarations:
    """The services of this checkout and a new one, in a folder of their own."""
    for declaration in services_dir().glob("*/service.toml"):
        (tmp_path / declaration.parent.name).mkdir()
        shutil.copy(declaration, tmp_path / declaration.parent.name)
    (tmp_path / "notes-svc").mkdir()
    (tmp_path / "notes-svc/service.toml").write_text(NOTES)
    return load_declarations(tmp_path)
