"""Attacks on the whole system over real HTTP: each is refused as documented and changes nothing."""

import json
import os
import re
import socket
from collections.abc import Callable, Iterator
from pathlib import Path

import httpx
import pytest
from pydantic import PostgresDsn

from local_stack import issuer
from local_stack.run_folder import RunFolder
from local_stack.testing import bearer
from shared.runtime import postgres
from shared.runtime.identifiers import new_id
from shared.runtime.settings import DEVELOPMENT_ISSUER
from shared.web.auth import RequestAuthenticator, Verifier
from shared.web.limits import Rates
from shared.web.signing_keys import SigningKeys
from test_support.system.attacks import AGAINST_OTHERS, MALFORMED, Attack
from test_support.system.forgeries import FORGERIES, OWN_JWK, Headers, with_own_key
from test_support.system.operations import find_operations
from test_support.system.scene import PROFILE, Scene
from test_support.system.stack import Stack
from test_support.waits import HANGS_AFTER_SECONDS
from users_svc import api
from users_svc.bootstrap import open_resources
from users_svc.personal_data import KEY_BYTES, Vault
from users_svc.settings import UsersSettings

ATTACKS_MIN = 40

REFUSED_TOKEN = {"unauthenticated", "invalid-token"}


@pytest.fixture(autouse=True)
def nothing_changes(scene: Scene) -> Iterator[None]:
    before = scene.state()
    yield
    assert scene.state() == before


def code_of(answer: httpx.Response) -> str:
    assert answer.headers["Content-Type"] == "application/problem+json", answer.text
    return str(answer.json()["code"])


def test_there_are_many_attacks() -> None:
    count = len(FORGERIES) + len(AGAINST_OTHERS) + len(MALFORMED) + len(RAW)

    assert count >= ATTACKS_MIN
    assert len({each.name for each in AGAINST_OTHERS + MALFORMED}) == len(
        AGAINST_OTHERS + MALFORMED
    )


@pytest.mark.parametrize("forge", FORGERIES.values(), ids=FORGERIES)
def test_a_forged_token_is_refused(scene: Scene, forge: Callable[[RunFolder], Headers]) -> None:
    headers = forge(scene.folder)

    for method, service, path, body in (
        ("POST", "users-api", "/v1/users/{victim}/moves", {"address": "SH"}),
        ("DELETE", "users-api", "/v1/users/{victim}", None),
        ("GET", "orders-api", "/v1/orders/{order}", None),
        ("GET", "analytics-api", "/v1/status", None),
    ):
        answer = scene.send(method, service, path, headers=headers, body=body)

        assert answer.status_code == 401, answer.text
        assert code_of(answer) in REFUSED_TOKEN
        assert answer.headers["WWW-Authenticate"].startswith("Bearer")


@pytest.mark.parametrize("name", ["access_token", "token", "authorization"])
def test_a_token_in_the_query_is_refused(scene: Scene, name: str) -> None:
    token = issuer.token(scene.folder, "clerk")

    answer = scene.send("GET", "users-api", f"/v1/users/{{victim}}?{name}={token}")

    assert (answer.status_code, code_of(answer)) == (401, "unauthenticated")


@pytest.mark.parametrize("attack", AGAINST_OTHERS + MALFORMED, ids=lambda attack: attack.name)
def test_a_forbidden_request_is_refused(scene: Scene, attack: Attack) -> None:
    answer = scene.send(
        attack.method,
        attack.service,
        attack.path,
        headers=[
            *((n.encode(), v.encode()) for n, v in scene.caller(attack.caller).items()),
            *attack.headers,
        ],
        content=attack.content,
        body=attack.body,
    )

    assert answer.status_code == attack.status, answer.text
    assert code_of(answer) == attack.code or attack.code is None


def test_another_users_order_looks_like_no_order(scene: Scene) -> None:
    attacker = scene.caller("attacker")

    theirs = scene.send("GET", "orders-api", "/v1/orders/{order}", headers=attacker)
    none = scene.send("GET", "orders-api", f"/v1/orders/{new_id()}", headers=attacker)

    assert theirs.content == none.content
    assert {*theirs.headers} == {*none.headers}


