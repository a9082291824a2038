"""`docker compose up`, by a visitor who has Docker alone: the sample, a trace, where to look."""

import json
import os
import re
import shlex
import subprocess
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from uuid import uuid4

import httpx
import pytest

from containers.compose import ERASE_LINE, PUBLISHED
from local_stack import ports
from local_stack.settings import PORT_PREFIX, variable
from test_support.system.eventually import eventually
from test_support.system.stack import CHECKOUT

UP = "docker compose up"
LAST = "stops it and keeps the data"
"""What the demonstration prints at last."""
OF_THE_DEMO = re.compile(r"demo-1 +\| ")
BUILT_SECONDS_MAX = 1800
"""With images that are not there yet."""
TABLE_ROW = ["all", "4", "4", "12", "44506.56"]


@dataclass(frozen=True, slots=True)
class Visitor:
    """Calls `docker compose` with a project and ports that no other stack has."""

    environment: Mapping[str, str]

    def compose(self, command: str, **variables: str) -> str:
        """Run a command to its end; what it prints."""
        ended = subprocess.run(
            shlex.split(command),
            cwd=CHECKOUT,
            env={**self.environment, **variables},
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            check=False,
            timeout=BUILT_SECONDS_MAX,
        )
        assert ended.returncode == 0, ended.stderr
        return ended.stdout.replace(ERASE_LINE, "")

    def count_users(self) -> int:
        token = self.compose("docker compose run --rm --no-TTY token clerk").strip()
        answer = httpx.get(
            f"http://127.0.0.1:{self.environment['HOMETOWN_PORT_USERS_API']}/v1/users",
            headers={"Authorization": f"Bearer {token}"},
            trust_env=False,
        )
        return len(answer.raise_for_status().json()["users"])

    def list_operations(self, shown: str) -> set[str]:
        """The operations of the trace whose address is shown, from the API of Jaeger."""
        [trace_id] = re.findall(r"its trace: \S+/([0-9a-f]{32})", shown)
        address = f"http://127.0.0.1:{self.environment['HOMETOWN_PORT_JAEGER']}"
        answer = httpx.get(f"{address}/api/traces/{trace_id}", trust_env=False)
        [trace] = answer.raise_for_status().json()["data"]
        return {span["operationName"] for span in trace["spans"]}

    def list_services(self) -> set[str]:
        """Those that have a container."""
        lines = self.compose("docker compose ps --all --format json").splitlines()
        return {json.loads(line)["Service"] for line in lines}

    def read_demo(self) -> str:
        return self.compose("docker compose logs --no-color --no-log-prefix demo")

    def forget_requests(self) -> None:
        """What the APIs do after three days: a repeated request is a new one."""
        for database in ("users", "orders"):
            script = (
                "PGPASSWORD=$(cat /run/secrets/password) psql -h 127.0.0.1 -U postgres"
                f" -c 'DELETE FROM idempotency_keys' {database}"
            )
            self.compose(f"docker compose exec --no-TTY postgres bash -c {shlex.quote(script)}")


@pytest.fixture(scope="module")
def visitor() -> Iterator[Visitor]:
    free = ports.choose(PUBLISHED, given={}, kept={}, prefer_default=False, tell=print)
    foreign = ("HOMETOWN_", "COMPOSE_", "AUTH_", "ENVIRONMENT")
    visitor = Visitor(
        {
            **{name: text for name, text in os.environ.items() if not name.startswith(foreign)},
            **{variable(PORT_PREFIX, name): str(port) for name, port in free.items()},
            "COMPOSE_DISABLE_ENV_FILE": "1",
            "COMPOSE_PROJECT_NAME": f"hometown-test-{uuid4().hex[:8]}",
        }
    )
    try:
        # Images of an earlier commit would be used as they are.
        visitor.compose("docker compose build --quiet")
        yield visitor
    finally:
        visitor.compose("docker compose --profile * down --volumes --remove-orphans")


@dataclass(frozen=True, slots=True)
class Visit:
    """The lines that were printed, and the operations in the trace that was shown."""

    printed: list[str]
    operations: set[str]

    @property
    def shown(self) -> str:
        """What the demonstration printed, without the name that Compose sets before each line."""
        lines = [each.partition("| ")[2] for each in self.printed if OF_THE_DEMO.match(each)]
        return "\n".join(lines)


