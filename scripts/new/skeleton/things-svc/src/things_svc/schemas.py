"""The JSON schemas of things: requests and responses, with examples."""

from collections.abc import Sequence
from datetime import datetime
from typing import Any
from uuid import UUID

from pydantic import BaseModel, ConfigDict

from shared.web.field_types import Label
from things_svc.thing import Added

EXAMPLE: dict[str, Any] = {
    "thing_id": "01936f2a-7b00-7000-8000-000000000001",
    "name": "first",
}


class AddThingRequest(BaseModel):
    model_config = ConfigDict(extra="forbid", json_schema_extra={"examples": [{"name": "first"}]})

    name: Label


class RenameThingRequest(BaseModel):
    model_config = ConfigDict(extra="forbid", json_schema_extra={"examples": [{"name": "other"}]})

    name: Label


class ThingResponse(BaseModel):
    model_config = ConfigDict(json_schema_extra={"examples": [EXAMPLE]})

    thing_id: UUID
    name: str


class ThingPage(BaseModel):
    """`next` is the `after` of the next page, null on the last one."""

    model_config = ConfigDict(
        json_schema_extra={"examples": [{"things": [EXAMPLE], "next": EXAMPLE["thing_id"]}]}
    )

    things: Sequence[ThingResponse]
    next: UUID | None


class ThingDigestResponse(BaseModel):
    """`type` and `at` are those of the last event."""

    model_config = ConfigDict(
        json_schema_extra={
            "examples": [{"type": "thing-added", "at": "2016-11-11T00:00:00Z", "version": 1}]
        }
    )

    type: str
    at: datetime
    version: int


def to_thing_response(thing: Added) -> ThingResponse:
    return ThingResponse(thing_id=thing.thing_id, name=thing.name)
