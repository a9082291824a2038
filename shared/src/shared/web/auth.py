"""Authentication and scopes of callers: bearer tokens (RFC 6750), signed by the issuer."""

import hashlib
import time
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any
from uuid import UUID

import jwt
from fastapi import Depends, Request
from fastapi.openapi.models import HTTPBearer as BearerModel
from fastapi.security.base import SecurityBase

from shared.runtime.declarations import ALL
from shared.web.limits import Rates
from shared.web.problems import HttpProblem
from shared.web.signing_keys import KeysUnavailable, SigningKeys

NOT_YOURS = "not-yours"

REQUIRED_CLAIMS = ["exp", "iat", "sub", "aud", "iss"]
LEEWAY_SECONDS = 30
"""Maximum difference between the issuer's clock and ours."""
TOKEN_CHARACTERS_MAX = 4096
SUBJECT_CHARACTERS_MAX = 255
REMEMBERED_MAX = 4096
REMEMBERED_SECONDS_MAX = 60
"""Verifying a signature takes 0.1 ms, so a verified token is cached for this long."""

CALLER = "hometown.caller"
"""Key of the ASGI scope; its value is the Caller."""

Headers = Sequence[tuple[bytes, bytes]]


@dataclass(frozen=True, slots=True, kw_only=True)
class Caller:
    """The subject and the scopes of a token."""

    subject: str
    scopes: frozenset[str]

    @property
    def is_limited(self) -> bool:
        """Whether the caller is limited to their own data."""
        return ALL not in self.scopes

    @property
    def user_id(self) -> UUID:
        """The id of the user that the caller is. Raises HttpProblem if the caller is no user.

        Only the canonical form of an id is accepted: two spellings would be two subjects.
        """
        try:
            user_id = UUID(self.subject)
        except ValueError:
            raise not_yours() from None
        if str(user_id) != self.subject:
            raise not_yours()
        return user_id

    def owns(self, user_id: UUID) -> bool:
        """Whether the caller can read and change this user's data."""
        return not self.is_limited or self.subject == str(user_id)

    def demand_own(self, user_id: UUID) -> None:
        """Raises HttpProblem if the data belongs to another user."""
        if not self.owns(user_id):
            raise not_yours()

    def demand_all(self) -> None:
        """Raises HttpProblem if the caller is limited to their own data."""
        if self.is_limited:
            raise insufficient_scope(ALL)


def not_yours() -> HttpProblem:
    return HttpProblem(403, NOT_YOURS, "this belongs to another user")


def insufficient_scope(scope: str) -> HttpProblem:
    challenge = f'Bearer error="insufficient_scope", scope="{scope}"'
    detail = f"the token does not allow {scope}"
    return HttpProblem(403, "insufficient-scope", detail, {"WWW-Authenticate": challenge})


def unauthenticated(detail: str) -> HttpProblem:
    return HttpProblem(401, "unauthenticated", detail, {"WWW-Authenticate": "Bearer"})


def invalid_token(detail: str) -> HttpProblem:
    challenge = f'Bearer error="invalid_token", error_description="{detail}"'
    return HttpProblem(401, "invalid-token", detail, {"WWW-Authenticate": challenge})


