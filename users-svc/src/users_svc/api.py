"""HTTP in and out: requests become commands, states become answers."""

from collections.abc import Sequence
from datetime import UTC, datetime
from decimal import Decimal
from typing import Annotated, Literal
from uuid import UUID

from fastapi import APIRouter, Depends, FastAPI, Query, Request, Response
from pydantic import BaseModel, ConfigDict, Field

from shared import http
from shared.errors import NotFound
from shared.forms import Label, Money, PastInstant, Place
from shared.handler import Outcome, load
from shared.http import AnyCall, Problem, answer_of, response
from shared.identifiers import new_id
from shared.messages import Answer
from users_svc import user_profiles
from users_svc.bootstrap import Resources
from users_svc.commands import MoveUser, RegisterUser
from users_svc.user import UNKNOWN_USER, USER, User

PAGE_MAX = 200


Gender = Literal["female", "male", "other"]


class RegisterUserRequest(BaseModel):
    model_config = ConfigDict(extra="forbid")

    name: Label
    address: Place
    gender: Gender
    birth_year: Annotated[int, Field(strict=True, ge=1900, le=2100)] | None = None
    credit_limit: Money
    effective_at: PastInstant | None = None


class MoveUserRequest(BaseModel):
    model_config = ConfigDict(extra="forbid")

    address: Place
    effective_at: PastInstant | None = None


class UserResponse(BaseModel):
    user_id: UUID
    name: str
    address: str
    gender: str
    birth_year: int | None
    credit_limit: Decimal
    reserved_credit: Decimal
    available_credit: Decimal


class UserProfileResponse(BaseModel):
    user_id: UUID
    address: str
    gender: str


class UserPage(BaseModel):
    users: Sequence[UserProfileResponse]
    next: UUID | None


def resources_of(request: Request) -> Resources:
    resources: Resources = request.app.state.resources
    return resources


Service = Annotated[Resources, Depends(resources_of)]

router = APIRouter(responses={422: {"model": Problem}})


@router.post("/v1/users", status_code=201, response_model=UserResponse)
async def register_user(body: RegisterUserRequest, call: AnyCall, service: Service) -> Response:
    """Register a user. Their address holds from `effective_at`, by default from now on."""
    user_id = new_id()
    command = RegisterUser(
        user_id=user_id,
        name=body.name,
        address=body.address,
        gender=body.gender,
        birth_year=body.birth_year,
        credit_limit=body.credit_limit,
        effective_at=body.effective_at or datetime.now(UTC),
    )

    def registered(outcome: Outcome[User]) -> Answer:
        location = f"/v1/users/{user_id}"
        return answer_of(
            user_response(outcome.state), version=outcome.version, status=201, location=location
        )

    return await call.handle(service.users, USER, user_id, command, registered)


@router.get("/v1/users/{user_id}", response_model=UserResponse, responses={404: {"model": Problem}})
async def get_user(user_id: UUID, service: Service) -> Response:
    """A user with the credit that is reserved and available now."""
    outcome = await load(service.users, USER, user_id)
    if outcome.state.profile is None:
        raise NotFound(UNKNOWN_USER, "there is no such user")
    return response(answer_of(user_response(outcome.state), version=outcome.version))


@router.get("/v1/users")
async def list_users(
    service: Service,
    address: Annotated[Place | None, Query()] = None,
    after: UUID | None = None,
    limit: Annotated[int, Query(ge=1, le=PAGE_MAX)] = 50,
) -> UserPage:
    """Users by id; a page ends with the cursor for the next one."""
    profiles = await user_profiles.list_users(
        service.pool, address=address, after=after, limit=limit
    )
    users = [
        UserProfileResponse(user_id=each.user_id, address=each.address, gender=each.gender)
        for each in profiles
    ]
    return UserPage(users=users, next=users[-1].user_id if len(users) == limit else None)


@router.post(
    "/v1/users/{user_id}/moves",
    response_model=UserResponse,
    responses={404: {"model": Problem}, 409: {"model": Problem}, 412: {"model": Problem}},
)
async def move_user(
    user_id: UUID, body: MoveUserRequest, call: AnyCall, service: Service
) -> Response:
    """Move a user. A move may be announced late: it holds from `effective_at` on."""
    command = MoveUser(address=body.address, effective_at=body.effective_at or datetime.now(UTC))

    def moved(outcome: Outcome[User]) -> Answer:
        return answer_of(user_response(outcome.state), version=outcome.version)

    return await call.handle(service.users, USER, user_id, command, moved)


def user_response(user: User) -> UserResponse:
    assert user.profile is not None
    assert user.address is not None
    return UserResponse(
        user_id=user.profile.user_id,
        name=user.profile.name,
        address=user.address,
        gender=user.profile.gender,
        birth_year=user.profile.birth_year,
        credit_limit=user.profile.credit_limit,
        reserved_credit=user.reserved_credit,
        available_credit=user.available_credit,
    )


def create_app(resources: Resources) -> FastAPI:
    """The HTTP application over opened resources."""
    return http.create_app("users-svc", [router], pool=resources.pool, resources=resources)
