"""Which processes a saved file belongs to, by the declarations of this checkout."""

from pathlib import Path
from typing import Any

import httpx
import pytest
from watchfiles import Change

from local_stack import developing
from local_stack.developing import (
    SHARED,
    SLOW_NEED,
    Restart,
    list_folders,
    list_manual,
    list_processes,
    list_restarts,
)
from local_stack.hometown import HOMETOWN
from local_stack.replacing import read_start
from local_stack.settings import Settings
from shared.runtime.declarations import Service, load_declarations, services_dir

DECLARED = load_declarations()
SERVICES = DECLARED.services
SLOW = [
    (service, process)
    for service in SERVICES
    for process in service.processes.values()
    if SLOW_NEED in process.needs
]


def source(service: Service, *parts: str) -> Path:
    return Path(service.folder, "src", service.package, *parts)


def quick(service: Service) -> list[str]:
    return [each.name for each in service.processes.values() if SLOW_NEED not in each.needs]


@pytest.mark.parametrize("service", SERVICES, ids=lambda service: service.name)
def test_a_file_of_a_service_is_run_by_its_processes_alone(service: Service) -> None:
    saved = source(service, "some_room", "some_module.py")

    [restart] = list_restarts(DECLARED, [saved])

    assert restart == Restart(package=service.package, names=quick(service), files=[saved])


def test_a_file_that_all_share_is_run_by_all_that_start_quickly() -> None:
    saved = SHARED / "outbox" / "relay.py"

    restarts = list_restarts(DECLARED, [saved])

    assert {name for each in restarts for name in each.names} == {
        name for service in SERVICES for name in quick(service)
    }
    assert {each.reason for each in restarts} == {str(saved)}
    assert list_manual(DECLARED, [saved, saved]) == [
        f"{process.name} runs on with {SHARED} of before: `make replace name={process.name}`"
        for _, process in SLOW
    ]


def test_what_needs_spark_is_restarted_for_its_own_code() -> None:
    assert SLOW

    for service, process in SLOW:
        own = source(service, process.command, "some_module.py")
        assert process.name in list_processes(service, own)
        assert process.name in list_processes(service, source(service, "settings.py"))
        assert process.name not in list_processes(service, source(service, "other", "x.py"))
        assert process.name not in list_processes(service, SHARED / "web" / "http.py")


@pytest.mark.parametrize(
    "name", ["README.md", "tests/unit/test_some.py", "service.toml", "src/other/some_module.py"]
)
def test_a_file_that_no_process_runs_restarts_none(name: str) -> None:
    assert list_restarts(DECLARED, [Path(each.folder, name) for each in SERVICES]) == []


def test_a_migration_and_a_declaration_are_left_to_make_up() -> None:
    service = SERVICES[0]
    saved = [source(service, "migrations", "0009_more.sql"), Path(service.folder, "service.toml")]

    assert list_restarts(DECLARED, saved) == []
    assert list_manual(DECLARED, saved) == [
        f"{saved[0]} is a migration: `make down up` applies it once it is complete",
        f"{saved[1]} is read at the start: end this, then `make dev`",
    ]
    assert list_manual(DECLARED, [source(service, "api.py")]) == []


def test_of_many_saved_files_some_are_named() -> None:
    saved = [source(SERVICES[0], f"module_{number}.py") for number in range(4)]

    [restart] = list_restarts(DECLARED, saved)

    assert restart.reason == f"{saved[0]}, {saved[1]} and 2 more"


def test_every_folder_with_code_of_processes_is_watched() -> None:
    root = services_dir()

    watched = list_folders(DECLARED, root)

    assert watched == [root / SHARED, *(root / each.folder for each in SERVICES)]
    for service in SERVICES:
        assert (root / source(service) / "__main__.py").is_file(), "the paths are those of packages"


def test_what_is_saved_while_the_watch_begins_is_applied(monkeypatch: pytest.MonkeyPatch) -> None:
    saved, applied = source(SERVICES[0], "api.py"), []

    def apply(*arguments: Any, **options: Any) -> bool:
        applied.extend(arguments[2])
        return True

    batches = iter([{(Change.modified, str(services_dir() / saved))}])
    monkeypatch.setattr(developing, "watch", lambda *folders, **options: batches)
    monkeypatch.setattr(developing, "apply", apply)

    developing.develop(HOMETOWN, Settings(), services_dir(), lambda: None)

    assert [restart.files for restart in applied] == [[saved]]


def test_a_save_without_a_stack_says_so(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    settings = Settings(run_dir=tmp_path)
    restarts = list_restarts(DECLARED, [source(SERVICES[0], "api.py")])

    assert developing.apply(HOMETOWN, settings, restarts, is_first=True)

    assert capsys.readouterr().out == "the stack does not run: `make up`\n"


@pytest.mark.parametrize("text", ["half", "{}"])
async def test_an_api_whose_health_is_no_health_is_not_ready(text: str) -> None:
    """As of code that is being written."""
    answers = httpx.MockTransport(lambda request: httpx.Response(200, text=text))

    async with httpx.AsyncClient(transport=answers) as client:
        assert await read_start(client, "http://users-api/health/ready") is None
