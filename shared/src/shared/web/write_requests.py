"""Write requests: their idempotency key and expected version, and how they are carried out."""

import hashlib
import hmac
import json
import re
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Annotated, TypeVar
from uuid import UUID

import asyncpg
from fastapi import Depends, Request, Response

from shared.eventsourcing.decider import Decider
from shared.eventsourcing.errors import NotFound, Refused, UnexpectedVersion, VersionConflict
from shared.eventsourcing.event_store import EventStore, KeyUsed
from shared.eventsourcing.handler import Outcome, handle_request
from shared.messaging.messages import IdempotencyKey, Metadata, StoredResponse
from shared.runtime.identifiers import new_id
from shared.web.auth import get_caller
from shared.web.http import etag, to_http_response
from shared.web.idempotency import raise_if_answered
from shared.web.openapi import IDEMPOTENCY_KEY, KEY_FORM
from shared.web.preconditions import Preconditions, read_preconditions
from shared.web.problems import HttpProblem

C = TypeVar("C")
S = TypeVar("S")
E = TypeVar("E")

REFUSALS = (KeyUsed, Refused, NotFound, UnexpectedVersion, VersionConflict, HttpProblem)
"""Errors with which a request can be refused because of the effects of its own first copy."""

WAIT_FOR_KEY = re.compile(r".*\(\d+,\d+\).*\bidempotency_keys")
"""A tuple of the table of keys or of its index."""


@dataclass(frozen=True, slots=True, kw_only=True)
class WriteRequest:
    """The preconditions, the idempotency key and the id of a write request."""

    preconditions: Preconditions
    key: IdempotencyKey | None
    metadata: Metadata

    async def handle(
        self,
        store: EventStore[E],
        decider: Decider[C, S, E],
        stream_id: UUID,
        command: C,
        make_response: Callable[[Outcome[S]], StoredResponse],
        *,
        is_new: bool = False,
        read_versions: Mapping[UUID, int] | None = None,
    ) -> Response:
        """Decide a command, record its events, and return the response that was made of them.

        With an idempotency key the response is stored in the transaction of the events. `is_new`
        and `read_versions` are those of `handle_request`.

        Raises:
            KeyUsed: the same request was recorded at the same time.
            StaleRead: one of `read_versions` has another version.
            HttpProblem: another transaction is writing the same resource, or the same key.
        """
        try:
            stored = await handle_request(
                store,
                decider,
                stream_id,
                command,
                make_response,
                metadata=self.metadata,
                key=self.key,
                is_expected=self._is_expected,
                is_new=is_new,
                read_versions=read_versions,
            )
        except asyncpg.LockNotAvailableError as error:
            if is_wait_for_key(error):
                raise HttpProblem(
                    409, "request-in-progress", "an earlier request is still being recorded"
                ) from None
            raise HttpProblem(
                503, "busy", "the resource is being written concurrently; retry"
            ) from None
        return to_http_response(stored)

    def _is_expected(self, version: int) -> bool:
        """A resource that is yet to be made has no entity tag."""
        return self.preconditions.hold_for(etag(version) if version else None)


async def read_write_request(request: Request) -> AsyncIterator[WriteRequest]:
    """A dependency that reads the `WriteRequest`. Raises Replay for a repeated request.

    A copy of the request can be recorded after this one has found no stored response; whatever this
    one reads from then on has the effects of the copy, and it is refused because of them. So a
    refusal is returned only if there is still no stored response.

    The app has its pool and the key of fingerprints in `app.state`. The headers are read from the
    request itself, which is cheaper than declaring them; `openapi` documents them.
    """
    pool: asyncpg.Pool = request.app.state.pool
    preconditions = read_preconditions(request.scope["headers"])
    key = None
    if names := request.headers.getlist(IDEMPOTENCY_KEY):
        key = await read_idempotency_key(request, names)
        await raise_if_answered(pool, key)
    request_id = new_id()
    try:
        yield WriteRequest(
            preconditions=preconditions,
            key=key,
            metadata=Metadata(
                correlation_id=request_id,
                causation_id=request_id,
                actor=get_caller(request).subject,
            ),
        )
    except REFUSALS:
        if key is not None:
            await raise_if_answered(pool, key)
        raise


def is_wait_for_key(error: asyncpg.LockNotAvailableError) -> bool:
    """Whether the row was locked that another transaction writes for the same key.

    PostgreSQL says in the first line of an error's context which row it waited for, if any, in the
    language of the server.
    """
    return WAIT_FOR_KEY.match(error.context or "") is not None


WriteRequestDep = Annotated[WriteRequest, Depends(read_write_request)]


async def read_idempotency_key(request: Request, names: Sequence[str]) -> IdempotencyKey:
    """The request's idempotency key (draft-ietf-httpapi-idempotency-key-header-07).

    The keys of a caller are their own: no caller gets the stored response of another one.
    """
    if len(names) > 1 or not re.fullmatch(KEY_FORM, names[0]):
        raise HttpProblem(
            400,
            "malformed-idempotency-key",
            "a request has one idempotency key, of 1 to 255 visible ASCII characters",
        )
    body = await request.body()
    try:
        canonical = json.dumps(json.loads(body), sort_keys=True).encode() if body else b""
    except (ValueError, RecursionError):
        canonical = body
    # As it was sent, in ASCII: the ids in it are not validated yet.
    path = request.scope["raw_path"].decode("ascii")
    scope = f"{request.method} {path} {get_caller(request).subject}"
    content, fingerprint_key = scope.encode() + b"\n" + canonical, request.app.state.fingerprint_key
    # Releases before 2026-11-23 had no key; a client can repeat a request of theirs for 72 hours.
    # `former_fingerprint` can go when no installation is updated from one of them, in 2027-06.
    former = None if fingerprint_key is None else compute_fingerprint(content, None)
    return IdempotencyKey(
        scope=scope,
        key=names[0],
        fingerprint=compute_fingerprint(content, fingerprint_key),
        former_fingerprint=former,
    )


def compute_fingerprint(content: bytes, key: bytes | None) -> bytes:
    """A hash of a request; without the key, if there is one, it cannot be compared with guesses."""
    if key is None:
        return hashlib.sha256(content).digest()
    return hmac.digest(key, content, "sha256")
