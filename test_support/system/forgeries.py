"""Tokens that must be refused: those that an attacker without a key of the issuer can make."""

import base64
import hashlib
import hmac
import json
from collections.abc import Callable, Mapping
from datetime import UTC, datetime, timedelta
from typing import Any

import jwt
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
from cryptography.hazmat.primitives.serialization import Encoding, PublicFormat
from jwt.algorithms import OKPAlgorithm

from local_stack import issuer
from local_stack.run_folder import RunFolder
from shared.runtime.settings import DEVELOPMENT_ISSUER

Headers = list[tuple[bytes, bytes]]
Json = dict[str, Any]

OWN_KEY = Ed25519PrivateKey.generate()
"""The attacker's."""


def public_jwk(folder: RunFolder) -> Json:
    [jwk, *_] = json.loads(issuer.public_keys(folder).read_text())["keys"]
    return dict(jwk)


def claims(**changed: object) -> Json:
    """Those of a clerk, who has all rights."""
    now = datetime.now(UTC)
    right = {
        "iss": DEVELOPMENT_ISSUER,
        "aud": issuer.AUDIENCE,
        "sub": "clerk",
        "scope": " ".join(issuer.ROLES["clerk"]),
        "iat": int(now.timestamp()),
        "exp": int((now + timedelta(hours=1)).timestamp()),
    }
    return {name: value for name, value in (right | changed).items() if value is not None}


def encoded(value: bytes | Json) -> str:
    content = value if isinstance(value, bytes) else json.dumps(value).encode()
    return base64.urlsafe_b64encode(content).rstrip(b"=").decode()


def unsigned(header: Json, signature: str = "") -> str:
    return f"{encoded(header)}.{encoded(claims())}.{signature}"


def with_secret(folder: RunFolder, secret: bytes, algorithm: str = "HS256") -> str:
    """Signed with a public value, as if it were a shared secret (key confusion)."""
    header = {"alg": algorithm, "typ": "JWT", "kid": public_jwk(folder)["kid"]}
    body = f"{encoded(header)}.{encoded(claims())}"
    digest = hmac.new(secret, body.encode(), hashlib.sha256).digest()
    return f"{body}.{encoded(digest)}"


def with_own_key(**header: object) -> str:
    return jwt.encode(claims(), OWN_KEY, "EdDSA", headers=header)


def good(folder: RunFolder) -> str:
    return issuer.token(folder, "clerk")


def parts(folder: RunFolder) -> list[str]:
    return good(folder).split(".")


def tampered(folder: RunFolder) -> str:
    """A user's token with the payload of a clerk's."""
    head, _, signature = issuer.token(folder, "user", "another-user").split(".")
    return f"{head}.{encoded(claims())}.{signature}"


def pem(folder: RunFolder) -> bytes:
    key = issuer.load(folder).public_key()
    return key.public_bytes(Encoding.PEM, PublicFormat.SubjectPublicKeyInfo)


def raw_key(folder: RunFolder) -> bytes:
    key = issuer.load(folder).public_key()
    return key.public_bytes(Encoding.Raw, PublicFormat.Raw)


def kid(folder: RunFolder) -> str:
    return str(public_jwk(folder)["kid"])


OWN_JWK = json.loads(OKPAlgorithm.to_jwk(OWN_KEY.public_key()))

