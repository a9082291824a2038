"""The OpenAPI document of a service, with the code of each problem and each response header."""

from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence, Set
from http import HTTPStatus
from typing import Any

from fastapi import APIRouter, FastAPI
from fastapi.openapi.utils import get_openapi
from fastapi.routing import APIRoute

from shared.runtime.declarations import load_declarations
from shared.web.auth import RequireScope
from shared.web.content import UNSUPPORTED_MEDIA_TYPE
from shared.web.outages import UNAVAILABLE
from shared.web.preconditions import IF_MATCH, IF_NONE_MATCH, TAG_LIST, VERSION_CONFLICT
from shared.web.problems import PROBLEM, Problem, create_problem

PROBLEM_REFERENCE = {"$ref": "#/components/schemas/Problem"}

Responses = dict[int | str, dict[str, Any]]
Json = dict[str, Any]

ABOUT = """
All operations require a bearer token; each operation names the scope that the token must have.

Every error is a problem (RFC 9457), whose `code` is stable and meant for programs. Besides the
codes that are listed at each operation, `404 not-found` and `405 method-not-allowed` are the
response to a path or method that is no operation, and `500 internal-error` means a bug. After
`503 unavailable` it is unknown whether a write request was applied: repeat it with its key.

A write request can be repeated safely with an `Idempotency-Key`: it is applied once, and every
repetition gets the same response. With `If-Match` it is applied only if the resource still has one
of those `ETag`s; a resource that is to be made has none yet. Its content is JSON in UTF-8.

Every operation that is read with `GET` can be read with `HEAD`. With `If-None-Match` the response
is `304` while the resource has one of those `ETag`s, and with `If-Match` `412` if it has none.
"""

ANY_CODES = {
    401: ["unauthenticated", "invalid-token"],
    403: ["insufficient-scope"],
    413: ["body-too-large"],
    422: ["invalid-request"],
    429: ["too-many-requests"],
    503: ["keys-unavailable", UNAVAILABLE],
    504: ["answer-too-slow"],
}
"""Codes that any operation can return."""

WRITE_CODES = {
    400: [
        "bad-request",
        "malformed-idempotency-key",
        "malformed-if-match",
        "malformed-if-none-match",
    ],
    408: ["body-too-slow"],
    409: ["request-in-progress", VERSION_CONFLICT, "event-too-large"],
    412: [VERSION_CONFLICT],
    415: [UNSUPPORTED_MEDIA_TYPE],
    422: ["idempotency-key-reused"],
    503: ["busy"],
}
"""Codes that any write operation can return, too."""

READ_CODES = {
    400: ["malformed-if-match", "malformed-if-none-match"],
    412: [VERSION_CONFLICT],
}
"""Codes that any other operation can return, too."""

NOT_FOUND = "not-found"
"""The code for an id with a slash in a path, which then is no operation."""

TEXT = {"type": "string"}
OWN_TAG = r'"[0-9]{1,10}"'

KEY_FORM = r"[\x21-\x7e]{1,255}"
IDEMPOTENCY_KEY = "Idempotency-Key"
TAGS = {"format": "entity-tags", "pattern": rf"^(\*|{TAG_LIST.pattern})$"}
CHANGES = {"POST", "PUT", "PATCH", "DELETE"}
HEADERS_OF_CHANGES: Sequence[Json] = (
    {
        "name": IDEMPOTENCY_KEY,
        "in": "header",
        "required": False,
        "description": "A name of this request, such as a UUID; the same in its repetitions.",
        "schema": TEXT | {"pattern": f"^{KEY_FORM}$"},
    },
    {
        "name": IF_MATCH,
        "in": "header",
        "required": False,
        "description": "`ETag`s, one of which the resource to be changed has, or `*` for any.",
        "schema": TEXT | TAGS,
    },
)
"""The headers that `write_requests` reads."""
HEADERS_OF_READS: Sequence[Json] = (
    {
        "name": IF_NONE_MATCH,
        "in": "header",
        "required": False,
        "description": "`ETag`s that the client has the content of, or `*` for any.",
        "schema": TEXT | TAGS,
    },
)
NOT_MODIFIED: Json = {"description": "Not Modified: the client has the content already."}

