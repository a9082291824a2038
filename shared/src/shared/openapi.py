"""What a service's OpenAPI document says of refusals: each status, and the codes under it."""

from collections.abc import Iterable, Mapping, Sequence
from http import HTTPStatus
from typing import Any

from fastapi import FastAPI
from fastapi.openapi.utils import get_openapi
from pydantic import BaseModel

PROBLEM_TYPE = "application/problem+json"
PROBLEM_REFERENCE = {"$ref": "#/components/schemas/Problem"}

Responses = dict[int | str, dict[str, Any]]

WRITE_CODES = {
    400: ["malformed-idempotency-key", "malformed-if-match"],
    409: ["request-in-progress", "version-conflict"],
    412: ["version-conflict"],
    413: ["body-too-large"],
    422: ["idempotency-key-reused"],
    503: ["busy"],
}
"""What any change may be answered, whatever it is about."""


class Problem(BaseModel):
    """RFC 9457. `code` is stable and meant for programs."""

    type: str = "about:blank"
    title: str
    status: int
    code: str
    detail: str
    errors: list[dict[str, Any]] | None = None


def problem_of(status: int, code: str, detail: str) -> Problem:
    title = code.replace("-", " ").capitalize()
    return Problem(title=title, status=status, code=code, detail=detail)


def problems(
    *,
    missing: Sequence[str] = (),
    gone: Sequence[str] = (),
    conflicts: Sequence[str] = (),
    invalid: Sequence[str] = (),
    writes: bool = False,
) -> Responses:
    """The refusals of one route by their codes, for its `responses`."""
    own = {404: missing, 409: conflicts, 410: gone, 422: ["invalid-request", *invalid]}
    general: Mapping[int, Sequence[str]] = WRITE_CODES if writes else {}
    statuses = sorted(own.keys() | general.keys())
    codes = {status: [*own.get(status, ()), *general.get(status, ())] for status in statuses}
    return {status: described(status, named) for status, named in codes.items() if named}


def described(status: int, codes: Iterable[str]) -> dict[str, Any]:
    """One status of a route, with an example for each code."""
    examples = {
        code: {"value": problem_of(status, code, "why, in words").model_dump(exclude_none=True)}
        for code in codes
    }
    return {
        "description": f"{HTTPStatus(status).phrase}: {', '.join(examples)}",
        "content": {PROBLEM_TYPE: {"schema": PROBLEM_REFERENCE, "examples": examples}},
    }


def document(app: FastAPI) -> dict[str, Any]:
    """The OpenAPI document, made once."""
    if app.openapi_schema is None:
        made = get_openapi(title=app.title, version=app.version, routes=app.routes)
        schemas = made.setdefault("components", {}).setdefault("schemas", {})
        schemas["Problem"] = Problem.model_json_schema()
        app.openapi_schema = made
    return app.openapi_schema
