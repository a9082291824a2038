"""Each command in the documents is run by a test, or is listed here with the reason why not.

The verbs of make are compared with tests by e2e-tests/test_docs.py; this is about all other
commands. Decision records are left out: they have the commands of their day.
"""

import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

CHECKOUT = Path(__file__).parents[3]
HELP_SECONDS_MAX = 60

PROGRAMS = ("curl", "docker", "git", "kubectl", "npm", "parked", "pip", "python", "uv", "uvx")
NO_COMMANDS = ("make", "sleep", "wait", "cd", "export")
"""Verbs, of which another test knows, and words of the shell."""

RUN = {
    r"curl -H .* http://127\.0\.0\.1:8002/v1/items": "e2e-tests/test_docs.py: test_a_call",
    r"python -m (mypy [\w-]+|pytest( [\w./:-]+)+)": (
        "verification/tests/integration/test_recipes.py: recipe.commands"
    ),
    r"git apply docs/recipes/command\.patch": (
        "verification/tests/integration/test_recipes.py: recipes.apply"
    ),
    r"curl -s http://127\.0\.0\.1:8002/metrics": "e2e-tests/test_docs.py: test_a_call",
    r"python -m (\w+|verification\.\w+)( \w+)? --help": "here: test_help_is_printed",
    r"python -m benchmarks( delivery| analytics)?( --.*)?": (
        'benchmarks/tests/integration/test_bench.py: "-m", "benchmarks"'
    ),
    r"python -m analytics_spark reconcile": 'e2e-tests/test_reconcile.py: "reconcile"',
    r"python -m analytics_spark export": 'e2e-tests/test_reconcile.py: "export"',
    r"python -m analytics_spark rescale 4": 'e2e-tests/test_reprocess.py: "rescale"',
    r"python -m analytics_spark reprocess": 'e2e-tests/test_reprocess.py: "reprocess"',
    r"python -m analytics_spark aot-cache": 'e2e-tests/test_demo.py: "fetch"',
    r"python -m analytics_spark (job|api|reconciler|migrate)": 'e2e-tests/test_demo.py: "up"',
    r"python -m shared\.messaging\.topics": 'e2e-tests/test_demo.py: "up"',
    r"(python -m local_stack run orders )?parked (--relay )?(\w+)( STREAM)?( VERSION)?( --.*)?": (
        'shared/tests/integration/test_parked_command.py: "parked"'
    ),
    r"curl -s localhost:8005/v1/payments.*": "e2e-tests/test_new_service_guide.py: read_steps",
    r"python -m pytest -q payments-svc/tests/unit": (
        "e2e-tests/test_new_service_guide.py: read_steps"
    ),
    r'echo "\$EVENTS"': "e2e-tests/test_new_service_guide.py: read_steps",
    r"git apply <<'END'": 'e2e-tests/test_new_service_guide.py: git("apply"',
    r"uvx copier copy( --trust .+)?": 'verification/tests/integration/test_parts.py: "copy"',
    r"uvx copier update --trust": 'verification/tests/integration/test_parts.py: "update"',
    r"git (init|add -A|commit -m .+)": 'verification/tests/integration/test_parts.py: "commit"',
    r"docker compose up --wait --(no-)?build": (
        "e2e-tests/in_containers/test_published_images.py: --no-build"
    ),
    r"docker compose up --wait": "test_support/system/container_stack.py: containers.up",
    r"docker compose build": "test_support/system/container_stack.py: containers.up",
    r"docker compose kill users-relay": 'test_support/system/container_stack.py: output("kill")',
    r"docker compose --profile compare up --wait": (
        "e2e-tests/in_containers/test_replaced_containers.py: analytics-faust"
    ),
}
"""By a pattern of commands: the file of the test that runs them, and a word in it."""

