"""What an OpenAPI document must hold, whichever service it is of."""

import ast
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import jsonschema_rs
from openapi_spec_validator import OpenAPIV31SpecValidator

import shared

Json = dict[str, Any]

METHODS = frozenset({"get", "put", "post", "delete", "patch"})
WHERE_A_CODE_STANDS = {"HttpProblem": 1, "problem": 1, "Refused": 0, "NotFound": 0, "Gone": 0}
"""Which argument it is."""
OF_NO_OPERATION = frozenset({"internal-error", "not-ready"})
"""The document lists the first one in its introduction, and has no health requests."""


def flaws_of(document: Json) -> list[str]:
    """All that is wrong in a document, in words."""
    return [
        *(f"invalid: {error.message}" for error in OpenAPIV31SpecValidator(document).iter_errors()),
        *misfits(document),
        *without_example(document),
        *(f"schema {name}" for name in schemas(document) if name.endswith("ValidationError")),
    ]


def schemas(document: Json) -> Json:
    named: Json = document["components"]["schemas"]
    return named


def operations(document: Json) -> Iterator[tuple[str, Json]]:
    for path, item in document["paths"].items():
        for method in item.keys() & METHODS:
            yield f"{method.upper()} {path}", item[method]


def contents(operation: Json) -> Iterator[tuple[str, Json]]:
    """What a request may hold and each answer holds: (where, its schema and examples)."""
    bodies = {"request": operation.get("requestBody", {}), **operation["responses"]}
    for where, body in bodies.items():
        for content in body.get("content", {}).values():
            yield where, content


def examples_of(document: Json, content: Json) -> list[Any]:
    """Those of the body itself, or those of its schema."""
    if "examples" in content:
        return [example["value"] for example in content["examples"].values()]
    name = content["schema"].get("$ref", "").rpartition("/")[2]
    return list(schemas(document).get(name, {}).get("examples", []))


def without_example(document: Json) -> Iterator[str]:
    for name, operation in operations(document):
        for where, content in contents(operation):
            if not examples_of(document, content):
                yield f"{name} {where} has no example"


def misfits(document: Json) -> Iterator[str]:
    """Examples that their own schema does not allow."""
    for name, operation in operations(document):
        for where, content in contents(operation):
            whole = content["schema"] | {"components": document["components"]}
            validator = jsonschema_rs.Draft202012Validator(whole, validate_formats=True)
            for example in examples_of(document, content):
                for error in validator.iter_errors(example):
                    yield f"{name} {where}: {error.message}"


def codes_documented(document: Json) -> set[str]:
    return {
        example["code"]
        for _, operation in operations(document)
        for where, content in contents(operation)
        if where.startswith(("4", "5"))
        for example in examples_of(document, content)
    }


def codes_raised(package: Path) -> set[str]:
    """Every code with which the modules of a service, and those that all share, say no."""
    folders = (package, Path(shared.__file__).parent)
    modules = [ast.parse(path.read_text()) for each in folders for path in each.rglob("*.py")]
    constants = {name: value for module in modules for name, value in texts_in(module)}
    arguments = [each for module in modules for each in code_arguments(module)]
    named = {constants[each.id] for each in arguments if isinstance(each, ast.Name)}
    return named | {str(each.value) for each in arguments if isinstance(each, ast.Constant)}


def texts_in(module: ast.Module) -> Iterator[tuple[str, str]]:
    for statement in module.body:
        match statement:
            case ast.Assign(targets=[ast.Name(id=name)], value=ast.Constant(value=str(text))):
                yield name, text


def code_arguments(module: ast.Module) -> Iterator[ast.expr]:
    """The arguments in the place of a code; one named in small letters comes from the caller."""
    for node in ast.walk(module):
        match node:
            case ast.Call(func=ast.Name(id=called), args=arguments):
                place = WHERE_A_CODE_STANDS.get(called)
                if place is None or len(arguments) <= place:
                    continue
                code = arguments[place]
                if not isinstance(code, ast.Name) or code.id.isupper():
                    yield code
