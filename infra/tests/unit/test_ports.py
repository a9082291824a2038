"""Which port a process gets, and what is reported about it."""

import socket
import subprocess
import sys
from collections.abc import Iterator, Mapping

import pytest

from fetching.errors import Failure
from local_stack import ports
from local_stack.ports import FREE_PORTS
from local_stack.stack_spec import Port

API = Port(name="users-api", default=0, scheme="http://")


@pytest.fixture
def taken_port() -> Iterator[int]:
    with socket.create_server(("127.0.0.1", 0)) as server:
        yield server.getsockname()[1]


def choose(
    *wanted: Port,
    given: Mapping[str, int] | None = None,
    kept: Mapping[str, int] | None = None,
    prefer_default: bool = True,
) -> tuple[dict[str, int], list[str]]:
    """The chosen ports, and the reported lines."""
    told: list[str] = []
    chosen = ports.choose(
        wanted,
        given=given or {},
        kept=kept or {},
        prefer_default=prefer_default,
        tell=told.append,
    )
    return chosen, told


def port(name: str, default: int) -> Port:
    return Port(name=name, default=default)


def test_the_usual_port_is_taken_when_it_is_free() -> None:
    free = ports.find_free()
    assert choose(port("web", free)) == ({"web": free}, [])


def test_a_taken_usual_port_is_replaced_by_a_free_one_and_that_is_reported(taken_port: int) -> None:
    chosen, told = choose(port("web", taken_port))
    assert chosen["web"] in FREE_PORTS
    assert told == [f"port {taken_port} is taken, web uses {chosen['web']}"]


def test_a_kept_port_is_used_again() -> None:
    kept = ports.find_free()
    assert choose(port("web", kept + 1), kept={"web": kept}) == ({"web": kept}, [])


def test_free_means_that_no_usual_port_is_used() -> None:
    chosen, told = choose(port("one", 8001), port("two", 8002), prefer_default=False)
    assert set(chosen.values()) <= set(FREE_PORTS)
    assert len(set(chosen.values())) == 2
    assert told == []


def test_a_port_chosen_by_another_process_is_left_to_it() -> None:
    chooses = (
        "import sys; from local_stack import ports; print(ports.find_free()); sys.stdin.read()"
    )
    command = [sys.executable, "-u", "-c", chooses]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as other:
        assert other.stdout
        port = int(other.stdout.readline())
        assert ports.is_free(port)
        assert not ports.reserve(port)
        other.communicate()
    assert ports.reserve(port)


def test_a_given_port_wins_and_no_other_process_gets_it() -> None:
    free = ports.find_free()
    chosen, _ = choose(port("one", free), port("two", 1), given={"two": free})
    assert chosen["two"] == free
    assert chosen["one"] != free


def test_a_given_port_that_is_taken_is_one_line_with_its_holder(taken_port: int) -> None:
    with pytest.raises(
        Failure,
        match=rf"^port {taken_port} for users-api is taken by .* \(pid \d+\): "
        r"stop that or change HOMETOWN_PORT_USERS_API$",
    ):
        choose(port("users-api", 8001), given={"users-api": taken_port})


def test_a_port_given_to_an_unknown_process_is_one_line() -> None:
    with pytest.raises(
        Failure, match="HOMETOWN_PORT_USRS_API names no port: choose one of users-api"
    ):
        ports.demand_known({"usrs-api": 9001}, [API])


def test_a_stack_that_runs_does_not_move() -> None:
    ports.demand_unchanged({"users-api": 9001}, {"users-api": 9001})
    with pytest.raises(Failure, match="users-api already runs on port 8001"):
        ports.demand_unchanged({"users-api": 9001}, {"users-api": 8001})
