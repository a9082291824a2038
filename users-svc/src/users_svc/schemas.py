"""The JSON of requests and responses about users, with examples."""

from collections.abc import Sequence
from typing import Annotated, Any, Literal
from uuid import UUID

from pydantic import BaseModel, ConfigDict, Field

from shared.web.field_types import Amount, Integer, Label, Money, PastInstant, PlaceName
from users_svc.user import Registered

Gender = Literal["female", "male", "other"]

JACK: dict[str, Any] = {
    "name": "Jack",
    "address": "BJ",
    "gender": "male",
    "birth_year": 1993,
    "credit_limit": "10000.00",
    "effective_at": "2015-12-11T00:00:00Z",
}
JACK_NOW: dict[str, Any] = {
    "user_id": "01936f2a-7b00-7000-8000-000000000002",
    "address": "BJ",
    "gender": "male",
    "credit_limit": "10000.00",
    "reserved_credit": "5388.88",
    "available_credit": "4611.12",
}


class RegisterUserRequest(BaseModel):
    model_config = ConfigDict(extra="forbid", json_schema_extra={"examples": [JACK]})

    name: Label
    address: PlaceName
    gender: Gender
    birth_year: Annotated[Integer, Field(ge=1900, le=2100)] | None = None
    credit_limit: Money
    effective_at: PastInstant | None = None


class MoveUserRequest(BaseModel):
    model_config = ConfigDict(
        extra="forbid",
        json_schema_extra={"examples": [{"address": "SH", "effective_at": "2016-11-11T00:30:00Z"}]},
    )

    address: PlaceName
    effective_at: PastInstant | None = None


class ChangeCreditLimitRequest(BaseModel):
    model_config = ConfigDict(
        extra="forbid", json_schema_extra={"examples": [{"credit_limit": "20000.00"}]}
    )

    credit_limit: Money


class UserResponse(BaseModel):
    """Without personal data: the responses to write requests are stored, to be sent again."""

    model_config = ConfigDict(json_schema_extra={"examples": [JACK_NOW]})

    user_id: UUID
    address: str
    gender: Gender
    credit_limit: Amount
    reserved_credit: Amount
    available_credit: Amount


class UserProfileResponse(UserResponse):
    """`name` and `birth_year` are null if their key was deleted."""

    model_config = ConfigDict(
        json_schema_extra={"examples": [JACK_NOW | {"name": "Jack", "birth_year": 1993}]}
    )

    name: str | None
    birth_year: int | None


class UserPage(BaseModel):
    """`next` is the `after` of the next page, null on the last one."""

    model_config = ConfigDict(
        json_schema_extra={"examples": [{"users": [JACK_NOW], "next": JACK_NOW["user_id"]}]}
    )

    users: Sequence[UserResponse]
    next: UUID | None


def to_user_response(user: Registered) -> UserResponse:
    return UserResponse(
        user_id=user.user_id,
        address=user.address,
        gender=user.gender,
        credit_limit=user.credit_limit,
        reserved_credit=user.reserved_credit,
        available_credit=user.available_credit,
    )
