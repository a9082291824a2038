"""The HTTP operations, from the OpenAPI documents that the APIs serve: a page for each service."""

import pkgutil
from collections.abc import Iterator, Mapping, Sequence
from importlib import import_module
from typing import Any

from fastapi import APIRouter, FastAPI

from scripts.documentation.reference.tables import (
    Schema,
    as_json,
    code,
    describe_type,
    field_table,
    sections,
    table,
)
from shared.runtime.declarations import Service, load_declarations
from shared.web.openapi import create_document

API = "api"
"""A module of that name has the routes of a service, in `router`."""

METHODS = ("get", "post", "put", "patch", "delete")


def write() -> Mapping[str, str]:
    """A page for each service that has operations, by its name."""
    return {
        f"http-{service.folder}": write_page(service, routers)
        for service in load_declarations().services
        if (routers := find_routers(service.package))
    }


def find_routers(package: str) -> Sequence[APIRouter]:
    """Those of the modules `api` of a package and of its rooms."""
    path = import_module(package).__path__
    modules = [
        import_module(each.name)
        for each in pkgutil.walk_packages(path, f"{package}.")
        if each.name.endswith(f".{API}")
    ]
    return [each.router for each in modules if isinstance(getattr(each, "router", None), APIRouter)]


def read_document(title: str, routers: Sequence[APIRouter]) -> Schema:
    """The document of an API, without its resources."""
    app = FastAPI(title=title)
    for router in routers:
        app.router.routes.extend(router.routes)
    return create_document(app, routers)


def find_operations(document: Schema) -> Iterator[tuple[str, Schema]]:
    """Each operation, by its method and path."""
    for path, item in document["paths"].items():
        for method in METHODS:
            if method in item:
                yield f"{method.upper()} {path}", item[method]


def write_page(service: Service, routers: Sequence[APIRouter]) -> str:
    document = read_document(service.folder, routers)
    components = document["components"]["schemas"]
    return sections(
        f"# HTTP: {service.folder}",
        "The API serves this document itself: `/openapi.json`, and `/docs` to try it. Every process"
        " also serves `/health/live`, `/health/ready` and `/metrics`, without a token.",
        document["info"]["description"],
        *(
            sections(f"## {name}", *write_operation(operation, components))
            for name, operation in find_operations(document)
        ),
    )


def write_operation(operation: Schema, components: Schema) -> Iterator[str]:
    yield operation.get("description", "")
    if parameters := operation.get("parameters"):
        yield "**Parameters**"
        yield table(
            ("parameter", "in", "type", "required", "meaning"),
            (
                (
                    code(each["name"]),
                    each["in"],
                    describe_type(each["schema"], components),
                    "yes" if each.get("required") else "",
                    each.get("description", ""),
                )
                for each in parameters
            ),
        )
    if "requestBody" in operation:
        yield "**Request**"
        yield from write_bodies(operation["requestBody"], components)
    yield "**Responses**"
    yield table(
        ("status", "codes or meaning", "headers"),
        (
            (status, response["description"], ", ".join(map(code, response.get("headers", {}))))
            for status, response in operation["responses"].items()
        ),
    )
    for status, response in operation["responses"].items():
        if status.startswith("2"):
            yield from write_bodies(response, components)


def write_bodies(body: Schema, components: Schema) -> Iterator[str]:
    """The fields of a request or of a successful response, and an example."""
    for content in body.get("content", {}).values():
        schema = content.get("schema", {})
        yield field_table(schema, components)
        yield from map(as_json, find_examples(content, components)[:1])


def find_examples(content: Schema, components: Schema) -> Sequence[Any]:
    """Those of a body itself, or those of its schema."""
    if "examples" in content:
        return [each["value"] for each in content["examples"].values()]
    name = content.get("schema", {}).get("$ref", "").rpartition("/")[2]
    return list(components.get(name, {}).get("examples", ()))
