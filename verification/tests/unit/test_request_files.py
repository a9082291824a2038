"""docs/requests is current, and has every operation of every API with all that it needs."""

import re
from pathlib import Path

import pytest

from scripts.documentation.reference.http import find_operations, find_routers, read_document
from scripts.request_files import FOLDER, choose_roles, find_stale, generate, get_roles
from shared.runtime.declarations import Service, load_declarations, services_dir

FILES = generate()
DECLARED = load_declarations()
SERVICES = [service for service in DECLARED.services if find_routers(service.package)]


def read(service: Service) -> str:
    return (services_dir() / FOLDER / f"{service.folder}.http").read_text()


def test_every_file_is_up_to_date() -> None:
    """`make generate` brings them up to date."""
    root = services_dir()

    assert find_stale(root, FILES) == []
    assert {str(path.relative_to(root)) for path in (root / FOLDER).iterdir()} == FILES.keys()


def test_a_pasted_token_makes_no_file_stale_and_any_other_change_does(tmp_path: Path) -> None:
    name, text = next(iter(FILES.items()))
    path = tmp_path / name
    path.parent.mkdir(parents=True)
    assert find_stale(tmp_path, {name: text}) == [name], "it is missing"

    path.write_text(re.sub(r"(_token =)$", r"\1 eyJhbGciOi.x.y", text, flags=re.MULTILINE))
    assert path.read_text() != text
    assert find_stale(tmp_path, {name: text}) == []

    path.write_text(text.replace("127.0.0.1", "localhost"))
    assert find_stale(tmp_path, {name: text}) == [name]


@pytest.mark.parametrize("service", SERVICES, ids=lambda service: service.name)
def test_every_operation_is_a_request(service: Service) -> None:
    document = read_document(service.folder, find_routers(service.package))
    wanted = {name for name, _ in find_operations(document)}

    requests = re.findall(r"^([A-Z]+) \{\{\w+\}\}([^?\s]*)(?:\?\S*)?$", read(service), re.MULTILINE)

    assert len(requests) == len(wanted)
    assert {
        f"{method} {path.replace('{{', '{').replace('}}', '}')}" for method, path in requests
    } == wanted


@pytest.mark.parametrize("service", SERVICES, ids=lambda service: service.name)
def test_every_variable_has_a_value_and_is_used(service: Service) -> None:
    text = read(service)

    assigned = re.findall(r"^@(\w+) =", text, re.MULTILINE)

    assert sorted(assigned) == sorted(set(re.findall(r"\{\{(\w+)\}\}", text)))


@pytest.mark.parametrize("service", SERVICES, ids=lambda service: service.name)
def test_every_request_has_the_token_of_a_role_with_its_scopes(service: Service) -> None:
    document = read_document(service.folder, find_routers(service.package))
    operations = [operation for _, operation in find_operations(document)]
    roles = choose_roles(DECLARED, operations)
    text = read(service)

    for operation in operations:
        [used] = re.findall(
            rf"^### {operation['summary']}\n(?:.+\n)*?Authorization: Bearer {{{{(\w+)_token}}}}$",
            text,
            re.MULTILINE,
        )
        assert used in roles
        assert used in get_roles(DECLARED, operation), operation["summary"]
