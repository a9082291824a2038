"""Name and birth year are sealed wherever they are stored, and lost permanently with their key."""

import base64
import hashlib
import json
import os
from typing import Any
from uuid import UUID, uuid4

import httpx
import pytest

from users_svc.__main__ import run_api
from users_svc.bootstrap import Resources
from users_svc.personal_data import KEY_BYTES, PersonalData, Vault

PLANTED = "Wolfeschlegelsteinhausen"
PERSON = {"name": PLANTED, "birth_year": 1904, "address": "BJ", "gender": "other"}
KEY = {"Idempotency-Key": "plant"}

FINGERPRINT = "SELECT fingerprint FROM idempotency_keys"

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


def guess_fingerprint() -> bytes:
    """What a search over names and birth years computes, by any reader of the database."""
    body = json.dumps(PERSON | {"credit_limit": "1.00"}, sort_keys=True)
    return hashlib.sha256(f"POST /v1/users clerk\n{body}".encode()).digest()


async def test_a_deleted_user_is_not_found_by_comparing_fingerprints(
    client: httpx.AsyncClient, resources: Resources, planted: str
) -> None:
    await client.delete(planted)

    assert await resources.pool.fetchval(FINGERPRINT) != guess_fingerprint()


async def test_without_its_key_a_fingerprint_can_be_guessed(
    client: httpx.AsyncClient, resources: Resources, transport: httpx.ASGITransport
) -> None:
    """The negative control."""
    app: Any = transport.app
    app.state.fingerprint_key = None

    await client.post("/v1/users", json=PERSON | {"credit_limit": "1.00"}, headers=KEY)

    assert await resources.pool.fetchval(FINGERPRINT) == guess_fingerprint()


REGISTRATION = PERSON | {"credit_limit": "1.00"}


async def test_a_request_of_the_release_before_keyed_fingerprints_can_be_repeated(
    client: httpx.AsyncClient, resources: Resources, transport: httpx.ASGITransport
) -> None:
    app: Any = transport.app
    fingerprint_key, app.state.fingerprint_key = app.state.fingerprint_key, None
    first = await client.post("/v1/users", json=REGISTRATION, headers=KEY)
    assert await resources.pool.fetchval(FINGERPRINT) == guess_fingerprint()
    app.state.fingerprint_key = fingerprint_key  # the update

    again = await client.post("/v1/users", json=REGISTRATION, headers=KEY)
    other = await client.post("/v1/users", json=REGISTRATION | {"name": "Tom"}, headers=KEY)

    assert (again.status_code, again.json()) == (first.status_code, first.json())
    assert (other.status_code, other.json()["code"]) == (422, "idempotency-key-reused")


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


async def test_the_api_does_not_start_with_another_master_key(
    vault: Vault, database: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It would answer 500 for each known user, and seal new ones with a key of their own."""
    await vault.seal(UUID(int=1), PersonalData(name=PLANTED, birth_year=None))
    monkeypatch.setenv("DATABASE_URL", database)
    monkeypatch.setenv("PERSONAL_DATA_KEY", base64.b64encode(os.urandom(KEY_BYTES)).decode())

    with pytest.raises(SystemExit, match="does not start: PERSONAL_DATA_KEY is not the key"):
        await run_api()


async def test_the_right_master_key_is_accepted_with_and_without_users(vault: Vault) -> None:
    await vault.check_master_key()
    await vault.seal(UUID(int=1), PersonalData(name=PLANTED, birth_year=None))
    await vault.check_master_key()


def test_personal_data_is_not_in_its_repr() -> None:
    assert PLANTED not in repr(PersonalData(name=PLANTED, birth_year=1904))
