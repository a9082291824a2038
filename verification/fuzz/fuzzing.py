"""Calls the APIs as their OpenAPI documents allow, and as they do not: rounds of schemathesis."""

import json
import os
import subprocess
import sys
import tempfile
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from itertools import chain
from pathlib import Path
from shutil import copy
from typing import Any

from local_stack.hometown import HOMETOWN
from local_stack.stack_spec import Process, StackContext
from local_stack.testing import throwaway_stack
from test_support.system.clients import CALLERS, Hometown, Json

FOLDER = Path(__file__).parent
LEFT_OUT = frozenset(
    {
        *("jaeger", "analytics-job"),
        "analytics-faust",
    }
)
"""Processes that no request of a round reaches, and that take longest to start."""
SERVICES = tuple(name for name in CALLERS if name not in LEFT_OUT)

NEEDS_SPARK = frozenset({"GET /v1/readings"})
"""Operations that can only succeed once the job has read something."""
KNOWN_MAX = 6
"""Items on offer, and users with credit, that a round begins with."""
ROUND_SECONDS_MAX = 1200
SETTINGS = {"STREAM_SECONDS_MAX": "0.1", "ORDER_WAIT_SECONDS_MAX": "3600"}
"""How long a stream lasts: schemathesis reads it to its end. And no order is refused because others
wait: to schemathesis a 503 is a bug."""
METHODS = frozenset({"get", "put", "post", "delete", "patch"})


@dataclass(slots=True, kw_only=True)
class Tally:
    """The results of one or more rounds with this document."""

    document: Json
    statuses: Counter[tuple[str, int]] = field(default_factory=Counter)
    checks: Counter[str] = field(default_factory=Counter)
    failures: list[str] = field(default_factory=list)

    @property
    def operations(self) -> frozenset[str]:
        return frozenset(
            f"{method.upper()} {path}"
            for path, item in self.document["paths"].items()
            for method in item.keys() & METHODS
        )

    @property
    def cases(self) -> int:
        return sum(self.statuses.values())

    @property
    def never_succeeded(self) -> Sequence[str]:
        """Operations that were only ever refused: they were not really tested."""
        succeeded = {name for name, status in self.statuses if 200 <= status < 300}
        return sorted(self.operations - NEEDS_SPARK - succeeded)

    @property
    def successes(self) -> int:
        return sum(count for (_, status), count in self.statuses.items() if status < 300)

    @property
    def server_errors(self) -> int:
        return sum(count for (_, status), count in self.statuses.items() if status >= 500)


@dataclass(frozen=True, slots=True, kw_only=True)
class Round:
    """One run of schemathesis, and how much it draws for each operation."""

    service: str
    seed: int
    examples_max: int


@contextmanager
def stack_without_spark() -> Iterator[Hometown]:
    """All processes that an API needs, without the Spark job: hours are empty."""
    processes = tuple(
        with_settings(each) for each in HOMETOWN.processes if each.name not in LEFT_OUT
    )
    with throwaway_stack(replace(HOMETOWN, processes=processes)) as context:
        hometown = Hometown.of_run_folder(context.folder.path)
        with hometown.http:
            yield hometown


def with_settings(process: Process) -> Process:
    """The process with SETTINGS."""

    def environment(context: StackContext) -> Mapping[str, str]:
        return {**process.environment(context), **SETTINGS}

    return replace(process, environment=environment)


def create_tally(hometown: Hometown, service: str) -> Tally:
    """An empty tally with the document that the service publishes."""
    answer = hometown.http.get(f"{hometown.addresses[service]}/openapi.json")
    return Tally(document=answer.raise_for_status().json())


def play(hometown: Hometown, each: Round, tally: Tally) -> None:
    """Run one round and add its results. The output of schemathesis is the text of a failure."""
    with tempfile.TemporaryDirectory(prefix="hometown-fuzz-") as name:
        folder = Path(name)
        write_dictionaries(hometown, folder)
        copy(FOLDER / "schemathesis.toml", folder)
        (folder / "openapi.json").write_text(json.dumps(tally.document))
        ended = subprocess.run(
            [sys.executable, "-m", "schemathesis.cli", *arguments(hometown, each)],
            cwd=folder,
            env=environment(hometown, each.service),
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            timeout=ROUND_SECONDS_MAX,
            check=False,
        )
        for recorded in read_recordings(folder / "report.ndjson"):
            count(recorded, tally)
    if ended.returncode != 0:
        tally.failures.append(f"seed {each.seed}\n{ended.stdout}{ended.stderr}")


def write_dictionaries(hometown: Hometown, folder: Path) -> None:
    users = [
        hometown.register_user(
            name="Jack", address="BJ", gender="male", credit_limit="9999999999.99"
        )["user_id"]
        for _ in range(KNOWN_MAX)
    ]
    items = [
        hometown.list_item(name="iphone", type="phone", origin="BJ", price="5388.88")["item_id"]
        for _ in range(KNOWN_MAX)
    ]
    for name, ids in (("users", users), ("items", items)):
        (folder / f"{name}.txt").write_text("".join(f'"{each}"\n' for each in ids))


def arguments(hometown: Hometown, each: Round) -> Sequence[str]:
    return [
        "--no-color",
        "run",
        "openapi.json",
        f"--url={hometown.addresses[each.service]}",
        f"--max-examples={each.examples_max}",
        f"--seed={each.seed}",
        "--generation-database=none",
        "--report-ndjson-path=report.ndjson",
    ]


def environment(hometown: Hometown, service: str) -> Mapping[str, str]:
    return os.environ | {"FUZZ_TOKEN": hometown.tokens[service]}


def read_recordings(report: Path) -> Iterator[dict[str, Any]]:
    """The scenarios that schemathesis has recorded, each with its cases and responses."""
    with report.open() as lines:
        for line in lines:
            for event in json.loads(line).values():
                if isinstance(event, dict) and "recorder" in event:
                    yield event["recorder"]


def count(recorded: Mapping[str, Any], tally: Tally) -> None:
    """A scenario without a request has no interactions."""
    for case_id, exchange in recorded.get("interactions", {}).items():
        case, answer = recorded["cases"][case_id]["value"], exchange["response"]
        if answer is not None:
            tally.statuses[f"{case['method']} {case['path']}", answer["status_code"]] += 1
    checks = chain.from_iterable(recorded.get("checks", {}).values())
    tally.checks.update(check["name"] for check in checks)
