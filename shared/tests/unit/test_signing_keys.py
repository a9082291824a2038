"""The issuer's keys are fetched when they are needed, at a limited rate."""

import asyncio
import json
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler
from pathlib import Path
from typing import Any

import pytest
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
from jwt.algorithms import OKPAlgorithm

from shared.web import signing_keys
from shared.web.signing_keys import FETCH_BYTES_MAX, KeysUnavailable, SigningKeys
from test_support.http_server import serving

JWK = json.loads(OKPAlgorithm.to_jwk(Ed25519PrivateKey.generate().public_key()))


def document(*key_ids: str) -> bytes:
    return json.dumps({"keys": [JWK | {"kid": key_id} for key_id in key_ids]}).encode()


class Issuer(BaseHTTPRequestHandler):
    """Returns the response that is set in its class, and counts the requests."""

    status, content, location = 200, document("first"), ""
    count = 0

    def do_GET(self) -> None:
        type(self).count += 1
        self.send_response(self.status)
        self.send_header("Location", self.location)
        self.end_headers()
        self.wfile.write(self.content)

    def log_message(self, format: str, *arguments: object) -> None:
        """Logs nothing."""


def new_issuer(**answer: Any) -> type[Issuer]:
    return type("NewIssuer", (Issuer,), answer)


@contextmanager
def served(issuer: type[Issuer]) -> Iterator[str]:
    with serving(issuer) as address:
        yield f"{address}/keys"


@pytest.fixture
def no_pause(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(signing_keys, "REFRESH_PAUSE_SECONDS", -1)


async def test_a_hundred_unknown_key_ids_are_one_fetch() -> None:
    issuer = new_issuer()
    with served(issuer) as url:
        keys = SigningKeys(url)
        found = await asyncio.gather(*(keys.find(f"unknown-{number}") for number in range(100)))

    assert set(found) == {None}
    assert issuer.count == 1


async def test_without_a_pause_each_unknown_key_id_is_a_fetch(no_pause: None) -> None:
    """The negative control."""
    issuer = new_issuer()
    with served(issuer) as url:
        keys = SigningKeys(url)
        for number in range(5):
            await keys.find(f"unknown-{number}")

    assert issuer.count == 5


async def test_a_new_key_is_found_after_the_pause(no_pause: None) -> None:
    issuer = new_issuer()
    with served(issuer) as url:
        keys = SigningKeys(url)
        assert await keys.find("first")
        issuer.content = document("second")

        assert await keys.find("second")
        assert await keys.find("first") is None


@pytest.mark.parametrize(
    "answer",
    [
        {"status": 500},
        {"content": b"<html>"},
        {"content": document("first") + b" " * FETCH_BYTES_MAX},
        {"status": 302, "location": "file:///etc/passwd"},
    ],
    ids=["an error", "no key set", "too much", "a redirect"],
)
async def test_without_keys_no_token_is_verified(answer: dict[str, object]) -> None:
    with served(new_issuer(**answer)) as url, pytest.raises(KeysUnavailable):
        await SigningKeys(url).find("first")


async def test_cached_keys_are_used_while_the_issuer_is_unavailable(
    monkeypatch: pytest.MonkeyPatch, no_pause: None
) -> None:
    issuer = new_issuer()
    with served(issuer) as url:
        keys = SigningKeys(url)
        await keys.find("first")
        issuer.status = 500
        monkeypatch.setattr(signing_keys, "FRESH_SECONDS", -1)

        assert await keys.find("first")
        monkeypatch.setattr(signing_keys, "STALE_SECONDS_MAX", -1)
        with pytest.raises(KeysUnavailable):
            await keys.find("first")


async def test_the_size_of_a_key_file_is_limited_too(tmp_path: Path) -> None:
    file = tmp_path / "the keys.json"
    file.write_bytes(document("first"))
    assert await SigningKeys(file.as_uri()).find("first")

    file.write_bytes(document("first") + b" " * FETCH_BYTES_MAX)
    with pytest.raises(KeysUnavailable):
        await SigningKeys(file.as_uri()).find("first")
