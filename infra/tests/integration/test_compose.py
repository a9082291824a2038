"""What Compose makes of its files with and without TLS; no engine is needed."""

import json
import os
import subprocess
from collections.abc import Mapping
from typing import Any

import pytest

from containers.compose import CLUSTER_FILE
from local_stack.settings import CHECKOUT

FILES = ["docker-compose.yml", CLUSTER_FILE]
CALLED = {
    "orders-api": {"USERS_URL": "users-api", "ANALYTICS_URL": "analytics-api"},
    "analytics-faust": {"ANALYTICS_URL": "analytics-api"},
}
"""The variables with addresses of other APIs."""
SHOWING = {"demo", "trace"}
"""They print addresses for people."""

Services = Mapping[str, Mapping[str, Any]]


@pytest.fixture(autouse=True)
def compose() -> None:
    try:
        subprocess.run(["docker", "compose", "version"], check=True, capture_output=True)
    except (OSError, subprocess.CalledProcessError):
        pytest.skip("there is no `docker compose` here")


def render(file: str, tls: str) -> Services:
    ended = subprocess.run(
        ["docker", "compose", "-f", file, "--profile", "*", "config", "--format", "json"],
        cwd=CHECKOUT,
        env={**os.environ, "HOMETOWN_TLS": tls},
        check=True,
        capture_output=True,
    )
    services: Services = json.loads(ended.stdout)["services"]
    return services


def differences(one: Services, other: Services) -> dict[str, dict[str, str]]:
    """The variables that differ, with the values of `other`; nothing else differs."""
    found = {}
    for name, service in other.items():
        before = one[name].get("environment") or {}
        after = service.get("environment") or {}
        assert {**one[name], "environment": after} == {**service, "environment": after}
        found[name] = {key: value for key, value in after.items() if before.get(key) != value}
    return {name: changed for name, changed in found.items() if changed}


@pytest.mark.parametrize("file", FILES)
def test_tls_changes_addresses_and_starts_what_uses_it_again(file: str) -> None:
    plain, with_tls = (render(file, tls) for tls in ("", "on"))

    changed = differences(plain, with_tls)
    shown = [changed[name].pop("PUBLISHED_ADDRESSES") for name in SHOWING & changed.keys()]

    assert len(shown) == len(SHOWING & plain.keys())
    for texts in map(json.loads, shown):
        assert texts.pop("jaeger").startswith("http://127.0.0.1:")
        assert all(each.startswith("https://127.0.0.1:") for each in texts.values())
    addresses = {
        name: {key: value for key, value in values.items() if key != "HOMETOWN_TLS"}
        for name, values in changed.items()
    }
    assert {name: values for name, values in addresses.items() if values} == {
        name: {variable: f"https://{api}:8000" for variable, api in called.items()}
        for name, called in CALLED.items()
    }
    using = {"secrets", "databases", "postgres", "load", *(["proxy"] * ("proxy" in plain))}
    using |= {"trace"} & plain.keys()
    using |= {
        name for name, each in plain.items() if "SECRETS_DIR" in (each.get("environment") or {})
    }
    assert {name for name, values in changed.items() if "HOMETOWN_TLS" in values} == using - {
        "topics"
    }
