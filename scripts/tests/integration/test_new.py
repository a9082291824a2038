"""`make new` in a copy of this checkout: what it adds works unedited."""

import json
import shutil
from collections.abc import Iterator

import pytest
import yaml

from test_support.checkout_copy import Copy, copied_checkout

pytestmark = pytest.mark.verify(part="new")

NAME = "parcels"
FOLDER = f"{NAME}-svc"
PROCESSES = {f"{NAME}-api", f"{NAME}-relay", f"{NAME}-worker"}

COMPOSE = "docker-compose.yml"
LINES_TOUCHED_MAX = 2
LISTS_SERVICES = "AGENTS.md"
"""Each of its rules between packages is a line that names all of them."""

THINGS = [
    [f"thing={thing}", *arguments, f"of={aggregate}"]
    for aggregate, cause in (
        ("parcel", "order-cancelled"),
        ("user", "parcel-added"),
        ("item", "user-registered"),
        ("order", "user-deleted"),
    )
    for thing, arguments in (
        ("reaction", ("name=recall", "event=recalled", f"on={cause}")),
        ("command", ("name=weigh", "event=weighed")),
        ("event", ("name=damaged",)),
        ("read-model", ("name=trail",)),
    )
]

VERSIONS = [
    ["thing=event-version", f"name={type_}"]
    for type_ in ("parcel-weighed", "user-registered", "item-repriced", "order-rejected")
]
"""After a release: before, an event can just be changed."""

TESTS_OF_SERVICES = (
    *("users-svc/tests/integration", "orders-svc/tests/integration"),
    "e2e-tests/test_docs.py::test_every_topic_and_public_event_is_in_the_table",
    "e2e-tests/test_docs.py::test_every_path_exists",
    "e2e-tests/test_docs.py::test_every_command_is_a_verb_that_is_run",
)
"""Next to those of `make check`."""

PRINT_STACK = """
import json
from local_stack.hometown import HOMETOWN
from shared.messaging.topics import TOPICS
print(json.dumps({
    "processes": {each.name: each.ports[0].default for each in HOMETOWN.processes},
    "preparations": [each.name for each in HOMETOWN.preparations],
    "readers": {name: topic.readers for name, topic in TOPICS.items()},
}))
"""


@pytest.fixture(scope="module")
def service() -> Iterator[Copy]:
    """The copy with a new service."""
    with copied_checkout() as copy:
        copy.printed("make", "new", "thing=service", f"name={NAME}")
        yield copy


@pytest.fixture(scope="module")
def touched(service: Copy) -> dict[str, tuple[int, int]]:
    """The lines that each file has gained and lost by the new service."""
    lines = [each.split("\t") for each in service.git("diff", "--numstat", "HEAD").splitlines()]
    return {name: (int(added), int(removed)) for added, removed, name in lines}


@pytest.fixture(scope="module")
def copy(service: Copy, touched: object) -> Copy:
    """The copy with everything that can be added to each aggregate."""
    for arguments in THINGS:
        service.printed("make", "new", *arguments)
    service.printed("make", "contracts-release")
    for arguments in VERSIONS:
        service.printed("make", "new", *arguments)
    return service


def test_it_is_linted_typed_and_keeps_its_contract(copy: Copy) -> None:
    copy.python("-m", "ruff", "format", "--check", ".")
    copy.python("-m", "ruff", "check", ".")
    for folder in (FOLDER, "users-svc", "orders-svc"):
        copy.python("-m", "mypy", folder)
    copy.python("-m", "scripts.check_imports")
    copy.python("-m", "contracts", "check")
    assert copy.printed("make", "--no-print-directory", "generate") == ""


def test_its_own_tests_pass_and_those_of_all_services_still_do(copy: Copy) -> None:
    """The end-to-end tests of its own start its processes with Kafka, PostgreSQL and Jaeger, send
    the first command, and read its event from Kafka and its trace from Jaeger.
    """
    tests = [str(path) for path in copy.root.glob("*/tests/unit")]
    printed = copy.python("-m", "pytest", "-q", "-n", "2", FOLDER, *TESTS_OF_SERVICES, *tests)

    assert "passed" in printed
    assert "skipped" not in printed


def test_what_is_added_is_seen_in_a_stack(copy: Copy) -> None:
    """Its event in the topic, its trace, and its row of the read model."""
    copy.python("-m", "pytest", "-q", "-n", "0", "scripts/tests/integration/new_things_seen.py")


def test_the_local_stack_and_its_topics_contain_it(copy: Copy) -> None:
    stack = json.loads(copy.python("-c", PRINT_STACK))

    ports = {name: port for name, port in stack["processes"].items() if name in PROCESSES}
    others = {port for name, port in stack["processes"].items() if name not in PROCESSES}
    assert ports.keys() == PROCESSES
    assert not set(ports.values()) & others
    assert f"{NAME} tables" in stack["preparations"]
    assert stack["readers"][f"{NAME}.v1"] == ["users-worker", f"{NAME}-worker"]
    assert f"{NAME}-worker" in stack["readers"]["orders.v1"]


def test_compose_contains_it(copy: Copy) -> None:
    top = yaml.safe_load((copy.root / COMPOSE).read_text())
    assert f"{FOLDER}/compose.yml" in top["include"]
    services = yaml.safe_load((copy.root / FOLDER / "compose.yml").read_text())["services"]
    assert services.keys() >= {*PROCESSES, f"{NAME}-migrate", f"{NAME}-tool"}

    if shutil.which("docker") and copy.run("docker", "compose", "version").returncode == 0:
        rendered = json.loads(copy.printed("docker", "compose", "config", "--format", "json"))
        assert rendered["services"].keys() >= PROCESSES


def test_files_that_people_write_gain_a_line_by_a_service(
    copy: Copy, touched: dict[str, tuple[int, int]]
) -> None:
    by_hand = {name: lines for name, lines in touched.items() if not is_generated(copy, name)}

    assert by_hand == {COMPOSE: (1, 0)}
    changed = {name: removed for name, (_, removed) in touched.items() if name != LISTS_SERVICES}
    assert sum(changed.values()) <= LINES_TOUCHED_MAX, touched


def is_generated(copy: Copy, name: str) -> bool:
    """uv writes the lock, `make contracts` the document, `make generate` what begins with that.

    It also writes the sections of AGENTS.md, and nothing around them: `test_agents.py`.
    """
    first_line = (copy.root / name).read_text().partition("\n")[0]
    return (
        name in ("uv.lock", "contracts/asyncapi.json", LISTS_SERVICES)
        or "Generated by" in first_line
    )
