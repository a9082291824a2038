"""Which processes a saved file belongs to, by the declarations of this checkout."""

from pathlib import Path

import pytest

from local_stack.developing import (
    SHARED,
    SLOW_NEED,
    Restart,
    find_folders,
    find_manual,
    find_processes,
    find_restarts,
)
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

    [restart] = find_restarts(DECLARED, [saved])

    assert restart == Restart(package=service.package, names=quick(service), files=[saved])


def test_a_file_that_all_share_is_run_by_all_that_start_quickly() -> None:
    saved = SHARED / "outbox" / "relay.py"

    restarts = find_restarts(DECLARED, [saved])

    assert {name for each in restarts for name in each.names} == {
        name for service in SERVICES for name in quick(service)
    }
    assert {each.reason for each in restarts} == {str(saved)}


def test_what_needs_spark_is_restarted_for_its_own_code() -> None:
    assert SLOW

    for service, process in SLOW:
        own = source(service, process.command, "some_module.py")
        assert process.name in find_processes(service, own)
        assert process.name in find_processes(service, source(service, "settings.py"))
        assert process.name not in find_processes(service, source(service, "other", "x.py"))
        assert process.name not in find_processes(service, SHARED / "web" / "http.py")


@pytest.mark.parametrize(
    "name", ["README.md", "tests/unit/test_some.py", "service.toml", "src/other/some_module.py"]
)
def test_a_file_that_no_process_runs_restarts_none(name: str) -> None:
    assert find_restarts(DECLARED, [Path(each.folder, name) for each in SERVICES]) == []


def test_a_migration_and_a_declaration_are_left_to_make_up() -> None:
    service = SERVICES[0]
    saved = [source(service, "migrations", "0009_more.sql"), Path(service.folder, "service.toml")]

    assert find_restarts(DECLARED, saved) == []
    assert find_manual(saved) == [
        f"{saved[0]} is a migration: `make down up` applies it once it is complete",
        f"{saved[1]} is read by `make up`",
    ]
    assert find_manual([source(service, "api.py")]) == []


def test_of_many_saved_files_some_are_named() -> None:
    saved = [source(SERVICES[0], f"module_{number}.py") for number in range(4)]

    [restart] = find_restarts(DECLARED, saved)

    assert restart.reason == f"{saved[0]}, {saved[1]} and 2 more"


def test_every_folder_with_code_of_processes_is_watched() -> None:
    root = services_dir()

    watched = find_folders(DECLARED, root)

    assert watched == [root / SHARED, *(root / each.folder for each in SERVICES)]
    for service in SERVICES:
        assert (root / source(service) / "__main__.py").is_file(), "the paths are those of packages"
