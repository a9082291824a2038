"""A coordinator that cannot answer is an error, and not a group without members and offsets."""

import asyncio
from types import SimpleNamespace
from typing import Any

import pytest
from aiokafka import TopicPartition
from aiokafka.errors import KafkaError, NotCoordinatorForGroupError
from aiokafka.structs import OffsetAndMetadata

from observer_svc import groups
from observer_svc.groups import (
    GROUP_ID_NOT_FOUND,
    NO_ERROR,
    Group,
    ask_each,
    read_group,
)
from shared.messaging.topics import TOPICS, list_partitions

FIRST = TopicPartition("users.v1", 0)
NOT_COORDINATOR = 16


class Admin:
    """In place of a client: what the coordinator answers about a group."""

    def __init__(self, error_code: int, members: int = 0, offset: int | None = None) -> None:
        self.answer = (error_code, "users-worker", "", "", "", [()] * members)
        self.offsets = {} if offset is None else {FIRST: OffsetAndMetadata(offset, "")}

    async def find_coordinator(self, name: str) -> int:
        return 1

    async def describe_consumer_groups(self, names: list[str], coordinator: int) -> list[Any]:
        return [SimpleNamespace(groups=[self.answer])]

    async def list_consumer_group_offsets(self, name: str, coordinator: int) -> Any:
        return self.offsets


async def read(admin: Any) -> Group:
    return await read_group(admin, "users-worker")


async def test_a_group_has_members_and_offsets() -> None:
    found = await read(Admin(NO_ERROR, members=2, offset=7))

    assert found == Group(committed={FIRST: 7}, members=2)


async def test_a_group_that_does_not_exist_has_neither() -> None:
    assert await read(Admin(GROUP_ID_NOT_FOUND)) == Group(committed={}, members=0)


async def test_a_coordinator_that_has_moved_is_an_error() -> None:
    with pytest.raises(NotCoordinatorForGroupError):
        await read(Admin(NOT_COORDINATOR))
    assert issubclass(NotCoordinatorForGroupError, KafkaError), "which the watch reports"


async def test_one_that_cannot_answer_hides_no_other_one(monkeypatch: pytest.MonkeyPatch) -> None:
    """Neither one that hangs."""
    monkeypatch.setattr(groups, "ASK_SECONDS_MAX", 0.1)
    coordinators = {"good": Admin(NO_ERROR, members=1), "moved": Admin(NOT_COORDINATOR)}

    async def ask(name: str) -> Group:
        if name == "hangs":
            await asyncio.Event().wait()
        return await read(coordinators[name])

    answers, failures = await ask_each(["good", "moved", "hangs"], ask)

    assert answers == {"good": Group(committed={}, members=1)}
    assert {name: type(error) for name, error in failures.items()} == {
        "moved": NotCoordinatorForGroupError,
        "hangs": TimeoutError,
    }


async def test_a_mistake_is_no_answer_that_is_left_out() -> None:
    async def ask(name: str) -> Group:
        raise ValueError(name)

    with pytest.raises(ValueError, match="a"):
        await ask_each(["a"], ask)


def test_the_partitions_are_those_of_all_declared_topics() -> None:
    assert {each.topic for each in list_partitions(TOPICS)} >= {"users.v1", "orders.v1", "items.v1"}
