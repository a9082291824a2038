"""Avro: a record has no names, and is read with the schema that it was written with.

Each record begins with a zero and the number of its schema, as with a registry of schemas.
"""

import io
import struct
from collections.abc import Callable, Mapping
from functools import partial
from typing import Any

from fastavro import schemaless_reader, schemaless_writer
from fastavro.read import SchemaResolutionError
from fastavro.schema import SchemaParseException, parse_schema

from lessons.formats.formats import Customer, Format, Refused

HEADER = struct.Struct(">bi")
MAGIC = 0

Schema = Mapping[str, Any]


def make_schema(*more: Mapping[str, Any], number: str = "int") -> Schema:
    fields = [{"name": "id", "type": number}, {"name": "name", "type": "string"}, *more]
    return {"type": "record", "name": "Customer", "fields": fields}


def optional(name: str) -> Mapping[str, Any]:
    return {"name": name, "type": ["null", "string"], "default": None}


V1 = make_schema(optional("faxNumber"))
V2 = make_schema(optional("email"))
"""TV-11: one optional field is replaced by another one."""
V3 = make_schema(number="long")
STRICT = make_schema({"name": "email", "type": "string"})
"""A new field without a default."""
NULL_AS_TEXT = make_schema({"name": "email", "type": ["null", "string"], "default": "null"})
"""With quotes, the default is a text of four letters. It is of the second type of its field, which
has been enough since Avro 1.12."""
NULL_OF_A_TEXT = make_schema({"name": "email", "type": "string", "default": None})

REGISTRY: Mapping[int, Schema] = {1: V1, 2: V2, 3: V3}
"""The schemas that are written, by their number."""


def write(customer: Customer, number: int) -> bytes:
    out = io.BytesIO()
    out.write(HEADER.pack(MAGIC, number))
    schema = REGISTRY[number]
    record = {field["name"]: customer.get(field["name"]) for field in schema["fields"]}
    schemaless_writer(out, parse_schema(dict(schema)), record)
    return out.getvalue()


def write_half(customer: Customer) -> bytes:
    return write(customer, 1)[: HEADER.size + 2]


def read(data: bytes, schema: Schema) -> Customer:
    """With the writer's schema, which is resolved to the reader's. Raises Refused."""
    _, number = HEADER.unpack_from(data)
    return decode(data, REGISTRY[number], schema)


def read_as_own(data: bytes, schema: Schema) -> Customer:
    """As if the writer had had the schema of the reader. Raises Refused."""
    return decode(data, schema, None)


def decode(data: bytes, written: Schema, wanted: Schema | None) -> Customer:
    body = io.BytesIO(data[HEADER.size :])
    try:
        found = schemaless_reader(
            body,
            parse_schema(dict(written)),
            None if wanted is None else parse_schema(dict(wanted)),
        )
    except (SchemaResolutionError, SchemaParseException, EOFError, ValueError) as error:
        raise Refused(str(error)) from error
    assert isinstance(found, Mapping)
    return found


def reader(schema: Schema) -> Callable[[bytes], Customer]:
    return partial(read, schema=schema)


AVRO = Format(
    name="Avro",
    writers={
        "v1": partial(write, number=1),
        "v2, email for fax": partial(write, number=2),
        "v3, with a wider id": partial(write, number=3),
        "broken": write_half,
    },
    readers={
        "v1": reader(V1),
        "v2, email for fax": reader(V2),
        "v3, with a wider id": reader(V3),
        "email without default": reader(STRICT),
        'default "null"': reader(NULL_AS_TEXT),
        "default null, not nullable": reader(NULL_OF_A_TEXT),
        "v1, own schema only": partial(read_as_own, schema=V1),
    },
)
