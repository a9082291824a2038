"""What is in an OpenAPI document: the operations, and the schemas that they refer to."""

from collections.abc import Mapping, Sequence
from collections.abc import Set as AbstractSet
from http import HTTPStatus
from typing import Any, NamedTuple, TypeAlias

Schema = Mapping[str, Any]
"""A JSON Schema, or a part of one."""

NULL: Schema = {"type": "null"}

Refusal: TypeAlias = tuple[int, str]
"""A status, and the code of the problem."""


class Operation(NamedTuple):
    """An operation, as an OpenAPI document describes it."""

    method: str
    path: str
    described: Schema

    @property
    def name(self) -> str:
        words: str = self.described["operationId"].replace("_", " ")
        return f"{words[:1].upper()}{words[1:]}"

    @property
    def title(self) -> str:
        return f"{self.name}: {self.method} {self.path}"

    @property
    def parameters(self) -> Sequence[Schema]:
        parameters: Sequence[Schema] = self.described["parameters"]
        return parameters

    @property
    def required(self) -> Sequence[Schema]:
        """The parameters that a request must have."""
        return [each for each in self.parameters if each["required"]]

    @property
    def responses(self) -> Mapping[int, Schema]:
        responses = self.described["responses"]
        return {int(status): responses[status] for status in responses if status.isdigit()}

    @property
    def refusals(self) -> AbstractSet[Refusal]:
        return {
            (status, name)
            for status, response in self.responses.items()
            if status >= HTTPStatus.BAD_REQUEST
            for content in response.get("content", {}).values()
            for name in content.get("examples", ())
        }

    @property
    def scopes(self) -> AbstractSet[str]:
        return {
            scope
            for required in self.described["security"]
            for scopes in required.values()
            for scope in scopes
        }


def list_operations(document: Schema) -> Sequence[Operation]:
    return [
        Operation(method.upper(), path, described)
        for path, methods in document["paths"].items()
        for method, described in methods.items()
    ]


def list_examples(content: Schema, components: Schema) -> Sequence[Any]:
    """Return the examples of a request or a response of one kind."""
    of_content = [each["value"] for each in content.get("examples", {}).values()]
    return of_content or follow(content.get("schema", {}), components).get("examples", [])


def list_choices(schema: Schema) -> Sequence[Schema]:
    """Return the schemas of which a value has one, besides null."""
    choices = schema.get("anyOf") or schema.get("oneOf") or ()
    return [each for each in choices if each != NULL]


def follow(schema: Schema, components: Schema) -> Schema:
    """Return the schema to which a reference leads; of a choice between one and null, that one.

    What is said next to a reference or a choice remains.
    """
    rest = {key: schema[key] for key in schema.keys() - {"$ref", "anyOf", "oneOf"}}
    if "$ref" in schema:
        named = components[schema["$ref"].rpartition("/")[2]]
        return follow({**named, **rest}, components)
    choices = list_choices(schema)
    return follow({**choices[0], **rest}, components) if len(choices) == 1 else schema
