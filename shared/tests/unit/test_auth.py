"""Tokens: which are accepted, which are refused, and the scopes of routes."""

import json
from pathlib import Path
from typing import Annotated, Any
from uuid import uuid4

import jwt
import pytest
from cryptography.hazmat.primitives.asymmetric import ec, rsa
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
from fastapi import APIRouter, Depends
from jwt.algorithms import ECAlgorithm, OKPAlgorithm, RSAAlgorithm

from local_stack import issuer
from local_stack.run_folder import RunFolder
from shared.runtime.settings import DEVELOPMENT_ISSUER
from shared.web.auth import REMEMBERED_MAX, Caller, Verifier, get_bearer_token, require_scope
from shared.web.http import OpenRoute, UndeclaredScope, demand_scopes
from shared.web.problems import HttpProblem
from shared.web.signing_keys import SigningKeys, parse_keys

ED25519 = Ed25519PrivateKey.generate()
P256 = ec.generate_private_key(ec.SECP256R1())
RSA_2048 = rsa.generate_private_key(65537, 2048)
RSA_1024 = rsa.generate_private_key(65537, 1024)

PUBLIC = {
    "ed": json.loads(OKPAlgorithm.to_jwk(ED25519.public_key())),
    "ec": json.loads(ECAlgorithm.to_jwk(P256.public_key())),
    "rsa": json.loads(RSAAlgorithm.to_jwk(RSA_2048.public_key())),
    "short": json.loads(RSAAlgorithm.to_jwk(RSA_1024.public_key())),
}


def key_set(*keys: dict[str, Any]) -> bytes:
    return json.dumps({"keys": keys}).encode()


@pytest.fixture
def verifier(issuing: RunFolder) -> Verifier:
    return create_verifier(issuing)


@pytest.fixture
def folder(tmp_path: Path) -> RunFolder:
    return RunFolder(tmp_path)


def create_verifier(folder: RunFolder) -> Verifier:
    keys = SigningKeys(issuer.public_keys(folder).as_uri())
    return Verifier(keys, issuer=DEVELOPMENT_ISSUER, audience=issuer.AUDIENCE)


def key_id_of(token: str) -> str:
    return str(jwt.get_unverified_header(token)["kid"])


async def code_of(verifier: Verifier, token: str) -> str:
    with pytest.raises(HttpProblem) as refused:
        await verifier.identify(token)
    return refused.value.code


async def test_a_token_has_its_caller_and_the_scopes(
    verifier: Verifier, issuing: RunFolder
) -> None:
    caller = await verifier.identify(issuer.token(issuing, "analyst"))

    assert caller.subject == "analyst"
    assert caller.scopes == set(issuer.ROLES["analyst"])


@pytest.mark.parametrize(
    "claims",
    [
        {"iss": "https://another.example"},
        {"aud": "another audience"},
        {"exp": 1},
        {"exp": None},
        {"nbf": 9999999999},
        {"iat": 9999999999},
        {"iat": None},
        {"sub": ""},
        {"sub": "x" * 256},
        {"sub": "clerk\0"},
        {"sub": "clerk\n"},
        {"sub": "\ud800"},
        {"sub": None},
        {"scope": ["all"]},
        {"scope": None},
    ],
    ids=str,
)
async def test_claims_must_be_present_and_right(
    verifier: Verifier, issuing: RunFolder, claims: dict[str, Any]
) -> None:
    token = issuer.sign(issuing, {"sub": "clerk", "scope": "all"} | claims)

    assert await code_of(verifier, token) == "invalid-token"


async def test_a_verified_token_is_cached_and_the_cache_has_a_maximum_size(
    verifier: Verifier, issuing: RunFolder
) -> None:
    token = issuer.token(issuing, "clerk")
    first = await verifier.identify(token)

    assert await verifier.identify(token) is first
    for number in range(REMEMBERED_MAX):
        verifier._remember(str(number).encode(), float("inf"), first)
    assert len(verifier._remembered) == REMEMBERED_MAX
    assert await verifier.identify(token) is not first


async def test_a_cached_token_is_accepted_until_it_expires(
    verifier: Verifier, issuing: RunFolder
) -> None:
    await verifier.identify(issuer.token(issuing, "clerk", hours=1 / 3600))

    [(until, _)] = verifier._remembered.values()
    claims = jwt.decode(
        issuer.token(issuing, "clerk", hours=1 / 3600), options={"verify_signature": False}
    )
    assert until <= claims["exp"]


async def test_after_a_rotation_tokens_of_both_keys_are_accepted_at_once(folder: RunFolder) -> None:
    """A key that nothing published before would be unknown for REFRESH_PAUSE_SECONDS."""
    issuer.establish(folder)
    running = create_verifier(folder)
    before, not_used_yet = (issuer.token(folder, role) for role in ("clerk", "analyst"))
    await running.identify(before)

    issuer.rotate(folder)

    after = issuer.token(folder, "clerk")
    assert key_id_of(after) != key_id_of(before)
    for verifier in (running, create_verifier(folder)):
        for token in (before, not_used_yet, after):
            assert await verifier.identify(token)