def test_a_list_without_a_filter_is_ones_own(scene: Scene) -> None:
    own = scene.send("GET", "orders-api", "/v1/orders", headers=scene.caller("attacker"))
    theirs = scene.send("GET", "orders-api", "/v1/orders", headers=scene.caller("victim"))

    assert own.json()["orders"] == []
    assert [each["order_id"] for each in theirs.json()["orders"]] == [scene.order]


@pytest.mark.parametrize("form", [str.upper, "urn:uuid:{}".format, "{{{}}}".format, "{} ".format])
def test_another_form_of_an_id_is_another_subject(scene: Scene, form: Callable[[str], str]) -> None:
    """Whatever subjects the issuer signs, none is accepted as another one."""
    headers = bearer(scene.folder, "user", form(scene.victim))

    read = scene.send("GET", "users-api", "/v1/users/{victim}", headers=headers)
    listed = scene.send("GET", "orders-api", "/v1/orders", headers=headers)
    registered = scene.send(
        "POST",
        "users-api",
        "/v1/users",
        headers=headers,
        body={"name": "x", "address": "SH", "gender": "other", "credit_limit": "1.00"},
    )

    assert {code_of(each) for each in (read, listed, registered)} == {"not-yours"}


def test_a_user_cannot_register_again(scene: Scene) -> None:
    answer = scene.send(
        "POST",
        "users-api",
        "/v1/users",
        headers=scene.caller("attacker"),
        body={"name": "x", "address": "SH", "gender": "other", "credit_limit": "100.00"},
    )

    assert (answer.status_code, code_of(answer)) == (409, "already-registered")


def test_another_callers_idempotency_key_replays_nothing(scene: Scene) -> None:
    body = {"name": "thing", "type": "phone", "origin": "BJ", "price": "10.00"}
    key = {"Idempotency-Key": f"guessed-{scene.item}"}

    def listed(subject: str) -> httpx.Response:
        headers = bearer(scene.folder, "clerk", subject) | key
        return scene.send("POST", "orders-api", "/v1/items", headers=headers, body=body)

    first, other, again = listed("one"), listed("another"), listed("one")

    assert first.json()["item_id"] != other.json()["item_id"]
    assert again.json() == first.json()
    assert ["Idempotency-Replayed" in each.headers for each in (first, other, again)] == [
        False,
        False,
        True,
    ]


def test_a_replayed_key_is_checked_after_the_caller(scene: Scene) -> None:
    def placed(caller: str) -> httpx.Response:
        headers = scene.caller(caller) | {"Idempotency-Key": scene.key}
        body = scene.placement
        return scene.send("POST", "orders-api", "/v1/orders", headers=headers, body=body)

    again, stolen = placed("victim"), placed("attacker")

    assert again.json()["order_id"] == scene.order
    assert (stolen.status_code, code_of(stolen)) == (403, "not-yours")


def test_every_route_requires_a_token_and_a_scope(scene: Scene) -> None:
    """Every operation of the APIs' own documents, also future ones."""
    without_scope = issuer.sign(scene.folder, {"sub": "without-scope", "scope": ""})
    looked_at = 0
    for each in find_operations(scene):
        address = re.sub(r"\{\w+\}", "{victim}", each.path)
        alone = scene.send(each.method, each.service, address)
        headers = {"Authorization": f"Bearer {without_scope}"}
        unscoped = scene.send(each.method, each.service, address, headers=headers)
        assert (alone.status_code, code_of(alone)) == (401, "unauthenticated")
        assert (unscoped.status_code, code_of(unscoped)) == (403, "insufficient-scope")
        assert "scope=" in unscoped.headers["WWW-Authenticate"]
        looked_at += 1

    assert looked_at > 10


def test_sql_is_text_like_any_other(scene: Scene) -> None:
    name = "'); DROP TABLE events; --"
    item = scene.hometown.list_item(name=name, type=name, origin="BJ", price="1.00")
    found = scene.send(
        "GET", "users-api", "/v1/users?address=' OR 1=1 --", headers=scene.caller("clerk")
    )

    assert (item["name"], item["type"]) == (name, name)
    assert found.json() == {"users": [], "next": None}


