"""`make new-service name=parcels` in a copy of this checkout: what it makes works unedited."""

import json
from collections.abc import Collection, Iterator, Mapping

import pytest

from local_stack.settings import CHECKOUT
from test_support.checkout_copy import Copy, copied_checkout
from test_support.compose_files import render
from test_support.surfaces import list_surfaces

NAME = "parcels"
FOLDER = f"{NAME}-svc"
PROCESSES = {f"{NAME}-api", f"{NAME}-relay", f"{NAME}-worker"}

COMPOSE = "docker-compose.yml"
LINES_TOUCHED_MAX = 2

TESTS_OF_ALL_SERVICES = (
    *("infra/tests/unit/test_hometown.py", "infra/tests/unit/test_issuer.py"),
    *("infra/tests/unit/test_main.py", "infra/tests/unit/test_generate.py"),
    "infra/tests/unit/test_container_access.py",
    "infra/tests/unit/test_container_secrets.py",
    "infra/tests/integration/test_kubernetes.py",
    *("infra/tests/unit/test_dashboards.py", "verification/tests/unit/test_reference.py"),
    "console-svc/tests/unit/test_drawing.py",
    *("contracts/tests/unit/test_views.py", "contracts/tests/unit/test_asyncapi.py"),
    *("contracts/tests/unit/test_promises.py", "shared/tests/unit/test_names.py"),
    "contracts/tests/unit/test_contract_files.py::test_a_sample_that_is_missing_is_begun",
    "e2e-tests/test_docs.py::test_every_topic_and_public_event_is_in_the_table",
    "e2e-tests/test_docs.py::test_every_path_exists",
    "e2e-tests/test_docs.py::test_every_command_is_a_verb_that_is_run",
    "verification/tests/unit/test_language.py",
)
"""Tests of lists of services, of all documents and of all texts: one more service keeps to them."""

TOPIC = f"{NAME}.v1"
API, RELAY, WORKER = (f"{NAME}-{command}" for command in ("api", "relay", "worker"))
API_PORT = 8005

KNOWN: Mapping[str, Collection[str]] = {
    "local stack": {f"{API} {API_PORT}", RELAY, WORKER, f"{NAME} tables", f"tool {NAME}"},
    "topics": {f"{TOPIC} ('{WORKER}',)", f"'{WORKER}')"},
    "lag": {f"{WORKER} ['orders.v1', '{TOPIC}']", f"outbox of {NAME}"},
    "rights in Kafka": {RELAY, WORKER, f"{NAME}-tool"},
    "secrets": {f"'{NAME}_store_url'", f"'{API}'"},
    "roles": {f"{NAME}:read", f"{NAME}:write"},
    "kubernetes": {
        f"- {NAME}.yaml",
        *(f"secrets/{each}/database_url" for each in (API, RELAY, WORKER, f"{NAME}-migrate")),
    },
    "proxy": {f"listen {API}\n", f"bind :{API_PORT}\n", f"{API}: {{condition: service_healthy}}"},
    **{
        f"targets {way}{tls}": {f"job_name: {each}\n" for each in PROCESSES}
        for way in ("containers", "cluster")
        for tls in ("", "-tls")
    },
    "dashboards": {f'"value": "{NAME}"'},
    "asyncapi": {f'"{TOPIC}": {{', f'"{FOLDER}.send.{TOPIC}"', f'"{WORKER}.receive.orders.v1"'},
    "requests": {f"http://127.0.0.1:{API_PORT}\n", f"/v1/{NAME}\n"},
    "ports of an editor": {f'"label": "{API}"'},
    "reference": {f"reference/http-{FOLDER}.md"},
    "reference/processes.md": {
        f"| `{API}` | {FOLDER} | {API_PORT} |",
        f"| `{WORKER}` | {FOLDER} | 8025 | `orders.v1`, `{TOPIC}` |",
        f"| `{NAME}:write` | {FOLDER} | change {NAME} | clerk |",
    },
    "reference/topics.md": {f"| `{TOPIC}` | {FOLDER} | `parcel_id` | 4 |", f"{WORKER}.dlq"},
    "reference/events.md": {f"## {TOPIC}\n", "### parcel-added.v1\n"},
    "reference/settings.md": {f"`{NAME.upper()}_STORE_URL`"},
    "console": {
        *(f"{API}: decides on each request", f"{NAME} events: events and their outbox"),
        *(f"{RELAY}: publishes the outbox in order", f"{TOPIC}: 4 partitions"),
        *(f"{WORKER}: reacts to the events of others", f"http://{API}.invalid/docs"),
    },
    "console's processes": {f"{each}: 200" for each in PROCESSES},
}
"""What each surface shows of the new service, see `test_support.surfaces`."""


