"""Who calls, and what they may do: bearer tokens (RFC 6750) that the issuer has signed."""

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
"""How far the issuer's clock may be from ours."""
TOKEN_CHARACTERS_MAX = 4096
SUBJECT_CHARACTERS_MAX = 255
REMEMBERED_MAX = 4096
REMEMBERED_SECONDS_MAX = 60
"""Verifying a signature takes 0.1 ms, so a good token is looked at again only now and then."""

CALLER = "hometown.caller"
"""Where a request's scope has its Caller."""

Headers = Sequence[tuple[bytes, bytes]]


@dataclass(frozen=True, slots=True, kw_only=True)
class Caller:
    """Whom a token speaks for, and what it allows."""

    subject: str
    scopes: frozenset[str]

    @property
    def is_limited(self) -> bool:
        """To what is their own."""
        return ALL not in self.scopes

    @property
    def user_id(self) -> UUID:
        """The user that the caller is. Raises HttpProblem for somebody who is none.

        Each user has one form of their id alone, or somebody could come under another's.
        """
        try:
            user_id = UUID(self.subject)
        except ValueError:
            raise not_yours() from None
        if str(user_id) != self.subject:
            raise not_yours()
        return user_id

    def owns(self, user_id: UUID) -> bool:
        """Whether what belongs to this user is the caller's to see and to change."""
        return not self.is_limited or self.subject == str(user_id)

    def demand_own(self, user_id: UUID) -> None:
        """Raises HttpProblem for what belongs to another user."""
        if not self.owns(user_id):
            raise not_yours()

    def demand_all(self) -> None:
        """Raises HttpProblem for a caller who is limited to their own."""
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
    """Knows callers by their tokens."""

    def __init__(self, keys: SigningKeys, *, issuer: str, audience: str) -> None:
        self._keys = keys
        self._issuer = issuer
        self._audience = audience
        self._remembered: dict[bytes, tuple[float, Caller]] = {}

    async def identify(self, token: str) -> Caller:
        """Whom a token speaks for.

        Raises:
            HttpProblem: nobody, as it is not one of ours or not of this time; or nobody can tell.
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
                raise invalid_token("the token names no key of the issuer")
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
            detail = "the keys of the issuer cannot be fetched, try again"
            raise HttpProblem(503, "keys-unavailable", detail) from None
        except jwt.ExpiredSignatureError:
            raise invalid_token("the token has expired") from None
        except (jwt.PyJWTError, ValueError, OverflowError, RecursionError):
            # Why is nobody's business: what a forger learns here helps to forge.
            raise invalid_token("the token is not a valid one of the issuer") from None

    def _remember(self, digest: bytes, until: float, caller: Caller) -> None:
        self._remembered.pop(digest, None)
        if len(self._remembered) >= REMEMBERED_MAX:
            del self._remembered[next(iter(self._remembered))]
        self._remembered[digest] = (until, caller)


def get_key_id(token: str) -> str:
    """The id of the key that has signed, as the token says. Raises jwt.PyJWTError, ValueError."""
    match jwt.get_unverified_header(token).get("kid"):
        case str(key_id):
            return key_id
    raise ValueError("the token names no key")


def to_caller(claims: dict[str, Any]) -> Caller:
    """Raises HttpProblem when the issuer named somebody whom nobody can be."""
    subject, scopes = claims["sub"], claims.get("scope", "")
    if not isinstance(scopes, str) or not 0 < len(subject) <= SUBJECT_CHARACTERS_MAX:
        raise invalid_token("the token has no usable subject or scope")
    return Caller(subject=subject, scopes=frozenset(scopes.split(" ")))


def get_bearer_token(headers: Headers) -> str:
    """The bearer token of a request; from nowhere but its one Authorization header.

    Raises:
        HttpProblem: there is none, or more than one.
    """
    given = [value for name, value in headers if name == b"authorization"]
    if not given:
        raise unauthenticated("the request has no bearer token")
    scheme, _, token = given[0].decode("latin-1").partition(" ")
    if len(given) > 1 or scheme.lower() != "bearer":
        raise unauthenticated("the request needs one Authorization header, with a bearer token")
    if not 0 < len(token) <= TOKEN_CHARACTERS_MAX:
        raise invalid_token(f"a token has 1 to {TOKEN_CHARACTERS_MAX} characters")
    return token


@dataclass(frozen=True, slots=True, kw_only=True)
class RequestAuthenticator:
    """Who is let in, and how often."""

    verifier: Verifier
    rates: Rates

    async def authenticate(self, headers: Headers) -> Caller:
        """Raises HttpProblem for a caller who is unknown, or comes too often."""
        caller = await self.verifier.identify(get_bearer_token(headers))
        self.rates.demand(caller.subject)
        return caller


class RequireScope(SecurityBase):
    """A dependency: lets a caller with this scope pass, and gives the caller."""

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
    """Who was let in."""
    caller: Caller = request.scope[CALLER]
    return caller


def require_scope(scope: str) -> Any:
    """`caller: Annotated[Caller, require_scope("notes:read")]`, before all other dependencies.

    A service declares the scope in its `service.toml`; `http.create_app` checks that.
    """
    return Depends(RequireScope(scope))
