"""What a service's OpenAPI document says of refusals: each status, and the codes under it."""

from collections import defaultdict
from collections.abc import Iterable, Sequence
from http import HTTPStatus
from typing import Any

from fastapi import FastAPI
from fastapi.openapi.utils import get_openapi

from shared.problems import PROBLEM, Problem, details

PROBLEM_REFERENCE = {"$ref": "#/components/schemas/Problem"}

Responses = dict[int | str, dict[str, Any]]

ANY_CODES = {
    401: ["unauthenticated", "invalid-token"],
    403: ["insufficient-scope"],
    422: ["invalid-request"],
    429: ["too-many-requests"],
    503: ["keys-unavailable"],
    504: ["answer-too-slow"],
}
"""What any request may be answered, whatever it is about."""

WRITE_CODES = {
    400: ["malformed-idempotency-key", "malformed-if-match"],
    408: ["body-too-slow"],
    409: ["request-in-progress", "version-conflict"],
    412: ["version-conflict"],
    413: ["body-too-large"],
    422: ["idempotency-key-reused"],
    503: ["busy"],
}
"""What any change may be answered besides."""


def refusals(
    *,
    missing: Sequence[str] = (),
    gone: Sequence[str] = (),
    conflicts: Sequence[str] = (),
    invalid: Sequence[str] = (),
    forbidden: Sequence[str] = (),
    writes: bool = False,
) -> Responses:
    """The refusals of one route by their codes, for its `responses`."""
    own = {403: forbidden, 404: missing, 409: conflicts, 410: gone, 422: invalid}
    codes: defaultdict[int, list[str]] = defaultdict(list)
    for part in (own, ANY_CODES, WRITE_CODES if writes else {}):
        for status, named in part.items():
            codes[status] += named
    return {status: described(status, codes[status]) for status in sorted(codes) if codes[status]}


def described(status: int, codes: Iterable[str]) -> dict[str, Any]:
    """One status of a route, with an example for each code."""
    examples = {
        code: {"value": details(status, code, "why, in words").model_dump(exclude_none=True)}
        for code in codes
    }
    return {
        "description": f"{HTTPStatus(status).phrase}: {', '.join(examples)}",
        "content": {PROBLEM: {"schema": PROBLEM_REFERENCE, "examples": examples}},
    }


def document(app: FastAPI) -> dict[str, Any]:
    """The OpenAPI document, made once."""
    if app.openapi_schema is None:
        made = get_openapi(title=app.title, version=app.version, routes=app.routes)
        schemas = made.setdefault("components", {}).setdefault("schemas", {})
        schemas["Problem"] = Problem.model_json_schema()
        app.openapi_schema = made
    return app.openapi_schema