@pytest.fixture(scope="module")
def copy() -> Iterator[Copy]:
    """The copy after the command."""
    with copied_checkout() as copy:
        copy.printed("make", "new-service", f"name={NAME}")
        yield copy


def test_it_is_linted_typed_and_keeps_its_contract(copy: Copy) -> None:
    copy.python("-m", "ruff", "format", "--check", ".")
    copy.python("-m", "ruff", "check", ".")
    copy.python("-m", "mypy", FOLDER)
    copy.python("-m", "scripts.check_imports")
    copy.python("-m", "contracts", "check")
    assert copy.printed("make", "--no-print-directory", "generate") == ""


@pytest.mark.long
def test_its_own_tests_pass_and_those_of_all_services_still_do(copy: Copy) -> None:
    """The end-to-end tests of its own start its processes with Kafka, PostgreSQL and Jaeger, send
    the first command, and read its event from Kafka and its trace from Jaeger.
    """
    printed = copy.python("-m", "pytest", "-q", "-n", "0", FOLDER, *TESTS_OF_ALL_SERVICES)

    assert "passed" in printed
    assert "skipped" not in printed


@pytest.fixture(scope="module")
def surfaces(copy: Copy) -> Mapping[str, str]:
    """With the new service."""
    found: Mapping[str, str] = json.loads(copy.python("-m", "test_support.surfaces"))
    return found


@pytest.fixture(scope="module")
def surfaces_without() -> Mapping[str, str]:
    """Those of this checkout, which differs in nothing else."""
    return list_surfaces(CHECKOUT)


@pytest.mark.parametrize("surface", KNOWN)
def test_a_surface_knows_it_without_an_edit(
    surface: str, surfaces: Mapping[str, str], surfaces_without: Mapping[str, str]
) -> None:
    assert {each for each in KNOWN[surface] if each not in surfaces[surface]} == set()
    assert NAME not in surfaces_without[surface], "the negative control"


def test_no_surface_is_left_out(surfaces: Mapping[str, str]) -> None:
    """But pages about other services, about metrics, whose names no service adds, and verbs."""
    others = {each for each in surfaces if each.startswith("reference/http-")}

    assert surfaces.keys() - KNOWN.keys() - others == {
        *("reference/metrics.md", "reference/verbs.md")
    }


@pytest.mark.parametrize("file", ["docker-compose.yml", "docker-compose.cluster.yml"])
def test_compose_starts_it_and_the_others_know_it(copy: Copy, file: str) -> None:
    services, before = render(copy.root, file), render(CHECKOUT, file)

    added = services.keys() - before.keys()
    assert added == {*PROCESSES, f"{NAME}-migrate", f"{NAME}-tool"}
    knowing = {each for each in before if f"{NAME}-" in str(services[each])}
    assert knowing - {"console"} == {"observer", *(["proxy"] if "cluster" in file else [])}
    assert ("console" in knowing) == ("console" in before)
    assert f"{NAME}-migrate" in services["observer"]["depends_on"]
    assert NAME not in str(before)
    if "cluster" in file:
        assert services[WORKER]["deploy"]["replicas"] == 2
        assert str(API_PORT) in str(services["proxy"]["ports"])
    else:
        assert str(API_PORT) in str(services[API]["ports"])
        shown = str(services["console"]["environment"])  # part: console
        assert f'"{API}": "http://127.0.0.1:{API_PORT}"' in shown  # part: console


def test_files_that_people_write_gain_a_line_at_most(copy: Copy) -> None:
    changed = {}
    for line in copy.git("diff", "--numstat", "HEAD").splitlines():
        added, removed, name = line.split("\t")
        changed[name] = int(added), int(removed)

    by_hand = {name: lines for name, lines in changed.items() if not is_generated(copy, name)}
    assert by_hand == {COMPOSE: (1, 0)}
    assert sum(removed for _, removed in changed.values()) <= LINES_TOUCHED_MAX, changed


def is_generated(copy: Copy, name: str) -> bool:
    """uv writes the lock, `make contracts` the document, `make generate` dashboards and what begins
    with that."""
    first_line = (copy.root / name).read_text().partition("\n")[0]
    return (
        name in ("uv.lock", "contracts/asyncapi.json")
        or name.startswith("infra/observability/dashboards/")
        or "Generated by" in first_line
    )
