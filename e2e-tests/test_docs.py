"""The documents are true: paths exist, commands are verbs that tests run, tables match the code."""

import json
import re
import subprocess
from pathlib import Path

import pytest
from pydantic_settings import BaseSettings

import orders_svc.item.contract
import orders_svc.order.contract
import users_svc.contract
from analytics_faust.settings import FaustSettings
from analytics_spark.settings import ApiSettings, JobSettings, ReconcileSettings
from local_stack.settings import Settings as StackSettings
from orders_svc.settings import OrdersSettings
from shared.messaging.topics import TOPICS, TopicSettings
from test_support.first_services import leave_out_added
from test_support.system.stack import CHECKOUT, Stack
from users_svc.api_settings import UsersApiSettings

DOCUMENTS = [
    document
    for pattern in ("*.md", "*/*.md", "*/*/*.md")
    for document in CHECKOUT.glob(pattern)
    if not document.relative_to(CHECKOUT).parts[0].startswith(".")
]

LISTS_ALL_VERBS = CHECKOUT / "AGENTS.md"
"""Also those that a copy adds, and those that are a part of another."""

RUN_BY_TESTS = {"demo", "up", "down", "status", "logs", "lag", "clean", "footprint", "help"} | {
    "load",
    "lesson",
    "lessons",
    "learn",
    "rebuild-check",
    "rebuild",
    "switch",
    "replace",
    "kill",
    "stop",
    "replay",
    "token",
    "contracts",
    "contracts-release",
    "new",
    "without",
    "rename",
    "upgrade",
    "audit",
    "check-cells",
    "reprocess",
    "rescale",
    "reconcile",
    "export",
    "compare",
    "fetch",
    "backup",
    "restore",
    "republish",
    "rotate",
    "trace",
    "requests",
    "doctor",
    "docs",
    "release",
    "dev",
    "debug",
    "setup",
    "fmt",
}
"""Verbs that tests call, such as test_demo.py."""
RUN_BY_CI = {
    "generate",
    "check",
    "lint",
    "types",
    "test",
    "verify",
    "smoke",
    "e2e",
    "e2e-compose",
    "e2e-cluster",
    "imports",
    "contracts-check",
    "scan",
}
"""Verbs that are parts of `make test`, or that `.github/workflows/ci.yml` calls; test_generate.py
checks that `make generate` would change nothing."""
RUN_SHORTLY = {"stress", "saga", "fuzz", "differential", "crashes", "drill"} | {
    "bench",
    "bench-analytics",
}
"""Campaigns of which test_stress.py, test_fuzz.py, test_random_histories.py and others run a few
rounds."""

SET_BY_THE_STACK = {
    "database_url",
    "database_service_role",
    "database_reader_role",
    "users_store_url",
    "orders_store_url",
    "kafka_bootstrap_servers",
    "way",
    "spark_local_dirs",
    "tmpdir",
    "http_host",
    "http_port",
    "otel_exporter_otlp_endpoint",
    "relay_address",
    "personal_data_key",
    "users_url",
    "analytics_url",
    "jaeger_ui_url",
    "ports_given",
    "checkpoint_dir",
    "faust_dir",
    "spark_jars_dir",
    "spark_aot_cache",
}
"""Addresses and folders: `make up` chooses them and passes them to each process."""


MADE_BY_VERBS = (
    ".run/",
    "learn/",
)
"""Folders that git ignores."""


def names_in(document: Path, pattern: str) -> set[str]:
    return set(re.findall(pattern, document.read_text()))


@pytest.mark.parametrize("document", DOCUMENTS, ids=lambda path: str(path.relative_to(CHECKOUT)))
def test_every_path_exists(document: Path) -> None:
    links = names_in(document, r"\]\((?!http)([^)#]+)")
    code = names_in(document, r"`((?:[\w.-]+/)+[\w.-]*)`")

    missing = [path for path in links if not (document.parent / path).exists()]
    missing += [
        path
        for path in code
        if not (CHECKOUT / path).exists() and not path.startswith(MADE_BY_VERBS)
    ]

    assert missing == []


@pytest.mark.parametrize(
    "document",
    [document for document in DOCUMENTS if document != LISTS_ALL_VERBS],
    ids=lambda path: str(path.relative_to(CHECKOUT)),
)
def test_every_command_is_a_verb_that_is_run(document: Path) -> None:
    verbs = names_in(document, r"(?:^|`)make ([a-z0-9-]+)") | names_in(document, r"\nmake ([\w-]+)")

    assert verbs <= RUN_BY_TESTS | RUN_BY_CI | RUN_SHORTLY


def test_the_call_of_the_readme_is_answered(stack: Stack) -> None:
    [command] = re.findall(r"^curl .+:8002/.+$", (CHECKOUT / "README.md").read_text(), re.MULTILINE)
    here = command.replace("http://127.0.0.1:8002", stack.hometown.addresses["orders-api"])

    ended = subprocess.run(
        ["bash", "-c", here],
        cwd=CHECKOUT,
        # curl would ask the proxy; ours must not, without that variable.
        env={**stack.variables, "no_proxy": "127.0.0.1"},
        capture_output=True,
        text=True,
        check=True,
    )

    assert "items" in json.loads(ended.stdout)


def test_help_lists_the_verbs(stack: Stack) -> None:
    printed = stack.make_output("help")

    assert all(f"make {verb} " in printed for verb in RUN_BY_TESTS | RUN_BY_CI | RUN_SHORTLY)


def test_every_topic_and_public_event_is_in_the_table() -> None:
    table = {
        topic: set(events.split(", "))
        for topic, events in re.findall(
            r"^\| `([\w.]+)` \| \w+ \| ([\w, -]+) \|$",
            (CHECKOUT / "docs/architecture.md").read_text(),
            re.MULTILINE,
        )
    }

    assert table == {
        module.TOPIC: set(module.CODEC.names)
        for module in (users_svc.contract, orders_svc.item.contract, orders_svc.order.contract)
    }
    assert table.keys() == leave_out_added(TOPICS)


@pytest.mark.parametrize(
    "settings",
    [
        *(StackSettings, TopicSettings, UsersApiSettings, OrdersSettings),
        *(ApiSettings, JobSettings, ReconcileSettings, FaustSettings),
    ],
)
def test_every_setting_is_in_the_example(settings: type[BaseSettings]) -> None:
    prefix = settings.model_config.get("env_prefix", "")
    example = (CHECKOUT / ".env.example").read_text()

    missing = [
        name
        for name, field in settings.model_fields.items()
        if name not in SET_BY_THE_STACK
        and f"#{field.validation_alias or prefix + name}=".upper() not in example.upper()
    ]

    assert missing == []