@pytest.fixture(scope="module")
def visit(visitor: Visitor, tmp_path_factory: pytest.TempPathFactory) -> Visit:
    """The first `docker compose up`, until the demonstration has ended; then it is stopped."""
    file = tmp_path_factory.mktemp("up") / "printed"
    with (
        file.open("w") as output,
        subprocess.Popen(
            UP.split(), cwd=CHECKOUT, env=visitor.environment, stdout=output, stderr=output
        ) as up,
    ):
        try:
            eventually(
                lambda: up.poll() is not None or LAST in file.read_text(),
                bool,
                what="the demonstration has ended",
                seconds_max=BUILT_SECONDS_MAX,
            )
            visit = Visit(file.read_text().replace(ERASE_LINE, "").splitlines(), set())
            visit.operations.update(visitor.list_operations(visit.shown))
        finally:
            up.terminate()
    return visit


@pytest.fixture(scope="module")
def background(visitor: Visitor, visit: Visit) -> Visitor:
    """A visitor who has started the same again, in the background."""
    visitor.compose(f"{UP} --wait")
    return visitor


def has_answer(shown: str) -> bool:
    """Vector V1."""
    return TABLE_ROW in [line.split() for line in shown.splitlines()]


def test_one_command_shows_the_answer(visit: Visit) -> None:
    assert has_answer(visit.shown)


def test_the_trace_that_is_shown_is_in_jaeger(visit: Visit) -> None:
    assert {"POST /v1/orders", "merge cell"} <= visit.operations


def test_what_servers_log_does_not_hide_the_answer(visit: Visit) -> None:
    names = {line.partition("-1 ")[0] for line in visit.printed if " | " in line}

    assert {"demo", "users-api", "topics"} <= names
    assert not {"kafka", "postgres", "jaeger"} & names


def test_every_address_is_one_for_outside(visitor: Visitor, visit: Visit) -> None:
    addresses = re.findall(r"http://\S+", visit.shown)

    ports_seen = {address.split(":")[2].partition("/")[0] for address in addresses}
    assert ports_seen <= set(visitor.environment.values())
    assert len(ports_seen) >= len(("users-api", "orders-api", "analytics-api", "jaeger"))
    assert all(address.startswith("http://127.0.0.1:") for address in addresses)


def test_a_later_start_loads_nothing(background: Visitor) -> None:
    before = background.count_users()
    background.forget_requests()
    background.compose("docker compose down")

    background.compose(f"{UP} --wait")

    assert has_answer(background.read_demo())
    assert background.count_users() == before


def test_the_next_trace_is_one_command(background: Visitor) -> None:
    shown = background.compose("docker compose run --rm --no-TTY trace")

    assert "merge cell" in background.list_operations(shown)
    assert f"http://127.0.0.1:{background.environment['HOMETOWN_PORT_JAEGER']}/" in shown


def test_an_empty_shop_is_one_setting(background: Visitor) -> None:
    assert "demo" in background.list_services()

    background.compose(f"{UP} --wait", HOMETOWN_DEMO="0")

    assert "demo" not in background.list_services()
    background.compose(f"{UP} --wait")  # for the other tests


def test_a_stack_with_another_issuer_of_tokens_starts_without_the_sample(
    background: Visitor,
) -> None:
    changed = f"{UP} --wait --force-recreate --no-deps analytics-api demo"
    background.compose(changed, AUTH_ISSUER="https://issuer.example")

    assert "the sample is for development" in background.read_demo()
    background.compose(f"{UP} --wait")  # for the other tests


def test_the_container_that_stays_can_do_nothing(background: Visitor) -> None:
    """It has the key that signs tokens."""
    identity = background.compose("docker compose ps --quiet demo").strip()
    [said] = json.loads(background.compose(f"docker inspect {identity}"))

    host = said["HostConfig"]
    assert host["CapDrop"] == ["ALL"]
    assert host["ReadonlyRootfs"]
    assert host["Memory"] > 0
    assert said["NetworkSettings"]["Ports"] == {}
    assert [each["RW"] for each in said["Mounts"] if each["Type"] == "volume"] == [False]
    assert background.compose("docker compose exec --no-TTY demo id -u").strip() != "0"


@pytest.mark.parametrize("document", ["README.md", "docs/containers.md"])
def test_the_documents_begin_with_this_command(document: str) -> None:
    text = (CHECKOUT / document).read_text()
    [first, *_] = re.findall(r"^docker compose .+?(?= *(?:#|$))", text, re.MULTILINE)

    assert first == UP
