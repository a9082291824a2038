"""HTTP routes of users: requests become commands, states become responses."""

from decimal import Decimal
from typing import Annotated

from fastapi import APIRouter, Depends, FastAPI, Query, Request, Response

from shared.eventsourcing import event_log
from shared.eventsourcing.event_log import EventPage
from shared.eventsourcing.handler import Outcome, load
from shared.messaging.messages import StoredResponse
from shared.runtime.identifiers import new_id
from shared.web import http
from shared.web.auth import NOT_YOURS, Caller, RequestAuthenticator, require_scope
from shared.web.field_types import DIGITS, Id, PlaceName, Version, get_current_instant
from shared.web.http import no_content, to_http_response, to_response
from shared.web.openapi import ETAG, LOCATION, NOT_FOUND, REPLAYED, refusals, success
from shared.web.problems import HttpProblem
from shared.web.write_requests import WriteRequestDep
from users_svc import confirmed_orders, order_credit, user_profiles
from users_svc.bootstrap import Resources
from users_svc.commands import ChangeCreditLimit, DeleteUser, MoveUser, RegisterUser
from users_svc.order_credit import OrderCreditResponse
from users_svc.personal_data import PersonalData, Vault
from users_svc.schemas import (
    ChangeCreditLimitRequest,
    MoveUserRequest,
    RegisterUserRequest,
    UserPage,
    UserProfileResponse,
    UserResponse,
    to_user_response,
)
from users_svc.user import (
    ALREADY_REGISTERED,
    HAS_PENDING_ORDERS,
    LIMIT_BELOW_RESERVED,
    SAME_ADDRESS,
    TOO_MANY_MOVES,
    UNKNOWN_USER,
    USER,
    USER_DELETED,
    User,
    require_active,
)

PAGE_MAX = 200
OWN_CREDIT_LIMIT_MAX = Decimal("10000.00")
CREDIT_LIMIT_TOO_HIGH = "credit-limit-too-high"


async def get_resources(request: Request) -> Resources:
    resources: Resources = request.app.state.resources
    return resources


async def get_vault(request: Request) -> Vault:
    vault: Vault = request.app.state.vault
    return vault


ResourcesDep = Annotated[Resources, Depends(get_resources)]
VaultDep = Annotated[Vault, Depends(get_vault)]

UsersReader = Annotated[Caller, require_scope("users:read")]
UsersWriter = Annotated[Caller, require_scope("users:write")]

router = APIRouter(tags=["users"])


@router.post(
    "/v1/users",
    status_code=201,
    response_model=UserResponse,
    responses=success(201, ETAG, LOCATION, REPLAYED)
    | refusals(
        forbidden=[NOT_YOURS, CREDIT_LIMIT_TOO_HIGH], conflicts=[ALREADY_REGISTERED], writes=True
    ),
)
async def register_user(
    caller: UsersWriter,
    body: RegisterUserRequest,
    write_request: WriteRequestDep,
    resources: ResourcesDep,
    vault: VaultDep,
) -> Response:
    """Register a user. Their address holds from `effective_at`, by default from now on.

    A caller that is limited to their own data registers themselves: the user's id is the subject
    of the token.
    """
    if caller.is_limited and body.credit_limit > OWN_CREDIT_LIMIT_MAX:
        detail = f"users who register themselves get at most {OWN_CREDIT_LIMIT_MAX}"
        raise HttpProblem(403, CREDIT_LIMIT_TOO_HIGH, detail)
    user_id = caller.user_id if caller.is_limited else new_id()
    person = PersonalData(name=body.name, birth_year=body.birth_year)
    command = RegisterUser(
        user_id=user_id,
        personal_data=await vault.seal(user_id, person),
        address=body.address,
        gender=body.gender,
        credit_limit=body.credit_limit,
        effective_at=body.effective_at or get_current_instant(),
    )

    def make_response(outcome: Outcome[User]) -> StoredResponse:
        location = f"/v1/users/{user_id}"
        body = to_user_response(require_active(outcome.state))
        return to_response(body, version=outcome.version, status=201, location=location)

    return await write_request.handle(resources.users, USER, user_id, command, make_response)


@router.get(
    "/v1/users/{user_id}",
    response_model=UserProfileResponse,
    responses=success(200, ETAG)
    | refusals(forbidden=[NOT_YOURS], missing=[UNKNOWN_USER], gone=[USER_DELETED]),
)
async def get_user(
    caller: UsersReader, user_id: Id, resources: ResourcesDep, vault: VaultDep
) -> Response:
    """A user, with the reserved and the available credit of now."""
    caller.demand_own(user_id)
    outcome = await load(resources.users, USER, user_id)
    user = require_active(outcome.state)
    person = await vault.open(user_id, user.personal_data)
    body = UserProfileResponse(
        **to_user_response(user).model_dump(),
        name=person.name if person else None,
        birth_year=person.birth_year if person else None,
    )
    return to_http_response(to_response(body, version=outcome.version))


