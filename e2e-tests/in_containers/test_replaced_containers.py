"""Containers are replaced while clients send requests: only those to a replaced API are refused."""

import re
from datetime import datetime

import pytest

from shared.runtime.declarations import API, load_declarations
from test_support.system.clients import Hometown
from test_support.system.container_stack import ContainerStack
from test_support.system.stack import Stack
from test_support.system.traffic import send_while

USUAL = [
    (command, process.name)
    for service in load_declarations().services
    for command, process in service.processes.items()
    if process.profile is None
]
OTHERS = [name for command, name in USUAL if command != API]


def id_of(stack: Stack, name: str) -> str:
    assert isinstance(stack, ContainerStack)
    return stack.project.containers()[name].id


@pytest.mark.parametrize("name", OTHERS)
def test_no_request_fails_while_a_process_is_replaced(
    stack: Stack, hometown: Hometown, hour: datetime, name: str
) -> None:
    before = {each: id_of(stack, each) for _, each in USUAL}

    traffic = send_while(hometown, hour, lambda: stack.make_output("replace", f"name={name}"))

    assert traffic.failed == {}
    changed = {each for each, known in before.items() if id_of(stack, each) != known}
    assert changed == {name}


def test_an_api_that_is_replaced_refuses_requests_and_the_verb_reports_it(
    stack: Stack, hometown: Hometown, hour: datetime
) -> None:
    """Also the negative control: a request that is refused is counted."""
    printed: list[str] = []
    before = id_of(stack, "users-api")

    traffic = send_while(
        hometown, hour, lambda: printed.append(stack.make_output("replace", "name=users-api"))
    )

    assert id_of(stack, "users-api") != before
    assert traffic.failed
    assert {each.partition(":")[0] for each in traffic.failed} == {"users-api"}
    assert "refuses requests until its new container is ready" in printed[0]
    assert re.search(r"replaced after [\d.]+ s, in which requests to it were refused", printed[0])


def test_what_does_not_run_is_not_replaced(stack: Stack) -> None:
    assert isinstance(stack, ContainerStack)
    stack.project.output("rm", "--stop", "--force", "analytics-faust")  # a comparison may have run

    ended = stack.make("replace", "name=analytics-faust")

    assert ended.returncode != 0
    assert "does not run here" in ended.stderr
