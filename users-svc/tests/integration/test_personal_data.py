"""Name and birth year are sealed wherever they are stored, and lost permanently with their key."""

import json
import os
from uuid import UUID, uuid4

import httpx
import pytest

from users_svc.bootstrap import Resources
from users_svc.personal_data import KEY_BYTES, PersonalData, Vault

PLANTED = "Wolfeschlegelsteinhausen"
PERSON = {"name": PLANTED, "birth_year": 1904, "address": "BJ", "gender": "other"}
KEY = {"Idempotency-Key": "plant"}

EVERY_TABLE = """
    SELECT format('SELECT row_to_json(each)::text FROM %I AS each', relname) AS query
    FROM pg_class
    WHERE relnamespace = 'public'::regnamespace AND relkind IN ('r', 'p')
"""


@pytest.fixture
async def planted(client: httpx.AsyncClient) -> str:
    """The address of a user whose name is unmistakable."""
    person = PERSON | {"credit_limit": "1.00"}
    location: str = (await client.post("/v1/users", json=person, headers=KEY)).headers["Location"]
    return location


async def everything(resources: Resources) -> str:
    """All rows of all tables; bytes as text where they are text."""
    queries = await resources.pool.fetch(EVERY_TABLE)
    rows = [row for each in queries for row in await resources.pool.fetch(each["query"])]
    texts = [row[0] for row in rows]
    return "\n".join(texts + [readable(text) for text in texts])


def readable(row: str) -> str:
    """The columns of bytes, which JSON shows in hexadecimal."""
    values = [each for each in json.loads(row).values() if str(each).startswith("\\x")]
    return "\n".join(bytes.fromhex(each[2:]).decode(errors="replace") for each in values)


async def test_a_caller_that_can_read_a_user_gets_the_name(
    client: httpx.AsyncClient, planted: str
) -> None:
    user = (await client.get(planted)).json()

    assert (user["name"], user["birth_year"]) == (PLANTED, 1904)


async def test_no_table_has_a_name_in_plain_text(
    client: httpx.AsyncClient, resources: Resources, planted: str
) -> None:
    await client.post(f"{planted}/moves", json={"address": "SH"}, headers=KEY)

    kept = await everything(resources)

    assert planted.rpartition("/")[2] in kept
    assert PLANTED not in kept


async def test_the_scan_would_find_a_name_in_plain_text(resources: Resources) -> None:
    await resources.pool.execute(
        "INSERT INTO idempotency_keys VALUES ('s', 'k', '', 201, '{}', $1, now())", PLANTED.encode()
    )

    assert PLANTED in await everything(resources)


async def test_the_key_is_deleted_with_the_user(
    client: httpx.AsyncClient, resources: Resources, planted: str
) -> None:
    await client.delete(planted)

    [registered, _] = (await client.get(f"{planted}/events")).json()["events"]
    assert (registered["data"]["name"], registered["data"]["birth_year"]) == (None, None)
    assert await resources.pool.fetchval("SELECT count(*) FROM personal_data_keys") == 0


async def test_a_refused_deletion_keeps_the_key(client: httpx.AsyncClient, planted: str) -> None:
    await client.delete(planted, headers={"If-Match": '"7"'})

    assert (await client.get(planted)).json()["name"] == PLANTED


async def test_a_missing_key_is_a_redacted_name_and_no_error(
    client: httpx.AsyncClient, resources: Resources, planted: str
) -> None:
    await resources.pool.execute("DELETE FROM personal_data_keys")

    answer = await client.get(planted)

    assert (answer.status_code, answer.json()["name"]) == (200, None)


async def test_one_users_data_does_not_open_as_anothers(vault: Vault) -> None:
    mine, other = uuid4(), uuid4()
    sealed = await vault.seal(mine, PersonalData(name=PLANTED, birth_year=None))
    await vault.seal(other, PersonalData(name="Tom", birth_year=None))

    assert await vault.open(other, sealed) is None


async def test_a_new_key_does_not_open_what_the_old_one_sealed(
    resources: Resources, vault: Vault
) -> None:
    user, person = UUID(int=1), PersonalData(name=PLANTED, birth_year=None)
    sealed = await vault.seal(user, person)
    await resources.pool.execute("DELETE FROM personal_data_keys")
    await vault.seal(user, person)

    assert await vault.open(user, sealed) is None


async def test_another_master_key_is_detected(resources: Resources, vault: Vault) -> None:
    sealed = await vault.seal(UUID(int=1), PersonalData(name=PLANTED, birth_year=None))
    other = Vault(resources.pool, os.urandom(KEY_BYTES))

    with pytest.raises(ValueError, match="PERSONAL_DATA_KEY"):
        await other.open(UUID(int=1), sealed)


def test_personal_data_is_not_in_its_repr() -> None:
    assert PLANTED not in repr(PersonalData(name=PLANTED, birth_year=1904))