@router.get("/v1/users", responses=refusals())
async def list_users(
    caller: UsersReader,
    resources: ResourcesDep,
    address: Annotated[PlaceName | None, Query()] = None,
    after: Id | None = None,
    limit: Annotated[int, Query(ge=1, le=PAGE_MAX), DIGITS] = 50,
) -> UserPage:
    """Users by id, with their credit; eventually consistent."""
    caller.demand_all()
    profiles = await user_profiles.list_users(
        resources.pool, address=address, after=after, limit=limit
    )
    users = [
        UserResponse(
            user_id=each.user_id,
            address=each.address,
            gender=each.gender,
            credit_limit=each.credit_limit,
            reserved_credit=each.reserved_credit,
            available_credit=each.credit_limit - each.reserved_credit,
        )
        for each in profiles
    ]
    return UserPage(users=users, next=users[-1].user_id if len(users) == limit else None)


@router.post(
    "/v1/users/{user_id}/moves",
    response_model=UserResponse,
    responses=success(200, ETAG, REPLAYED)
    | refusals(
        forbidden=[NOT_YOURS],
        missing=[UNKNOWN_USER],
        gone=[USER_DELETED],
        conflicts=[SAME_ADDRESS, TOO_MANY_MOVES],
        writes=True,
    ),
)
async def move_user(
    caller: UsersWriter,
    user_id: Id,
    body: MoveUserRequest,
    write_request: WriteRequestDep,
    resources: ResourcesDep,
) -> Response:
    """Move a user from `effective_at` on, which can be in the past."""
    caller.demand_own(user_id)
    command = MoveUser(
        address=body.address, effective_at=body.effective_at or get_current_instant()
    )
    return await write_request.handle(
        resources.users, USER, user_id, command, make_changed_response
    )


@router.put(
    "/v1/users/{user_id}/credit-limit",
    response_model=UserResponse,
    responses=success(200, ETAG, REPLAYED)
    | refusals(
        missing=[UNKNOWN_USER], gone=[USER_DELETED], conflicts=[LIMIT_BELOW_RESERVED], writes=True
    ),
)
async def change_credit_limit(
    caller: UsersWriter,
    user_id: Id,
    body: ChangeCreditLimitRequest,
    write_request: WriteRequestDep,
    resources: ResourcesDep,
) -> Response:
    """Change the limit of a user's open and confirmed orders. Users cannot change their own."""
    caller.demand_all()
    command = ChangeCreditLimit(credit_limit=body.credit_limit)
    return await write_request.handle(
        resources.users, USER, user_id, command, make_changed_response
    )


@router.delete(
    "/v1/users/{user_id}",
    status_code=204,
    responses=success(204, ETAG, REPLAYED)
    | refusals(
        forbidden=[NOT_YOURS],
        missing=[UNKNOWN_USER],
        gone=[USER_DELETED],
        conflicts=[HAS_PENDING_ORDERS],
        writes=True,
    ),
)
async def delete_user(
    caller: UsersWriter, user_id: Id, write_request: WriteRequestDep, resources: ResourcesDep
) -> Response:
    """Delete a user and destroy the key to their name and birth year, permanently.

    Confirmed orders stay counted.
    """
    caller.demand_own(user_id)
    command = DeleteUser(
        confirmed_orders=await confirmed_orders.list_by_user(resources.pool, user_id),
        effective_at=get_current_instant(),
    )

    def make_response(outcome: Outcome[User]) -> StoredResponse:
        return no_content(outcome.version)

    return await write_request.handle(resources.users, USER, user_id, command, make_response)


@router.get(
    "/v1/users/{user_id}/events", responses=refusals(forbidden=[NOT_YOURS], missing=[UNKNOWN_USER])
)
async def list_user_events(
    caller: UsersReader,
    user_id: Id,
    resources: ResourcesDep,
    vault: VaultDep,
    after: Version = 0,
    limit: Annotated[int, Query(ge=1, le=PAGE_MAX), DIGITS] = 50,
) -> EventPage:
    """The events of a user, oldest first; without name and birth year if the user is deleted."""
    caller.demand_own(user_id)
    page = await event_log.read_page(
        resources.pool, user_id, after=after, limit=limit, unknown=UNKNOWN_USER
    )
    for event in page.events:
        if sealed := event.data.pop("personal_data", None):
            person = await vault.open(user_id, sealed)
            event.data["name"] = person.name if person else None
            event.data["birth_year"] = person.birth_year if person else None
    return page


@router.get(
    "/v1/users/{user_id}/credits/{order_id}",
    responses=refusals(forbidden=[NOT_YOURS], missing=[NOT_FOUND]),
)
async def get_order_credit(
    caller: UsersReader, user_id: Id, order_id: Id, resources: ResourcesDep
) -> OrderCreditResponse:
    """The decisions on the credit of one order, and whether its messages are parked."""
    caller.demand_own(user_id)
    return await order_credit.read(resources.pool, user_id, order_id)


def make_changed_response(outcome: Outcome[User]) -> StoredResponse:
    return to_response(to_user_response(require_active(outcome.state)), version=outcome.version)


def create_app(resources: Resources, vault: Vault, authenticator: RequestAuthenticator) -> FastAPI:
    """The HTTP application over opened resources."""
    app = http.create_app(
        "users-svc",
        [router],
        pool=resources.pool,
        resources=resources,
        authenticator=authenticator,
        fingerprint_key=vault.fingerprint_key,
    )
    app.state.vault = vault
    return app
