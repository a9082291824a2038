"""`make observe` starts a Prometheus that scrapes every process, or says that there is none."""

import os

import httpx
import pytest

from local_stack.prometheus import find_program
from test_support.metric_registry import PROCESSES
from test_support.system.eventually import eventually
from test_support.system.stack import Stack

pytestmark = pytest.mark.skipif(
    os.environ.get("HOMETOWN_TEST_IN", "processes") != "processes",
    reason="images of Prometheus and Grafana would be fetched for it",
)


def test_it_scrapes_every_process_or_names_what_is_missing(stack: Stack) -> None:
    if find_program(stack.settings) is None:
        ended = stack.make("observe")
        assert ended.returncode != 0
        assert "there is no Prometheus: install it, or set PROMETHEUS_BIN" in ended.stderr
        return

    stack.make_output("observe")
    address = stack.hometown.addresses["prometheus"]

    def find_up() -> set[str]:
        query = {"query": "up == 1"}
        found = httpx.get(f"{address}/api/v1/query", params=query).raise_for_status().json()
        return {each["metric"]["job"] for each in found["data"]["result"]}

    try:
        eventually(find_up, lambda seen: seen >= {*PROCESSES}, what="every process is scraped")
    finally:
        stack.stop(["prometheus"])
