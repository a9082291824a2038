"""`make new-service name=parcels` in a copy of this checkout: what it makes works unedited."""

import json
import os
import shutil
import subprocess
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest
import yaml

from local_stack.testing import new_folder, sweep
from scripts.changes import CHECKOUT

pytestmark = pytest.mark.verify(part="new-service")

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
    *("contracts/tests/unit/test_views.py", "contracts/tests/unit/test_asyncapi.py"),
    *("contracts/tests/unit/test_promises.py", "shared/tests/unit/test_names.py"),
    "contracts/tests/unit/test_contract_files.py::test_a_sample_that_is_missing_is_begun",
    "e2e-tests/test_docs.py::test_every_topic_and_public_event_is_in_the_table",
    "e2e-tests/test_docs.py::test_every_path_exists",
    "e2e-tests/test_docs.py::test_every_command_is_a_verb_that_is_run",
    "verification/tests/unit/test_language.py",
)
"""Tests of lists of services, of all documents and of all texts: one more service keeps to them."""

COMMAND_SECONDS_MAX = 600

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


@dataclass(frozen=True, slots=True, kw_only=True)
class Copy:
    """A checkout with packages of its own."""

    root: Path

    def run(self, *command: str) -> subprocess.CompletedProcess[str]:
        """The environment has nothing of the `make` and the stack that run this test."""
        environment = {
            name: value
            for name, value in os.environ.items()
            if not name.startswith(("MAKE", "HOMETOWN_RUN_DIR", "PYTEST", "VIRTUAL_ENV"))
        }
        return subprocess.run(
            command,
            cwd=self.root,
            env=environment | {"HOMETOWN_PORTS": "free"},
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            timeout=COMMAND_SECONDS_MAX,
        )

    def printed(self, *command: str) -> str:
        """The output of a command, which must succeed."""
        ended = self.run(*command)
        assert ended.returncode == 0, f"{command}\n{ended.stdout}"
        return ended.stdout

    def python(self, *arguments: str) -> str:
        return self.printed(".venv/bin/python", *arguments)

    def git(self, *arguments: str) -> str:
        return self.printed("git", "-c", "user.name=test", "-c", "user.email=test", *arguments)


def link_or_copy(source: str, target: str) -> None:
    try:
        os.link(source, target)
    except OSError:  # another file system
        shutil.copy2(source, target)


def copy_checkout(root: Path) -> None:
    """All files that people commit, committed; and the packages, so that `make setup` is quick."""
    listed = subprocess.run(
        ["git", "ls-files", "-z", "--cached", "--others", "--exclude-standard"],
        cwd=CHECKOUT,
        capture_output=True,
        text=True,
        check=True,
    )
    for name in filter(None, listed.stdout.split("\0")):
        if (CHECKOUT / name).is_file():
            (root / name).parent.mkdir(parents=True, exist_ok=True)
            shutil.copy2(CHECKOUT / name, root / name)
    shutil.copytree(
        CHECKOUT / ".venv",
        root / ".venv",
        symlinks=True,
        copy_function=link_or_copy,
        # Without its stamp, `make setup` installs the copy's own code instead of ours.
        ignore=shutil.ignore_patterns("hometown-setup"),
    )
    for script in (root / ".venv" / "bin").iterdir():
        if not script.is_symlink() and script.read_bytes().startswith(b"#!"):
            point_to(script, root)
    (root / ".tools").symlink_to(CHECKOUT / ".tools")
    if (cache := CHECKOUT / ".mypy_cache").exists():
        shutil.copytree(cache, root / ".mypy_cache")
    Copy(root=root).git("init", "-q")
    Copy(root=root).git("add", "-A")
    Copy(root=root).git("commit", "-q", "-m", "the checkout")


def point_to(script: Path, root: Path) -> None:
    """Make a script run the interpreter of the copy; the file that it is linked with stays."""
    text, mode = script.read_text(), script.stat().st_mode
    script.unlink()
    script.write_text(text.replace(str(CHECKOUT), str(root)))
    script.chmod(mode)


@pytest.fixture(scope="module")
def copy() -> Iterator[Copy]:
    """The copy after the command."""
    sweep()
    root = new_folder()
    try:
        copy_checkout(root)
        copy = Copy(root=root)
        copy.printed("make", "new-service", f"name={NAME}")
        yield copy
    finally:
        shutil.rmtree(root)


def test_it_is_linted_typed_and_keeps_its_contract(copy: Copy) -> None:
    copy.python("-m", "ruff", "format", "--check", ".")
    copy.python("-m", "ruff", "check", ".")
    copy.python("-m", "mypy", FOLDER)
    copy.python("-m", "scripts.check_imports")
    copy.python("-m", "contracts", "check")
    assert copy.printed("make", "--no-print-directory", "generate") == ""


def test_its_own_tests_pass_and_those_of_all_services_still_do(copy: Copy) -> None:
    """The end-to-end tests of its own start its processes with Kafka, PostgreSQL and Jaeger, send
    the first command, and read its event from Kafka and its trace from Jaeger.
    """
    printed = copy.python("-m", "pytest", "-q", "-n", "0", FOLDER, *TESTS_OF_ALL_SERVICES)

    assert "passed" in printed
    assert "skipped" not in printed


def test_the_local_stack_and_its_topics_contain_it(copy: Copy) -> None:
    stack = json.loads(copy.python("-c", PRINT_STACK))

    ports = {name: port for name, port in stack["processes"].items() if name in PROCESSES}
    others = {port for name, port in stack["processes"].items() if name not in PROCESSES}
    assert ports.keys() == PROCESSES
    assert not set(ports.values()) & others
    assert f"{NAME} tables" in stack["preparations"]
    assert stack["readers"][f"{NAME}.v1"] == [f"{NAME}-worker"]
    assert f"{NAME}-worker" in stack["readers"]["orders.v1"]


def test_compose_contains_it(copy: Copy) -> None:
    top = yaml.safe_load((copy.root / COMPOSE).read_text())
    assert f"{FOLDER}/compose.yml" in top["include"]
    services = yaml.safe_load((copy.root / FOLDER / "compose.yml").read_text())["services"]
    assert services.keys() >= {*PROCESSES, f"{NAME}-migrate", f"{NAME}-tool"}

    if shutil.which("docker") and copy.run("docker", "compose", "version").returncode == 0:
        rendered = json.loads(copy.printed("docker", "compose", "config", "--format", "json"))
        assert rendered["services"].keys() >= PROCESSES


def test_files_that_people_write_gain_a_line_at_most(copy: Copy) -> None:
    changed = {}
    for line in copy.git("diff", "--numstat", "HEAD").splitlines():
        added, removed, name = line.split("\t")
        changed[name] = int(added), int(removed)

    by_hand = {name: lines for name, lines in changed.items() if not is_generated(copy, name)}
    assert by_hand == {COMPOSE: (1, 0)}
    assert sum(removed for _, removed in changed.values()) <= LINES_TOUCHED_MAX, changed


def is_generated(copy: Copy, name: str) -> bool:
    """uv writes the lock, `make contracts` the document, `make generate` what begins with that."""
    first_line = (copy.root / name).read_text().partition("\n")[0]
    return name in ("uv.lock", "contracts/asyncapi.json") or "Generated by" in first_line
