"""The HTTP application of every service: its middleware, its error handlers, its responses."""

from collections.abc import Mapping, Sequence, Set
from functools import partial
from http import HTTPStatus
from typing import TypeVar

import asyncpg
from fastapi import APIRouter, FastAPI, Request, Response
from fastapi.exceptions import RequestValidationError
from fastapi.routing import APIRoute
from fastapi_offline import FastAPIOffline
from pydantic import BaseModel
from starlette.exceptions import HTTPException
from starlette.routing import BaseRoute
from starlette.types import ASGIApp, Receive, Send
from starlette.types import Scope as AsgiScope

from shared.eventsourcing.errors import (
    Gone,
    NotFound,
    Refused,
    UnexpectedVersion,
    VersionConflict,
)
from shared.messaging.messages import StoredResponse
from shared.runtime import postgres
from shared.runtime.declarations import load_declarations
from shared.web.auth import CALLER, RequestAuthenticator, RequireScope
from shared.web.content import JsonContent
from shared.web.health import Check, database_check, health_routes
from shared.web.idempotency import Replay
from shared.web.limits import BODY_TOO_LARGE, AnswerTime, BodySize
from shared.web.openapi import create_document, find_routes, get_methods
from shared.web.outages import unavailable
from shared.web.preconditions import VERSION_CONFLICT
from shared.web.problems import HttpProblem, problem, to_problem_response
from shared.web.reads import Reads
from shared.web.request_metrics import RequestMetrics
from shared.web.request_spans import RequestSpans

C = TypeVar("C")
S = TypeVar("S")
E = TypeVar("E")

PAGE_FILES = "/static-offline-docs"
OPEN_PATHS = frozenset(
    {"/health/live", "/health/ready", "/metrics", "/docs", "/docs/oauth2-redirect", "/openapi.json"}
    | {f"{PAGE_FILES}/{name}" for name in ("swagger-ui-bundle.js", "swagger-ui.css", "favicon.png")}
)
"""Paths that need no token, in every service."""

CODES = {413: BODY_TOO_LARGE}
"""By status, for errors of HTTP itself; the code of any other status is its standard phrase."""

REPLAYED = "Idempotency-Replayed"


class OpenRoute(Exception):
    """A route that any caller could use."""


class UndeclaredScope(Exception):
    """A route needs a scope that no service declares, so no token could have it."""


def create_app(
    title: str,
    routers: Sequence[APIRouter],
    *,
    resources: object,
    authenticator: RequestAuthenticator,
    pool: asyncpg.Pool | None = None,
    fingerprint_key: bytes | None = None,
    checks: Mapping[str, Check] | None = None,
    open_routes: Sequence[BaseRoute] = (),
    open_paths: Set[str] = frozenset(),
) -> FastAPI:
    """The same application in every service: its routes, health, metrics, traces, problem details.

    `resources` are what the service's own routes need, as `app.state.resources`. With a `pool`,
    write requests can have an idempotency key, and the service is ready only while its database
    responds, besides all `checks`. A service whose requests hold personal data has a
    `fingerprint_key`: without it, stored fingerprints could be compared with guesses. `open_routes`
    are routes without a scope, and `open_paths` the paths that need no token.

    Raises:
        OpenRoute: the first dependency of a route is not the scope that it needs.
        UndeclaredScope: no `service.toml` has that scope.
    """
    app = FastAPIOffline(
        title=title,
        redoc_url=None,
        static_url=PAGE_FILES,
        redirect_slashes=False,
        telemetry={"tracing": False, "metrics": False, "logs": False},
    )
    app.openapi = partial(create_document, app, routers)  # type: ignore[method-assign]
    app.state.pool = pool
    app.state.fingerprint_key = fingerprint_key
    app.state.resources = resources
    for router in routers:
        demand_scopes(router)
        app.router.routes.extend(router.routes)  # included ones would be matched twice
    app.router.routes.extend(open_routes)
    database = {} if pool is None else {"database": database_check(pool)}
    app.router.routes.extend(health_routes({**database, **(checks or {})}, app.state))
    answer_problems(app, routers)
    app.add_middleware(JsonContent)
    app.add_middleware(Reads)
    app.add_middleware(BodySize)
    app.add_middleware(AnswerTime)
    app.add_middleware(
        Authentication, authenticator=authenticator, open_paths=OPEN_PATHS | open_paths
    )
    app.add_middleware(RequestSpans)
    app.add_middleware(RequestMetrics)
    return app


