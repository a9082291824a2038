"""The issuer's public keys: fetched when needed, cached, and fetched at a limited rate (ADR 37)."""

import asyncio
import json
import logging
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any
from urllib.parse import unquote, urlsplit

import httpx
from jwt import PyJWK, PyJWTError

from shared.runtime.logs import because
from shared.web.tls import create_client_context

ALGORITHMS = {("OKP", "Ed25519"): "EdDSA", ("EC", "P-256"): "ES256", ("RSA", None): "RS256"}
"""By type and curve of the key. All are asymmetric: a public key is never used as a secret."""
RSA_BITS_MIN = 2048

FETCH_SECONDS_MAX = 5
FETCH_BYTES_MAX = 1 << 16
REFRESH_PAUSE_SECONDS = 10
"""Minimum time between two fetches, whatever key ids the tokens have."""
FRESH_SECONDS = 300
"""How long a withdrawn key is still accepted while the issuer is available."""
STALE_SECONDS_MAX = 3600
"""How long the cached keys are used while the issuer is unavailable."""

log = logging.getLogger(__name__)


class KeysUnavailable(Exception):
    """The issuer's keys could not be fetched, so no token can be verified."""


class SigningKeys:
    """The keys at a URL: https://…, or file:… in development."""

    def __init__(self, url: str, ca_file: Path | None = None) -> None:
        self._url = url
        self._ca_file = ca_file
        self._keys: Mapping[str, PyJWK] = {}
        self._fetched_at = self._tried_at = float("-inf")
        self._lock = asyncio.Lock()

    async def find(self, key_id: str) -> PyJWK | None:
        """The key with this id; None if the issuer has none.

        Raises:
            KeysUnavailable: the issuer is unavailable, and has been for STALE_SECONDS_MAX.
        """
        if not self._holds(key_id):
            async with self._lock:
                if not self._holds(key_id) and age(self._tried_at) > REFRESH_PAUSE_SECONDS:
                    await self._refresh()
        if age(self._fetched_at) > STALE_SECONDS_MAX:
            raise KeysUnavailable
        return self._keys.get(key_id)

    def _holds(self, key_id: str) -> bool:
        return key_id in self._keys and age(self._fetched_at) < FRESH_SECONDS

    async def _refresh(self) -> None:
        self._tried_at = time.monotonic()
        try:
            async with asyncio.timeout(FETCH_SECONDS_MAX):
                self._keys = parse_keys(await asyncio.to_thread(fetch, self._url, self._ca_file))
        except (OSError, TimeoutError, ValueError, httpx.HTTPError) as error:
            log.warning("the issuer's keys could not be fetched", extra=because(error))
        else:
            self._fetched_at = time.monotonic()


def age(instant: float) -> float:
    """Seconds since an instant of the monotonic clock."""
    return time.monotonic() - instant


def fetch(url: str, ca_file: Path | None = None) -> bytes:
    """The content at a URL, from a server that `create_client_context` verifies. No redirect is
    followed.

    Raises:
        OSError, httpx.HTTPError: there is no response.
        ValueError: the status is not 200, or the content is too large.
    """
    parts = urlsplit(url)
    if parts.scheme == "file":
        return check_size(Path(unquote(parts.path)).read_bytes())
    content = b""
    context = create_client_context(ca_file)
    with httpx.stream("GET", url, timeout=FETCH_SECONDS_MAX, verify=context) as response:
        if response.status_code != httpx.codes.OK:
            raise ValueError(f"the issuer returned status {response.status_code}")
        for piece in response.iter_bytes():
            content = check_size(content + piece)
    return content


def check_size(content: bytes) -> bytes:
    if len(content) > FETCH_BYTES_MAX:
        raise ValueError(f"a key set has at most {FETCH_BYTES_MAX} bytes")
    return content


def parse_keys(document: bytes) -> Mapping[str, PyJWK]:
    """The keys of a JWK set (RFC 7517) by id, without those that are not accepted.

    Raises:
        ValueError: the document is no key set.
    """
    match json.loads(document):
        case {"keys": [*keys]}:
            found = [key for jwk in keys if (key := parse_key(jwk)) is not None]
            return {str(key.key_id): key for key in found}
    raise ValueError("the document is no key set")


def parse_key(jwk: Any) -> PyJWK | None:
    """The key determines the algorithm, never the token. None for a private or a weak key."""
    match jwk:
        case {"kty": str(kind), "kid": str()} if "d" not in jwk and jwk.get("use", "sig") == "sig":
            algorithm = ALGORITHMS.get((kind, jwk.get("crv")))
        case _:
            return None
    if algorithm is None or jwk.get("alg", algorithm) != algorithm:
        return None
    try:
        key = PyJWK(jwk, algorithm)
    except (PyJWTError, ValueError):
        return None
    return None if kind == "RSA" and key.key.key_size < RSA_BITS_MIN else key
