"""Problem details (RFC 9457): the error responses of every service."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Annotated, Any

from pydantic import BaseModel, ConfigDict, Field, WithJsonSchema
from starlette.responses import Response

PROBLEM = "application/problem+json"
TEMPORARY = 503
RETRY_AFTER_SECONDS = 2
"""A server that was killed accepts connections again after 1 to 5 seconds."""


FIELD_ERRORS = {
    "type": "array",
    "items": {
        "type": "object",
        "properties": {"field": {"type": "string"}, "message": {"type": "string"}},
        "required": ["field", "message"],
    },
}


class Problem(BaseModel):
    """`code` is stable and meant for programs; `errors` lists the malformed fields, if any."""

    model_config = ConfigDict(
        json_schema_extra={"required": ["type", "title", "status", "code", "detail"]}
    )

    type: str = "about:blank"
    title: str
    status: int
    code: str
    detail: str
    # A factory, because a default would be documented, and null is never returned.
    errors: Annotated[list[dict[str, Any]] | None, WithJsonSchema(FIELD_ERRORS)] = Field(
        default_factory=lambda: None
    )


@dataclass(eq=False)
class HttpProblem(Exception):
    """An error response that the HTTP layer decides on, not the business rules."""

    status: int
    code: str
    detail: str
    headers: Mapping[str, str] = field(default_factory=dict)


def create_problem(status: int, code: str, detail: str) -> Problem:
    """The title is the code in words."""
    title = code.replace("-", " ").capitalize()
    return Problem(title=title, status=status, code=code, detail=detail)


def problem(
    status: int,
    code: str,
    detail: str,
    errors: list[dict[str, Any]] | None = None,
    headers: Mapping[str, str] | None = None,
) -> Response:
    """The response of a problem; one that will pass (503) says when to try again."""
    if status == TEMPORARY:
        headers = {"Retry-After": str(RETRY_AFTER_SECONDS), **(headers or {})}
    body = create_problem(status, code, detail).model_copy(update={"errors": errors})
    return Response(
        body.model_dump_json(exclude_none=True), status, headers=headers, media_type=PROBLEM
    )


def to_problem_response(error: HttpProblem) -> Response:
    return problem(error.status, error.code, error.detail, headers=error.headers)