NOT_RUN = {
    r"python -m pytest [\w-]+(/tests/\w+)?": "`make test` runs the tests of all folders",
    r"python -m local_stack run users adopt-outbox": (
        "it needs a database of another cluster: shared/tests/integration/test_adopt.py calls it"
    ),
    r"python -m local_stack run orders adopt-outbox": "as for users",
    r"docker compose( down)?": "the verbs of make run it in the tests of e2e-tests/in_containers",
    r"docker compose run --rm .+": (
        "the same tools as the verbs of make for processes; the commands of each container are"
        " compared by infra/tests/integration/test_compose.py"
    ),
    r"docker compose (-f \S+ )*--profile \w+ up --wait": (
        "images of others, or minutes: infra/tests/integration/test_compose.py reads each profile"
    ),
    r"docker compose exec kafka .+": (
        "it needs the files of a broker in a container: e2e-tests/test_kafka_tools.py reads those"
        " of a process"
    ),
    r"curl --cacert .+": (
        "it needs a stack of containers with TLS: infra/tests/integration/test_tls.py verifies the"
        " same connection"
    ),
    r"SECRETS_ROOT=infra/k8s/secrets python -m containers\.once secrets": (
        "infra/tests/integration/test_kubernetes.py calls the function, to write elsewhere"
    ),
    r"(sudo apt-get|brew) install .+|xcode-select --install": "they install programs of the system",
    r"git (diff|checkout \.)": "git's own: what a removal changes is compared in test_parts.py",
    r"kubectl .+": (
        "it needs a cluster of Kubernetes: infra/tests/integration/test_kubernetes.py renders the"
        " base and validates it"
    ),
}
"""By a pattern of commands: why no test runs them."""

Command = tuple[str, str]
"""The document, and the command in it."""


def find_commands() -> Iterator[Command]:
    """Those in blocks for a shell, and those between backticks; each with its program first."""
    for path in sorted(CHECKOUT.glob("**/*.md")):
        name = str(path.relative_to(CHECKOUT))
        if not name.startswith((".", "docs/adr/")):
            yield from ((name, command) for command in commands_in(path.read_text()))


def commands_in(text: str) -> Iterator[str]:
    block = r"^ *```(?:sh|bash)\n(.*?)^ *```"
    for lines in re.findall(block, text, re.MULTILINE | re.DOTALL):
        for line in lines.replace("\\\n", " ").splitlines():
            yield from split(re.sub(r"(^|\s)#.*", "", line))
    without_blocks = re.sub(r"^ *```.*?^ *```", "", text, flags=re.MULTILINE | re.DOTALL)
    for words in re.findall(r"`([^`\n]+)`", without_blocks):
        command = normalize(words)
        if command.split(" ")[0] in PROGRAMS and " " in command:
            yield command


def split(line: str) -> Iterator[str]:
    """The commands of one line, without those that are words of the shell."""
    for part in re.split(r"&&|&$", re.sub(r"> *\S+", "", line)):
        command = normalize(part)
        if command and command.split(" ")[0] not in NO_COMMANDS and not is_assignment(command):
            yield command


def is_assignment(command: str) -> bool:
    return bool(re.fullmatch(r"\w+=(\S*|\$\(.*\))", command))


def normalize(command: str) -> str:
    """With single spaces, and whichever Python it is."""
    return " ".join(command.split()).replace(".venv/bin/python", "python")


COMMANDS = list(find_commands())


def patterns(command: str) -> list[str]:
    return [each for each in (*RUN, *NOT_RUN) if re.fullmatch(each, command)]


def test_each_command_is_run_or_has_a_reason() -> None:
    assert len(COMMANDS) > 50
    assert [each for each in COMMANDS if not patterns(each[1])] == []


def test_each_pattern_is_that_of_a_command() -> None:
    used = {pattern for _, command in COMMANDS for pattern in patterns(command)}

    assert {*RUN, *NOT_RUN} - used == set()


def test_each_test_that_is_named_is_there() -> None:
    for evidence in RUN.values():
        path, _, word = evidence.partition(": ")
        file = Path(__file__) if path == "here" else CHECKOUT / path
        assert word in file.read_text(), evidence


@pytest.mark.parametrize(
    "command", sorted({command for _, command in COMMANDS if command.endswith(" --help")})
)
def test_help_is_printed(command: str) -> None:
    module, *words = command.removeprefix("python -m ").split()
    if module.startswith("things"):
        pytest.skip("the skeleton of a service, which has no environment of its own")

    ended = subprocess.run(
        [sys.executable, "-m", module, *words],
        cwd=CHECKOUT,
        capture_output=True,
        text=True,
        timeout=HELP_SECONDS_MAX,
    )

    assert ended.returncode == 0, ended.stderr
    assert "usage" in ended.stdout


def test_commands_are_found() -> None:
    text = (
        "`curl here` and `curl`\n\n```sh\nmake up  # `curl there`\nID=1\n"
        "TOKEN=$(make -s token as=clerk)\nA=b curl -x \\\n  y && curl z > file\n```\n"
    )

    assert list(commands_in(text)) == ["A=b curl -x y", "curl z", "curl here"]
