"""Containers are replaced one after the other while clients send requests: none of these fails."""

import asyncio
from datetime import datetime

import pytest

from shared.runtime.declarations import load_declarations
from test_support.system.clients import Hometown
from test_support.system.cluster_stack import ClusterStack
from test_support.system.traffic import send_during

COMMANDS = ("api", "relay", "worker")
REPLACED = [name for command in COMMANDS for name in load_declarations().names_of(command)]


def ids_of(cluster: ClusterStack, name: str) -> set[str]:
    return {each.id for each in cluster.project.containers().values() if each.service == name}


@pytest.mark.parametrize("name", REPLACED)
def test_no_request_fails_while_a_process_is_replaced(
    cluster: ClusterStack, hometown: Hometown, hour: datetime, name: str
) -> None:
    before = ids_of(cluster, name)

    traffic = asyncio.run(
        send_during(hometown, hour, lambda: cluster.make_output("replace", f"name={name}"))
    )

    after = ids_of(cluster, name)
    assert traffic.failed == {}
    assert len(after) == len(before)
    assert not after & before
    last = hometown.wait_for_decision(traffic.orders[-1])
    assert last["status"] != "pending"


def test_requests_fail_while_both_containers_of_an_api_are_replaced(
    cluster: ClusterStack, hometown: Hometown, hour: datetime
) -> None:
    """The negative control: what is lost when the second one does not wait for the first."""

    def replace_both() -> None:
        cluster.stop(["users-api"])
        cluster.start(["users-api", "users-api-2"])

    traffic = asyncio.run(send_during(hometown, hour, replace_both))

    assert traffic.failed


def test_a_process_that_does_not_run_is_not_replaced(cluster: ClusterStack) -> None:
    ended = cluster.make("replace", "name=analytics-faust")

    assert ended.returncode != 0
    assert "does not run here" in ended.stderr
