"""HTTP in and out: requests become commands, states become responses."""

from typing import Annotated

from fastapi import APIRouter, Depends, FastAPI, Query, Request, Response

from shared.eventsourcing import event_log
from shared.eventsourcing.errors import NotFound
from shared.eventsourcing.event_log import EventPage
from shared.eventsourcing.handler import Outcome, load
from shared.messaging.messages import StoredResponse
from shared.runtime import metrics
from shared.runtime.identifiers import new_id
from shared.web import http
from shared.web.auth import NOT_YOURS, Caller, RequestAuthenticator, require_scope
from shared.web.field_types import DIGITS, Id, Version
from shared.web.http import to_http_response, to_response
from shared.web.openapi import ETAG, LOCATION, REPLAYED, refusals, success
from shared.web.write_requests import WriteRequestDep
from things_svc import thing_digest, thing_list
from things_svc.bootstrap import Resources
from things_svc.commands import AddThing, ApproveThing, RenameThing
from things_svc.schemas import (
    AddThingRequest,
    RenameThingRequest,
    ThingDigestResponse,
    ThingPage,
    ThingResponse,
    to_thing_response,
)
from things_svc.thing import SAME_NAME, THING, UNKNOWN_THING, Thing, require_added

PAGE_MAX = 200

RENAMES = metrics.Counter("hometown.things.renames", "{rename}", "Things that were renamed")


async def get_resources(request: Request) -> Resources:
    resources: Resources = request.app.state.resources
    return resources


ResourcesDep = Annotated[Resources, Depends(get_resources)]

ThingsReader = Annotated[Caller, require_scope("things:read")]
ThingsWriter = Annotated[Caller, require_scope("things:write")]

router = APIRouter(tags=["things"])


@router.post(
    "/v1/things",
    status_code=201,
    response_model=ThingResponse,
    responses=success(201, ETAG, LOCATION, REPLAYED) | refusals(writes=True),
)
async def add_thing(
    caller: ThingsWriter,
    body: AddThingRequest,
    write_request: WriteRequestDep,
    resources: ResourcesDep,
) -> Response:
    """Add a thing."""
    thing_id = new_id()
    command = AddThing(thing_id=thing_id, name=body.name)

    def make_response(outcome: Outcome[Thing]) -> StoredResponse:
        location = f"/v1/things/{thing_id}"
        body = to_thing_response(require_added(outcome.state))
        return to_response(body, version=outcome.version, status=201, location=location)

    return await write_request.handle(
        resources.things, THING, thing_id, command, make_response, is_new=True
    )


@router.get(
    "/v1/things/{thing_id}",
    response_model=ThingResponse,
    responses=success(200, ETAG) | refusals(missing=[UNKNOWN_THING]),
)
async def get_thing(caller: ThingsReader, thing_id: Id, resources: ResourcesDep) -> Response:
    """A thing as it is now."""
    outcome = await load(resources.things, THING, thing_id)
    thing = require_added(outcome.state)
    return to_http_response(to_response(to_thing_response(thing), version=outcome.version))


@router.get("/v1/things", responses=refusals())
async def list_things(
    caller: ThingsReader,
    resources: ResourcesDep,
    after: Id | None = None,
    limit: Annotated[int, Query(ge=1, le=PAGE_MAX), DIGITS] = 50,
) -> ThingPage:
    """Things by id, as of a moment ago."""
    listed = await thing_list.list_things(resources.pool, after=after, limit=limit)
    things = [ThingResponse(thing_id=each.thing_id, name=each.name) for each in listed]
    return ThingPage(things=things, next=things[-1].thing_id if len(things) == limit else None)


@router.post(
    "/v1/things/{thing_id}/renames",
    response_model=ThingResponse,
    responses=success(200, ETAG, REPLAYED)
    | refusals(missing=[UNKNOWN_THING], conflicts=[SAME_NAME], writes=True),
)
async def rename_thing(
    caller: ThingsWriter,
    thing_id: Id,
    body: RenameThingRequest,
    write_request: WriteRequestDep,
    resources: ResourcesDep,
) -> Response:
    """Rename a thing."""
    command = RenameThing(name=body.name)
    response = await write_request.handle(
        resources.things, THING, thing_id, command, make_changed_response
    )
    RENAMES.add(1)
    return response


@router.post(
    "/v1/things/{thing_id}/approve",
    response_model=ThingResponse,
    responses=success(200, ETAG, REPLAYED)
    | refusals(forbidden=[NOT_YOURS], missing=[UNKNOWN_THING], writes=True),
)
async def approve_thing(
    caller: ThingsWriter, thing_id: Id, write_request: WriteRequestDep, resources: ResourcesDep
) -> Response:
    """Approve a thing."""
    caller.demand_all()
    return await write_request.handle(
        resources.things, THING, thing_id, ApproveThing(), make_changed_response
    )


@router.get(
    "/v1/things/{thing_id}/digest",
    responses=refusals(forbidden=[NOT_YOURS], missing=(UNKNOWN_THING,)),
)
async def get_thing_digest(
    caller: ThingsReader, thing_id: Id, resources: ResourcesDep
) -> ThingDigestResponse:
    """The last event of a thing, as of a moment ago."""
    caller.demand_all()
    found = await thing_digest.find(resources.pool, thing_id)
    if found is None:
        raise NotFound(UNKNOWN_THING, "there is no such thing")
    return ThingDigestResponse(type=found.type, at=found.at, version=found.version)


@router.get("/v1/things/{thing_id}/events", responses=refusals(missing=[UNKNOWN_THING]))
async def list_thing_events(
    caller: ThingsReader,
    thing_id: Id,
    resources: ResourcesDep,
    after: Version = 0,
    limit: Annotated[int, Query(ge=1, le=PAGE_MAX), DIGITS] = 50,
) -> EventPage:
    """The history of a thing as it was recorded, oldest first."""
    return await event_log.read_page(
        resources.pool, thing_id, after=after, limit=limit, unknown=UNKNOWN_THING
    )


def make_changed_response(outcome: Outcome[Thing]) -> StoredResponse:
    return to_response(to_thing_response(require_added(outcome.state)), version=outcome.version)


def create_app(resources: Resources, authenticator: RequestAuthenticator) -> FastAPI:
    """The HTTP application over opened resources."""
    return http.create_app(
        "things-svc",
        [router],
        pool=resources.pool,
        resources=resources,
        authenticator=authenticator,
    )
