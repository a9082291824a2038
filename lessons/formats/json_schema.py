"""JSON, which has the names of its fields in each record, with and without a schema."""

import json
from collections.abc import Mapping, Sequence
from functools import partial
from typing import Any

from jsonschema import Draft202012Validator

from lessons.formats.formats import Customer, Format, Refused

V1 = ("id", "name", "faxNumber")
V2 = ("id", "name", "email")
OPTIONAL = {"type": ["string", "null"]}


def make_schema(fields: Sequence[str], **more: object) -> Mapping[str, Any]:
    """Id and name are required; other fields are allowed, unless `more` forbids them."""
    return {
        "type": "object",
        "required": ["id", "name"],
        "properties": {
            "id": {"type": "integer"},
            "name": {"type": "string"},
            **{name: OPTIONAL for name in fields[2:]},
        },
        **more,
    }


def write(customer: Customer, fields: Sequence[str]) -> bytes:
    return json.dumps({name: customer.get(name) for name in fields}).encode()


def write_id_as_text(customer: Customer) -> bytes:
    return write({**customer, "id": str(customer["id"])}, V1)


def write_half(customer: Customer) -> bytes:
    return write(customer, V1)[:5]


def read(data: bytes, fields: Sequence[str], schema: Mapping[str, Any] | None) -> Customer:
    """The fields that this version knows. Raises Refused."""
    try:
        value = json.loads(data)
    except ValueError as error:
        raise Refused(str(error)) from error
    if schema is not None:
        for wrong in Draft202012Validator(schema).iter_errors(value):
            raise Refused(wrong.message)
    return {name: value.get(name) for name in fields}


JSON = Format(
    name="JSON",
    writers={
        "v1": partial(write, fields=V1),
        "v2, email for fax": partial(write, fields=V2),
        "id as text": write_id_as_text,
        "broken": write_half,
    },
    readers={
        "v1": partial(read, fields=V1, schema=make_schema(V1)),
        "v2, email for fax": partial(read, fields=V2, schema=make_schema(V2)),
        "v1, no other fields": partial(
            read, fields=V1, schema=make_schema(V1, additionalProperties=False)
        ),
        "v1, no schema": partial(read, fields=V1, schema=None),
    },
)