class Verifier:
    """Verifies tokens, and caches the callers of verified ones."""

    def __init__(self, keys: SigningKeys, *, issuer: str, audience: str) -> None:
        self._keys = keys
        self._issuer = issuer
        self._audience = audience
        self._remembered: dict[bytes, tuple[float, Caller]] = {}

    async def identify(self, token: str) -> Caller:
        """The caller of a token.

        Raises:
            HttpProblem: it is not valid, or the issuer's keys are unavailable.
        """
        digest = hashlib.sha256(token.encode()).digest()
        until, caller = self._remembered.get(digest, (0.0, None))
        if caller is None or time.time() >= until:
            claims = await self._decode(token)
            caller = to_caller(claims)
            self._remember(digest, min(claims["exp"], time.time() + REMEMBERED_SECONDS_MAX), caller)
        return caller

    async def _decode(self, token: str) -> dict[str, Any]:
        try:
            key = await self._keys.find(get_key_id(token))
            if key is None:
                raise invalid_token("the token's key id is not one of the issuer's keys")
            return jwt.decode(
                token,
                key,
                algorithms=[key.algorithm_name],
                issuer=self._issuer,
                audience=self._audience,
                leeway=LEEWAY_SECONDS,
                options={"require": REQUIRED_CLAIMS},
            )
        except KeysUnavailable:
            detail = "the issuer's keys cannot be fetched; retry"
            raise HttpProblem(503, "keys-unavailable", detail) from None
        except jwt.ExpiredSignatureError:
            raise invalid_token("the token has expired") from None
        except (jwt.PyJWTError, ValueError, OverflowError, RecursionError):
            # The reason is not returned: it would help to forge a token.
            raise invalid_token("the token is not valid") from None

    def _remember(self, digest: bytes, until: float, caller: Caller) -> None:
        self._remembered.pop(digest, None)
        if len(self._remembered) >= REMEMBERED_MAX:
            del self._remembered[next(iter(self._remembered))]
        self._remembered[digest] = (until, caller)


def get_key_id(token: str) -> str:
    """The unverified `kid` of a token. Raises jwt.PyJWTError, ValueError."""
    match jwt.get_unverified_header(token).get("kid"):
        case str(key_id):
            return key_id
    raise ValueError("the token has no key id")


def to_caller(claims: dict[str, Any]) -> Caller:
    """Raises HttpProblem if the subject or the scope has no usable form."""
    subject, scopes = claims["sub"], claims.get("scope", "")
    is_usable = 0 < len(subject) <= SUBJECT_CHARACTERS_MAX and subject.isprintable()
    if not isinstance(scopes, str) or not is_usable:
        raise invalid_token("the token has no usable subject or scope")
    return Caller(subject=subject, scopes=frozenset(scopes.split(" ")))


def get_bearer_token(headers: Headers) -> str:
    """The bearer token of a request, which has exactly one Authorization header.

    Raises:
        HttpProblem: there is none, or more than one.
    """
    given = [value for name, value in headers if name == b"authorization"]
    if not given:
        raise unauthenticated("the request has no bearer token")
    scheme, _, token = given[0].decode("latin-1").partition(" ")
    if len(given) > 1 or scheme.lower() != "bearer":
        raise unauthenticated(
            "the request must have exactly one Authorization header, with a bearer token"
        )
    if not 0 < len(token) <= TOKEN_CHARACTERS_MAX:
        raise invalid_token(f"a token has 1 to {TOKEN_CHARACTERS_MAX} characters")
    return token


@dataclass(frozen=True, slots=True, kw_only=True)
class RequestAuthenticator:
    """Verifies the token of a request and limits the rate of its caller."""

    verifier: Verifier
    rates: Rates

    async def authenticate(self, headers: Headers) -> Caller:
        """Raises HttpProblem: the token is missing or not valid, or the rate limit is exceeded."""
        caller = await self.verifier.identify(get_bearer_token(headers))
        self.rates.demand(caller.subject)
        return caller


class RequireScope(SecurityBase):
    """A dependency that requires a scope, and returns the caller."""

    def __init__(self, scope: str) -> None:
        self.scope = scope
        self.model = BearerModel(bearerFormat="JWT")
        self.scheme_name = "token"

    async def __call__(self, request: Request) -> Caller:
        caller = get_caller(request)
        if self.scope not in caller.scopes:
            raise insufficient_scope(self.scope)
        return caller


def get_caller(request: Request) -> Caller:
    """The authenticated caller of a request."""
    caller: Caller = request.scope[CALLER]
    return caller


def require_scope(scope: str) -> Any:
    """`caller: Annotated[Caller, require_scope("notes:read")]`, before all other dependencies.

    A service declares the scope in its `service.toml`; `http.create_app` checks that.
    """
    return Depends(RequireScope(scope))
