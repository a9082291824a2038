"""The issuer of this checkout's tokens: keys in the run folder, for development alone.

One key signs. The next one is published already, so that every API knows it when it begins to sign;
the ones before it stay published as long as their tokens are valid.
"""

import hashlib
import json
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import jwt
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
from cryptography.hazmat.primitives.serialization import (
    Encoding,
    NoEncryption,
    PrivateFormat,
    PublicFormat,
    load_pem_private_key,
)
from jwt.algorithms import OKPAlgorithm

from fetching.errors import Failure
from local_stack.run_folder import RunFolder, read_json, write_atomically, write_json
from shared.runtime.declarations import ALL, Declarations, load_declarations
from shared.runtime.settings import DEVELOPMENT_ISSUER

Jwk = dict[str, Any]

AUDIENCE = "hometown"
ALGORITHM = "EdDSA"
HOURS_DEFAULT = 12.0
HOURS_MAX = 24 * 365.0

KEY, CERTIFICATES = ROTATED = ("issuer", "certificates")
"""What can be made again without a loss of data: this issuer's key, and certificates."""

EXPIRES = "exp"
"""Member of a published key: when it is withdrawn, in seconds since 1970."""

CANARY = "canary"
CANARY_SCOPES = ("users:write", "items:write", "orders:read", "orders:write", "hours:read")
CANARY_VALID = timedelta(days=30)
"""Until `make up` has to be run again."""

PERSONAL = "user"
"""The role whose subject is the id of a user; it is limited to what belongs to that user."""


def declared_roles(declarations: Declarations) -> Mapping[str, Sequence[str]]:
    """The scopes of each role; all but the personal one have ALL as well."""
    scopes = declarations.scopes.values()
    roles = dict.fromkeys(role for scope in scopes for role in scope.roles)
    return {
        role: (
            *(scope.name for scope in scopes if role in scope.roles),
            *(() if role == PERSONAL else (ALL,)),
        )
        for role in roles
    }


ROLES = declared_roles(load_declarations())


def private_key(folder: RunFolder) -> Path:
    return folder / "issuer-key.pem"


def next_key(folder: RunFolder) -> Path:
    """The key that signs after the next rotation."""
    return folder / "issuer-next-key.pem"


def public_keys(folder: RunFolder) -> Path:
    return folder / "issuer-jwks.json"


def establish(folder: RunFolder) -> None:
    """Make the keys unless they exist; publish their public halves, and those of former keys whose
    tokens can be valid still."""
    for file in (private_key(folder), next_key(folder)):
        if not file.exists():
            pem = Ed25519PrivateKey.generate().private_bytes(
                Encoding.PEM, PrivateFormat.PKCS8, NoEncryption()
            )
            write_atomically(file, pem.decode(), mode=0o600)
    own = [to_jwk(load_key(file)) for file in (private_key(folder), next_key(folder))]
    ids = {jwk["kid"] for jwk in own}
    retired = [jwk for jwk in find_retired(folder, datetime.now(UTC)) if jwk["kid"] not in ids]
    publish(folder, [*own, *retired])


def rotate(folder: RunFolder, *, hours: float = HOURS_DEFAULT) -> None:
    """Sign with the next key from now on; tokens of the key before it are accepted for `hours`.

    The private half of the former key is gone. An interrupted rotation can be repeated.

    Raises:
        Failure: there is no issuer here, or the time is out of bounds.
    """
    if not 0 <= hours <= HOURS_MAX:
        raise Failure(f"a former key is published for at least 0 and at most {HOURS_MAX:.0f} hours")
    establish(folder)
    now = datetime.now(UTC)
    former = to_jwk(load(folder)) | {EXPIRES: int((now + timedelta(hours=hours)).timestamp())}
    retired = [former, *find_retired(folder, now)] if hours else find_retired(folder, now)
    publish(folder, [to_jwk(load_key(next_key(folder))), *retired])
    next_key(folder).replace(private_key(folder))
    establish(folder)


def find_retired(folder: RunFolder, now: datetime) -> list[Jwk]:
    """The published keys of before whose time has not ended."""
    published: Mapping[str, list[Jwk]] = read_json(public_keys(folder)) or {"keys": []}
    return [jwk for jwk in published["keys"] if jwk.get(EXPIRES, 0) > now.timestamp()]


def publish(folder: RunFolder, keys: Sequence[Jwk]) -> None:
    write_json(public_keys(folder), {"keys": keys})


def to_jwk(key: Ed25519PrivateKey) -> Jwk:
    """Its public half."""
    jwk = json.loads(OKPAlgorithm.to_jwk(key.public_key()))
    return {**jwk, "kid": key_id(key), "alg": ALGORITHM, "use": "sig"}


def variables(folder: RunFolder) -> Mapping[str, str]:
    """What an API must know of the issuer."""
    return {
        "AUTH_ISSUER": DEVELOPMENT_ISSUER,
        "AUTH_AUDIENCE": AUDIENCE,
        "AUTH_JWKS_URL": public_keys(folder).as_uri(),
    }


def token(
    folder: RunFolder, role: str, subject: str | None = None, *, hours: float = HOURS_DEFAULT
) -> str:
    """A token for `role`, which is its own subject unless another is given.

    Raises:
        Failure: there is no such role, or no issuer here, or the time is out of bounds.
    """
    if role not in ROLES:
        unknown = f"there is no role {role}" if role else "a role is missing"
        raise Failure(f"{unknown}: as={', as='.join(ROLES)}")
    if not 0 < hours <= HOURS_MAX:
        raise Failure(f"a token is valid for more than 0 and at most {HOURS_MAX:.0f} hours")
    return sign(folder, {"sub": subject or role, "scope": " ".join(ROLES[role])}, hours)


def canary_token(folder: RunFolder) -> str:
    """For what the canary does, and no more; the same all day, so that what is written again is
    what was there. Raises Failure when there is no issuer here."""
    today = datetime.now(UTC).replace(hour=0, minute=0, second=0, microsecond=0)
    times = {"iat": today, "exp": today + CANARY_VALID}
    return sign(folder, {"sub": CANARY, "scope": " ".join((*CANARY_SCOPES, ALL)), **times})


def sign(folder: RunFolder, claims: Mapping[str, object], hours: float = HOURS_DEFAULT) -> str:
    """A token with these claims in place of, or in addition to, those that every token has."""
    key, now = load(folder), datetime.now(UTC)
    usual = {
        "iss": DEVELOPMENT_ISSUER,
        "aud": AUDIENCE,
        "iat": now,
        "exp": now + timedelta(hours=hours),
    }
    return jwt.encode({**usual, **claims}, key, ALGORITHM, headers={"kid": key_id(key)})


def load(folder: RunFolder) -> Ed25519PrivateKey:
    """The key that signs. Raises Failure when there is none, or something else."""
    return load_key(private_key(folder))


def load_key(file: Path) -> Ed25519PrivateKey:
    """Raises Failure when there is none, or something else."""
    try:
        key = load_pem_private_key(file.read_bytes(), None)
    except FileNotFoundError:
        raise Failure("no issuer exists here yet: `make up`, then again") from None
    except ValueError:
        key = None
    if not isinstance(key, Ed25519PrivateKey):
        raise Failure(f"{file} is not a key of this issuer: remove it, then `make up`")
    return key


def key_id(key: Ed25519PrivateKey) -> str:
    public = key.public_key().public_bytes(Encoding.Raw, PublicFormat.Raw)
    return hashlib.sha256(public).hexdigest()[:16]