ETAG = {"ETag": {"schema": TEXT | {"pattern": f"^{OWN_TAG}$"}, "required": True}}
LOCATION = {"Location": {"schema": TEXT | {"pattern": "^/v1/"}, "required": True}}
REPLAYED = {
    "Idempotency-Replayed": {
        "schema": TEXT | {"enum": ["true"]},
        "description": "The stored response to an earlier request with this key.",
    }
}
PROBLEM_HEADERS: Mapping[int, Json] = {
    401: {"WWW-Authenticate": {"schema": TEXT | {"pattern": "^Bearer"}, "required": True}},
    403: {"WWW-Authenticate": {"schema": TEXT | {"pattern": "^Bearer"}}},
    429: {"Retry-After": {"schema": TEXT | {"pattern": "^[0-9]+$"}, "required": True}},
    503: {"Retry-After": {"schema": TEXT | {"pattern": "^[0-9]+$"}, "required": True}},
}


def success(status: int, *headers: Json) -> Responses:
    """The response headers of a success, for a route's `responses`."""
    return {status: {"headers": {name: form for each in headers for name, form in each.items()}}}


def refusals(
    *,
    missing: Sequence[str] = (),
    gone: Sequence[str] = (),
    conflicts: Sequence[str] = (),
    invalid: Sequence[str] = (),
    forbidden: Sequence[str] = (),
    unavailable: Sequence[str] = (),
    writes: bool = False,
) -> Responses:
    """The problems of one route by their codes, for its `responses`."""
    not_found = [*missing, NOT_FOUND] if missing else []
    own = {
        403: forbidden,
        404: not_found,
        409: conflicts,
        410: gone,
        422: invalid,
        503: unavailable,
    }
    codes: defaultdict[int, list[str]] = defaultdict(list)
    for part in (own, ANY_CODES, WRITE_CODES if writes else READ_CODES):
        for status, named in part.items():
            codes[status] += named
    return {
        status: describe_status(status, codes[status]) for status in sorted(codes) if codes[status]
    }


def describe_status(status: int, codes: Iterable[str]) -> Json:
    """One status of a route, with an example for each code."""
    examples = {
        code: {
            "value": create_problem(status, code, "the reason, for people").model_dump(
                exclude_none=True
            )
        }
        for code in codes
    }
    own = {"properties": {"status": {"const": status}, "code": {"enum": list(examples)}}}
    headers = {"headers": PROBLEM_HEADERS[status]} if status in PROBLEM_HEADERS else {}
    return headers | {
        "description": f"{HTTPStatus(status).phrase}: {', '.join(examples)}",
        "content": {PROBLEM: {"schema": {"allOf": [PROBLEM_REFERENCE, own]}, "examples": examples}},
    }


def create_document(app: FastAPI, routers: Sequence[APIRouter]) -> Json:
    """The OpenAPI document, created once."""
    if app.openapi_schema is None:
        made = get_openapi(
            title=app.title,
            version=app.version,
            description=ABOUT,
            routes=app.routes,
            servers=[{"url": "/", "description": "The service that serves this document."}],
        )
        made["components"]["schemas"]["Problem"] = Problem.model_json_schema(mode="serialization")
        for route in find_routes(routers):
            for method in get_methods(route):
                operation = made["paths"][route.path_format][method.lower()]
                complete(operation, route)
                is_change = method in CHANGES
                headers = HEADERS_OF_CHANGES if is_change else HEADERS_OF_READS
                operation.setdefault("parameters", []).extend(headers)
                if not is_change:
                    operation["responses"]["304"] = NOT_MODIFIED
        app.openapi_schema = made
    return app.openapi_schema


def find_routes(routers: Iterable[APIRouter]) -> Iterator[APIRoute]:
    for router in routers:
        yield from (route for route in router.routes if isinstance(route, APIRoute))


def get_methods(route: APIRoute) -> Set[str]:
    return route.methods or set()


def complete(operation: Json, route: APIRoute) -> None:
    """Add what FastAPI does not document of an operation."""
    scope = route.dependant.dependencies[0].call
    assert isinstance(scope, RequireScope)
    operation["operationId"] = route.name
    allows = load_declarations().scopes[scope.scope].allows
    operation["description"] += f"\n\nScope: `{scope.scope}` ({allows})."
    operation["security"] = [{scope.scheme_name: [scope.scope]}]
    for parameter in operation.get("parameters", []):
        parameter["schema"] = remove_null(parameter["schema"])
    for content in operation["responses"].get("200", {}).get("content", {}).values():
        content.pop("itemSchema", None)  # of OpenAPI 3.2, for streams; this is 3.1


def remove_null(schema: Json) -> Json:
    """The schema without null: a parameter can be omitted, but never be null."""
    choices: list[Json] = [each for each in schema.get("anyOf", []) if each != {"type": "null"}]
    if len(choices) != 1:
        return schema
    return {name: value for name, value in schema.items() if name != "anyOf"} | choices[0]