def demand_scopes(router: APIRouter) -> None:
    """Check that the first dependency of each route is a declared scope.

    Raises:
        OpenRoute, UndeclaredScope: with the path of the route.
    """
    declared = load_declarations().scopes
    for route in router.routes:
        path = getattr(route, "path", route)
        first = route.dependant.dependencies[:1] if isinstance(route, APIRoute) else []
        required = first[0].call if first else None
        if not isinstance(required, RequireScope):
            raise OpenRoute(path)
        if required.scope not in declared:
            raise UndeclaredScope(f"{path} needs {required.scope}, which no service declares")


class Authentication:
    """Authenticates each request before its body is read; `get_caller` returns the caller."""

    def __init__(
        self, app: ASGIApp, authenticator: RequestAuthenticator, open_paths: Set[str]
    ) -> None:
        self.app = app
        self.authenticator = authenticator
        self.open_paths = open_paths

    async def __call__(self, scope: AsgiScope, receive: Receive, send: Send) -> None:
        if scope["type"] == "http" and scope["path"] not in self.open_paths:
            try:
                scope[CALLER] = await self.authenticator.authenticate(scope["headers"])
            except HttpProblem as error:
                return await to_problem_response(error)(scope, receive, send)
        return await self.app(scope, receive, send)


def answer_problems(app: FastAPI, routers: Sequence[APIRouter]) -> None:
    """Turn the errors of requests into problems. Any other error is a bug: 500, logged once."""

    @app.exception_handler(HttpProblem)
    async def http_problem(request: Request, error: HttpProblem) -> Response:
        return to_problem_response(error)

    @app.exception_handler(Refused)
    async def refused(request: Request, error: Refused) -> Response:
        return problem(409, error.code, error.reason)

    @app.exception_handler(NotFound)
    async def not_found(request: Request, error: NotFound) -> Response:
        return problem(404, error.code, error.reason)

    @app.exception_handler(Gone)
    async def gone(request: Request, error: Gone) -> Response:
        return problem(410, error.code, error.reason)

    @app.exception_handler(UnexpectedVersion)
    async def unexpected_version(request: Request, error: UnexpectedVersion) -> Response:
        return problem(412, VERSION_CONFLICT, f"the current version is {error.current_version}")

    @app.exception_handler(VersionConflict)
    async def version_conflict(request: Request, error: VersionConflict) -> Response:
        return problem(409, VERSION_CONFLICT, f"the current version is {error.current_version}")

    @app.exception_handler(Replay)
    async def replay(request: Request, error: Replay) -> Response:
        return to_http_response(error.answer, {REPLAYED: "true"})

    @app.exception_handler(RequestValidationError)
    async def invalid(request: Request, error: RequestValidationError) -> Response:
        errors = [
            {"field": ".".join(map(str, each["loc"])), "message": each["msg"]}
            for each in error.errors()
        ]
        return problem(
            422, "invalid-request", "the request does not match the documented schema", errors
        )

    @app.exception_handler(HTTPException)
    async def http_error(request: Request, error: HTTPException) -> Response:
        phrase = HTTPStatus(error.status_code).phrase.lower().replace(" ", "-")
        code = CODES.get(error.status_code, phrase)
        answer = problem(error.status_code, code, str(error.detail))
        answer.headers.update(error.headers or {})
        if error.status_code == HTTPStatus.METHOD_NOT_ALLOWED:
            answer.headers["Allow"] = ", ".join(find_methods(request.url.path, routers))
        return answer

    async def to_unavailable(request: Request, error: Exception) -> Response:
        return unavailable(error)

    for each in postgres.UNAVAILABLE:
        app.add_exception_handler(each, to_unavailable)

    @app.exception_handler(Exception)
    async def bug(request: Request, error: Exception) -> Response:
        return problem(500, "internal-error", "internal error; it was logged")


def find_methods(path: str, routers: Sequence[APIRouter]) -> Sequence[str]:
    """All methods of a path. FastAPI would list only those of the first route that matches."""
    routes = [route for route in find_routes(routers) if route.path_regex.match(path)]
    methods = {method for route in routes for method in get_methods(route)}
    return sorted(methods | {"HEAD"} if "GET" in methods else methods)


def etag(version: int) -> str:
    return f'"{version}"'


def to_http_response(
    stored: StoredResponse, more_headers: dict[str, str] | None = None
) -> Response:
    headers = {**stored.headers, **(more_headers or {})}
    form = "application/json" if stored.body else None
    return Response(stored.body, stored.status, headers, media_type=form)


def no_content(version: int) -> StoredResponse:
    """A response without a body, with the new version as entity tag."""
    return StoredResponse(status=204, headers={"ETag": etag(version)}, body=b"")


def to_response(
    body: BaseModel, *, version: int, status: int = 200, location: str | None = None
) -> StoredResponse:
    """A resource as a response with its entity tag."""
    headers = {"ETag": etag(version)}
    if location is not None:
        headers["Location"] = location
    return StoredResponse(status=status, headers=headers, body=body.model_dump_json().encode())
