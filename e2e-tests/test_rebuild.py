"""Read models are checked and repaired, and topics replayed, while everything runs."""

from decimal import Decimal

import asyncpg
import pytest

from test_support.system.clients import Hometown, Json
from test_support.system.eventually import eventually
from test_support.system.sample import Sample
from test_support.system.stack import Stack

NOWHERE = "XX"

TAMPER = "UPDATE user_profiles SET address = $2 WHERE user_id = $1"
ADDRESS = "SELECT address FROM user_profiles WHERE user_id = $1"

UNPUBLISHED = """
    SELECT EXISTS (
        SELECT FROM outbox, relay
        WHERE transaction_id >= published_xmax OR transaction_id = ANY (published_xip)
    )
"""


@pytest.fixture
def worker_life(stack: Stack) -> str:
    return stack.lives()["users-worker"]


def address_of(stack: Stack, user: str) -> str:
    rows = stack.fetch("users", ADDRESS, user)
    return str(rows[0]["address"]) if rows else ""


def register(hometown: Hometown) -> str:
    user = hometown.register_user(name="Jack", address="BJ", gender="male", credit_limit="10.00")
    return str(user["user_id"])


def test_after_the_sample_all_read_models_match_the_events(stack: Stack, sample: Sample) -> None:
    printed = stack.make_output("rebuild-check")

    for table in ("user_profiles", "catalogue", "order_summaries"):
        assert f"{table}: equal" in printed


@pytest.mark.verify(part="end-to-end")
def test_a_tampered_row_is_found_and_repaired_and_the_worker_continues(
    stack: Stack, hometown: Hometown, worker_life: str
) -> None:
    user = register(hometown)
    eventually(lambda: address_of(stack, user), lambda seen: seen == "BJ", what="the user listed")
    stack.fetch("users", TAMPER, user, NOWHERE)

    found = stack.make("rebuild-check")
    assert found.returncode != 0
    assert "user_profiles: differs" in found.stdout
    assert "catalogue: equal" in found.stdout
    assert "user_profiles: repaired" in stack.make_output("rebuild", "name=users")

    assert address_of(stack, user) == "BJ"
    hometown.move_user(user, address="SH")
    eventually(lambda: address_of(stack, user), lambda seen: seen == "SH", what="the user moved")
    assert stack.lives()["users-worker"] == worker_life
    stack.make_output("rebuild-check")


@pytest.mark.verify(part="end-to-end")
@pytest.mark.parametrize("name", ["users", "orders"])
def test_replayed_events_change_nothing(
    name: str, stack: Stack, hometown: Hometown, sample: Sample
) -> None:
    def credit() -> list[Decimal]:
        users = [hometown.get_user(user) for user in sample.users.values()]
        return [Decimal(user["available_credit"]) for user in users]

    def hour() -> Json:
        return hometown.hour(sample.hour)

    before = credit(), eventually(hour, lambda seen: seen["purchases"] == 4, what="the hour")

    assert "records wait for the relay" in stack.make_output("replay", f"name={name}")

    eventually(
        lambda: stack.fetch(name, UNPUBLISHED)[0][0],
        lambda unpublished: not unpublished,
        what="all is published",
    )
    user = register(hometown)
    eventually(lambda: address_of(stack, user), lambda seen: seen == "BJ", what="the user listed")
    assert credit() == before[0]
    assert hour()["cells"] == before[1]["cells"]
    stack.make_output("rebuild-check")


@pytest.mark.verify(part="end-to-end")
def test_a_version_that_no_read_model_has_is_neither_filled_nor_served(stack: Stack) -> None:
    for verb in ("rebuild", "switch"):
        ended = stack.make(verb, "name=users", "version=2")

        assert ended.returncode != 0
        assert "has this one; there are user_profiles 1" in ended.stderr


def test_a_service_s_role_cannot_change_what_happened(stack: Stack) -> None:
    with pytest.raises(asyncpg.InsufficientPrivilegeError):
        stack.fetch("users", "DELETE FROM events")