TOKENS: Mapping[str, Callable[[RunFolder], str]] = {
    "garbage": lambda folder: "garbage",
    "two dots": lambda folder: "..",
    "latin letters": lambda folder: "é.é.é",
    "expired": lambda folder: issuer.sign(folder, claims(exp=1)),
    "expired within a day": lambda folder: issuer.sign(
        folder, {"sub": "clerk", "scope": "all"}, hours=-1
    ),
    "not yet valid": lambda folder: issuer.sign(folder, claims(nbf=9999999999)),
    "issued in the future": lambda folder: issuer.sign(folder, claims(iat=9999999999)),
    "never expires": lambda folder: jwt.encode(
        claims(exp=None), issuer.load(folder), "EdDSA", headers={"kid": kid(folder)}
    ),
    "without a subject": lambda folder: jwt.encode(
        claims(sub=None), issuer.load(folder), "EdDSA", headers={"kid": kid(folder)}
    ),
    "of another issuer": lambda folder: issuer.sign(folder, claims(iss="https://evil.example")),
    "for another audience": lambda folder: issuer.sign(folder, claims(aud="payroll")),
    "alg none": lambda folder: unsigned({"alg": "none", "kid": kid(folder)}),
    "alg None": lambda folder: unsigned({"alg": "None", "kid": kid(folder)}),
    "alg NONE": lambda folder: unsigned({"alg": "NONE", "kid": kid(folder)}),
    "alg nOnE with a signature": lambda folder: unsigned({"alg": "nOnE", "kid": kid(folder)}, "AA"),
    "alg empty": lambda folder: unsigned({"alg": "", "kid": kid(folder)}),
    "alg missing": lambda folder: unsigned({"kid": kid(folder)}),
    "HS256 with the public PEM": lambda folder: with_secret(folder, pem(folder)),
    "HS256 with the public bytes": lambda folder: with_secret(folder, raw_key(folder)),
    "HS256 with the public JWK": lambda folder: with_secret(
        folder, public_jwk(folder)["x"].encode()
    ),
    "HS256 with an empty secret": lambda folder: with_secret(folder, b""),
    "HS256 called EdDSA": lambda folder: with_secret(folder, pem(folder), "EdDSA"),
    "own key under the issuer's id": lambda folder: with_own_key(kid=kid(folder)),
    "own key in the header": lambda folder: with_own_key(kid=kid(folder), jwk=OWN_JWK),
    "own key set at an address": lambda folder: with_own_key(
        kid=kid(folder), jku="http://127.0.0.1:1/keys.json"
    ),
    "own certificate at an address": lambda folder: with_own_key(
        kid=kid(folder), x5u="http://127.0.0.1:1/certificate.pem"
    ),
    "unknown key": lambda folder: with_own_key(kid="another"),
    "no key id": lambda folder: with_own_key(),
    "key id is a path": lambda folder: with_own_key(kid="../../../../../../dev/null"),
    "key id is SQL": lambda folder: with_own_key(kid="x' UNION SELECT 'secret'--"),
    "key id is an address": lambda folder: with_own_key(kid="http://127.0.0.1:1/key"),
    "tampered payload": tampered,
    "signature stripped": lambda folder: ".".join(parts(folder)[:2]) + ".",
    "signature missing": lambda folder: ".".join(parts(folder)[:2]),
    "signature of zeros": lambda folder: ".".join([*parts(folder)[:2], encoded(bytes(64))]),
    "signature too long": lambda folder: good(folder) + "AAAA",
    "unknown critical header": lambda folder: jwt.encode(
        claims(), issuer.load(folder), "EdDSA", headers={"kid": kid(folder), "crit": ["x"], "x": 1}
    ),
    "header is a list": lambda folder: f"{encoded(b'[]')}.{encoded(claims())}.AA",
    "header is deep": lambda folder: f"{encoded(b'[' * 2000)}.{encoded(claims())}.AA",
    "too long": lambda folder: issuer.sign(folder, claims(more="x" * 4096)),
}
"""Each is sent as the bearer token of a clerk."""


def bearer(token: str) -> Headers:
    return [(b"Authorization", b"Bearer " + token.encode("latin-1"))]


def sent_as_bearer(make: Callable[[RunFolder], str]) -> Callable[[RunFolder], Headers]:
    return lambda folder: bearer(make(folder))


HEADERS: Mapping[str, Callable[[RunFolder], Headers]] = {
    "no header": lambda folder: [],
    "empty header": lambda folder: [(b"Authorization", b"")],
    "only the scheme": lambda folder: [(b"Authorization", b"Bearer")],
    "basic": lambda folder: [(b"Authorization", b"Basic Y2xlcms6Y2xlcms=")],
    "another scheme": lambda folder: [(b"Authorization", b"Token " + good(folder).encode())],
    "no scheme": lambda folder: [(b"Authorization", good(folder).encode())],
    "a good and a bad one": lambda folder: bearer(good(folder)) + bearer("bad"),
    "two good ones": lambda folder: bearer(good(folder)) * 2,
    "two in one": lambda folder: bearer(f"{good(folder)},{good(folder)}"),
    "a cookie": lambda folder: [(b"Cookie", b"access_token=" + good(folder).encode())],
    "another header": lambda folder: [(b"X-Authorization", b"Bearer " + good(folder).encode())],
    "a proxy's header": lambda folder: [
        (b"Proxy-Authorization", b"Bearer " + good(folder).encode())
    ],
    "what a proxy would add": lambda folder: [
        (b"X-Forwarded-For", b"127.0.0.1"),
        (b"X-Forwarded-User", b"clerk"),
        (b"X-Original-URL", b"/health/live"),
        (b"X-Rewrite-URL", b"/health/live"),
        (b"Forwarded", b"for=127.0.0.1"),
    ],
}

FORGERIES: Mapping[str, Callable[[RunFolder], Headers]] = {
    **{name: sent_as_bearer(make) for name, make in TOKENS.items()},
    **HEADERS,
}