async def test_a_key_that_leaked_is_withdrawn_at_once(folder: RunFolder) -> None:
    issuer.establish(folder)
    leaked = issuer.token(folder, "clerk")

    issuer.rotate(folder, hours=0)

    assert await code_of(create_verifier(folder), leaked) == "invalid-token"


async def test_without_keys_every_request_is_refused() -> None:
    verifier = Verifier(SigningKeys("file:///nowhere"), issuer="i", audience="a")
    token = jwt.encode({"sub": "x"}, ED25519, "EdDSA", headers={"kid": "k"})

    assert await code_of(verifier, token) == "keys-unavailable"


@pytest.mark.parametrize(("key", "algorithm"), [("ed", "EdDSA"), ("ec", "ES256"), ("rsa", "RS256")])
def test_the_key_decides_on_the_algorithm(key: str, algorithm: str) -> None:
    [usable] = parse_keys(key_set(PUBLIC[key] | {"kid": "k"})).values()

    assert usable.algorithm_name == algorithm


@pytest.mark.parametrize(
    "key",
    [
        {"kty": "oct", "k": "c2VjcmV0", "kid": "k"},
        {"kty": "oct", "k": "c2VjcmV0", "kid": "k", "alg": "EdDSA"},
        PUBLIC["ed"],
        PUBLIC["ed"] | {"kid": 5},
        PUBLIC["ed"] | {"kid": "k", "use": "enc"},
        PUBLIC["ed"] | {"kid": "k", "alg": "HS256"},
        PUBLIC["ed"] | {"kid": "k", "alg": "none"},
        PUBLIC["ed"] | {"kid": "k", "x": "AA"},
        PUBLIC["rsa"] | {"kid": "k", "alg": "RS512"},
        PUBLIC["short"] | {"kid": "k"},
        json.loads(OKPAlgorithm.to_jwk(ED25519)) | {"kid": "k"},
        "a key",
    ],
    ids=[
        "a secret",
        "a secret that calls itself a key",
        "no name",
        "a number for a name",
        "for encryption",
        "another algorithm",
        "no algorithm",
        "too few bytes",
        "RS512",
        "a short one",
        "a private one",
        "no object",
    ],
)
def test_a_key_that_is_not_accepted_is_ignored(key: Any) -> None:
    assert list(parse_keys(key_set(key, PUBLIC["ec"] | {"kid": "good"}))) == ["good"]


@pytest.mark.parametrize("document", [b"", b"[]", b'{"keys": 1}', b"<html>", b"\xff"], ids=str)
def test_a_document_that_is_no_key_set_is_an_error(document: bytes) -> None:
    with pytest.raises(ValueError):  # noqa: PT011
        parse_keys(document)


def test_a_token_is_read_from_the_one_authorization_header() -> None:
    assert get_bearer_token([(b"authorization", b"bearer abc")]) == "abc"
    for headers in ([], [(b"authorization", b"Basic abc")], [(b"authorization", b"Bearer a")] * 2):
        with pytest.raises(HttpProblem):
            get_bearer_token(headers)


def test_a_limited_caller_owns_only_their_own_data() -> None:
    me, other = uuid4(), uuid4()
    user = Caller(subject=str(me), scopes=frozenset({"users:read"}))
    clerk = Caller(subject="clerk", scopes=frozenset({"users:read", "all"}))

    assert (user.owns(me), user.owns(other), clerk.owns(other)) == (True, False, True)
    with pytest.raises(HttpProblem):
        user.demand_all()


def open_router() -> APIRouter:
    router = APIRouter()

    @router.get("/secrets")
    async def secrets() -> None: ...

    return router


def late_router() -> APIRouter:
    """The scope is not the first dependency."""
    router = APIRouter()

    @router.get("/secrets")
    async def secrets(
        first: Annotated[None, Depends(lambda: None)],
        then: Annotated[Caller, require_scope("users:read")],
    ) -> None: ...

    return router


@pytest.mark.parametrize("router", [open_router(), late_router()])
def test_a_route_without_a_scope_is_found(router: APIRouter) -> None:
    with pytest.raises(OpenRoute, match="/secrets"):
        demand_scopes(router)


@pytest.mark.parametrize("scope", ["users:raed", "all"])
def test_a_scope_that_no_service_declares_is_refused(scope: str) -> None:
    router = APIRouter()

    @router.get("/secrets")
    async def secrets(caller: Annotated[Caller, require_scope(scope)]) -> None: ...

    with pytest.raises(UndeclaredScope, match=f"/secrets needs {scope}, which no service declares"):
        demand_scopes(router)