START = b"GET /v1/users/%(victim)s HTTP/1.1\r\nHost: x\r\n%(bearer)s"
POST = b"POST /v1/users/%(victim)s/moves HTTP/1.1\r\nHost: x\r\n%(bearer)s"
JSON = b"Content-Type: application/json\r\n"
BODY = b'{"address": "SH"}'

RAW: dict[str, tuple[bytes, set[int]]] = {
    "a header of 20 KB": (START + b"X: " + b"x" * 20_000 + b"\r\n\r\n", {400}),
    "five thousand headers": (START + b"X: y\r\n" * 5_000 + b"\r\n", {400}),
    "a long first line": (b"GET /" + b"x" * 20_000 + b" HTTP/1.1\r\nHost: x\r\n\r\n", {400}),
    "two lengths that differ": (
        POST + JSON + b"Content-Length: 17\r\nContent-Length: 5\r\n\r\n" + BODY,
        {400},
    ),
    "a length and chunks": (
        POST + JSON + b"Content-Length: 17\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n" + BODY,
        {400},
    ),
    "chunks that hide": (
        POST + JSON + b"Transfer-Encoding: xchunked\r\n\r\n11\r\n" + BODY + b"\r\n0\r\n\r\n",
        {400, 501},
    ),
    "chunked twice": (
        POST + JSON + b"Transfer-Encoding: chunked\r\nTransfer-Encoding: identity\r\n\r\n0\r\n\r\n",
        {400, 501},
    ),
    "a chunk without a size": (POST + JSON + b"Transfer-Encoding: chunked\r\n\r\nzz\r\n", {400}),
    "a negative length": (POST + JSON + b"Content-Length: -1\r\n\r\n", {400}),
    "a length that is none": (POST + JSON + b"Content-Length: 0x11\r\n\r\n" + BODY, {400}),
    "a space before the colon": (START + b"X : y\r\n\r\n", {400}),
    "a folded header": (START + b"X: y\r\n Content-Length: 5\r\n\r\n", {400, 403, 200}),
    "U+0000 in a header": (START + b"X: y\0z\r\n\r\n", {400}),
    "a line break in a header": (START + b"X: y\rSet-Cookie: z\r\n\r\n", {400}),
    "a line break in the path": (
        b"GET /v1/users%%0d%%0aSet-Cookie:x HTTP/1.1\r\nHost: x\r\n%(bearer)s\r\n",
        {404, 422},
    ),
    "a space in the path": (b"GET /v1/users x HTTP/1.1\r\nHost: x\r\n%(bearer)s\r\n", {400}),
    "no host": (b"GET /v1/users HTTP/1.1\r\n%(bearer)s\r\n", {400}),
    "another address": (
        b"GET http://evil.example/v1/users/%(victim)s HTTP/1.1\r\nHost: x\r\n\r\n",
        {401},
    ),
    "above the open ones": (
        b"GET /health/../v1/users/%(victim)s HTTP/1.1\r\nHost: x\r\n\r\n",
        {401},
    ),
    "above, encoded": (
        b"GET /docs/%%2e%%2e/v1/users/%(victim)s HTTP/1.1\r\nHost: x\r\n\r\n",
        {401},
    ),
    "behind an open one": (
        b"GET /health/live;/v1/users/%(victim)s HTTP/1.1\r\nHost: x\r\n\r\n",
        {401},
    ),
    "below an open one": (b"GET /docs/v1/users HTTP/1.1\r\nHost: x\r\n\r\n", {401}),
    "an empty token": (
        b"GET /v1/users HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer \r\n\r\n",
        {401},
    ),
    "a tunnel": (b"CONNECT evil.example:443 HTTP/1.1\r\nHost: x\r\n\r\n", {400, 401}),
    "a web socket": (
        b"GET /v1/users HTTP/1.1\r\nHost: x\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n"
        b"Sec-WebSocket-Version: 13\r\nSec-WebSocket-Key: AAAAAAAAAAAAAAAAAAAAAA==\r\n\r\n",
        {401},
    ),
    "HTTP/2": (b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n", {400, 401}),
    "HTTP/0.9": (b"GET /v1/users\r\n\r\n", {400}),
    "no HTTP": (b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03", {400, 408}),
    "a request in the body of a refused one": (
        b"POST /v1/users/%(victim)s/moves HTTP/1.1\r\nHost: x\r\n" + JSON + b"Content-Length: 5\r\n"
        b"\r\n12345DELETE /v1/users/%(victim)s HTTP/1.1\r\nHost: x\r\n\r\n",
        {401},
    ),
}
"""Bytes, and the allowed statuses of all responses; `%(bearer)s` is a user's header."""


@pytest.mark.parametrize("name", RAW)
def test_bytes_that_are_no_valid_request_are_refused(scene: Scene, name: str) -> None:
    content, statuses = RAW[name]
    token = scene.caller("attacker")["Authorization"]
    sent = content % {
        b"victim": scene.victim.encode(),
        b"bearer": f"Authorization: {token}\r\n".encode(),
    }

    answers = exchanged(scene.hometown.addresses["users-api"], sent)

    seen = {int(line.split()[1]) for line in answers.split(b"\r\n") if line[:7] == b"HTTP/1."}
    assert seen <= statuses, answers
    assert seen or answers == b""
    assert b"Set-Cookie" not in answers.partition(b"\r\n\r\n")[0]


def exchanged(address: str, sent: bytes) -> bytes:
    """Send bytes, and return the server's until it closes; it can close before it has read."""
    url = httpx.URL(address)
    received = b""
    with socket.create_connection((url.host, url.port or 80), HANGS_AFTER_SECONDS) as connection:
        try:
            connection.sendall(sent)
            connection.shutdown(socket.SHUT_WR)
            while piece := connection.recv(1 << 16):
                received += piece
        except ConnectionError:
            pass
    return received


def test_no_process_reveals_a_secret(stack: Stack, scene: Scene) -> None:
    """Neither its log nor its command line, which every user of the machine can read."""
    token = issuer.token(scene.folder, "clerk", f"whose-log-{scene.victim}")
    for headers, query in (({"Authorization": f"Bearer {token}"}, ""), ({}, f"?token={token}")):
        for service in ("users-api", "orders-api", "analytics-api"):
            scene.send("GET", service, f"/v1/nothing{query}", headers=headers)
    secrets = [
        *json.loads(scene.folder.secrets.read_text()).values(),
        *issuer.private_key(scene.folder).read_text().splitlines()[1:-1],
        token.rpartition(".")[2],
        "Bearer ",
    ]
    logs = stack.logs()
    texts = [stack.process_listing(), *logs.values()]

    assert len(texts[0].splitlines()) >= len(logs) > 10
    assert [secret for secret in secrets if any(secret in text for text in texts)] == []


async def test_with_the_attackers_key_the_same_attack_succeeds(
    tmp_path: Path, database: str
) -> None:
    """The negative control: with keys other than the issuer's, the attacks above succeed."""
    keys = tmp_path / "keys.json"
    keys.write_text(json.dumps({"keys": [OWN_JWK | {"kid": "own"}]}))
    verifier = Verifier(
        SigningKeys(keys.as_uri()), issuer=DEVELOPMENT_ISSUER, audience=issuer.AUDIENCE
    )
    authenticator = RequestAuthenticator(verifier=verifier, rates=Rates(ATTACKS_MIN))
    await postgres.migrate(database, "shared", "users_svc")
    async with open_resources(UsersSettings(database_url=PostgresDsn(database)), "test") as opened:
        app = api.create_app(opened, Vault(opened.pool, os.urandom(KEY_BYTES)), authenticator)
        async with httpx.AsyncClient(
            transport=httpx.ASGITransport(app),
            base_url="http://users",
            headers={"Authorization": f"Bearer {with_own_key(kid='own')}"},
        ) as attacker:
            user = (await attacker.post("/v1/users", json=PROFILE)).headers["Location"]
            moved = await attacker.post(f"{user}/moves", json={"address": "SH"})
            seen = await attacker.get(user)

    assert (moved.status_code, seen.json()["address"]) == (200, "SH")
