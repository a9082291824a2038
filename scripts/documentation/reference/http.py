"""The pages of HTTP operations, from the OpenAPI documents that the APIs serve: one per service."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from collections.abc import Set as AbstractSet
from functools import cache
from http import HTTPStatus
from importlib import import_module

from fastapi import APIRouter, FastAPI

from scripts.changes import CHECKOUT
from scripts.documentation.markdown import as_json, code, codes, join_parts, table
from scripts.documentation.reference.json_schema import describe_type, write_fields
from scripts.openapi import Operation, Refusal, Schema, follow, list_examples, list_operations
from shared.runtime.declarations import Service, load_declarations
from shared.web.openapi import CHANGES, create_document

ROUTES = "api.py"
"""The name of modules whose `router` has routes."""

JSON = "application/json"
USUAL = "Successful Response"
"""What FastAPI says of a response that is described nowhere."""


def write() -> Mapping[str, str]:
    """Return the page of each service that has operations, by its name."""
    documents = read_documents()
    return {
        f"http-{service.folder}": write_page(service, documents[service.folder])
        for service in load_declarations().services
        if service.folder in documents
    }


@cache
def read_documents() -> Mapping[str, Schema]:
    """Return the OpenAPI document of each service that has routes, by its folder."""
    return {
        service.folder: create_document_of(service.folder, routers)
        for service in load_declarations().services
        if (routers := find_routers(service))
    }


def find_routers(service: Service) -> Sequence[APIRouter]:
    source = CHECKOUT / service.folder / "src"
    modules = [
        import_module(".".join(path.relative_to(source).with_suffix("").parts))
        for path in sorted(source.glob(f"{service.package}/**/{ROUTES}"))
    ]
    return [module.router for module in modules if hasattr(module, "router")]


def create_document_of(title: str, routers: Sequence[APIRouter]) -> Schema:
    """Return the document that `shared.web.http.create_app` serves, without the resources."""
    app = FastAPI(title=title)
    for router in routers:
        app.router.routes.extend(router.routes)
    return create_document(app, routers)


def write_page(service: Service, document: Schema) -> str:
    operations = list_operations(document)
    changes = [each for each in operations if each.method in CHANGES]
    of_all = find_common(operations)
    of_changes = find_common(changes) - of_all
    components = document["components"]["schemas"]
    scopes = {scope for each in operations for scope in each.scopes}
    return join_parts(
        f"# HTTP API of {service.folder}",
        "The API serves its OpenAPI document, of which this page is made: as `/openapi.json`, which"
        " also has the long patterns, and as `/docs`, where each operation can be tried.",
        document["info"]["description"],
        "## Scopes",
        "What a token can allow, and the roles of the issuer for development that have it.",
        write_scopes(scopes),
        "## Errors",
        "The content of a problem. After 429 and 503, `Retry-After` has the seconds to wait.",
        components["Problem"]["description"],
        write_fields(components["Problem"], components),
        "Any operation can have these:",
        write_refusals(of_all),
        *(("Any change can also have these:", write_refusals(of_changes)) if of_changes else ()),
        *(
            part
            for each in operations
            for part in write_operation(each, each.refusals - of_all - of_changes, components)
        ),
    )


def write_scopes(names: AbstractSet[str]) -> str:
    declared = load_declarations().scopes
    rows = (
        (code(name), each.allows, ", ".join(each.roles))
        for name, each in declared.items()
        if name in names
    )
    return table(("scope", "allows to", "roles"), rows)


def find_common(operations: Iterable[Operation]) -> AbstractSet[Refusal]:
    """Return the refusals that all of the operations have; none if there is no operation."""
    sets = [each.refusals for each in operations]
    return set.intersection(*map(set, sets)) if sets else set()


def write_refusals(refusals: AbstractSet[Refusal]) -> str:
    statuses = sorted({status for status, _ in refusals})
    rows = (
        (
            describe_status(status),
            codes(sorted(name for found, name in refusals if found == status)),
        )
        for status in statuses
    )
    return table(("status", "codes"), rows)


def describe_status(status: int) -> str:
    return f"{status} {HTTPStatus(status).phrase}"


def write_operation(
    operation: Operation, own: AbstractSet[Refusal], components: Schema
) -> Iterator[str]:
    """Yield what a caller sends and receives; of the refusals, those that not all have."""
    described = operation.described
    yield f"## {operation.title}"
    yield described.get("description", "")
    yield "**Parameters**"
    yield table(
        ("parameter", "in", "type", "required", "meaning"),
        (list_cells(parameter, components) for parameter in operation.parameters),
    )
    if "requestBody" in described:
        yield "**Request**"
        yield from write_content(described["requestBody"], components)
    for status, response in operation.responses.items():
        if status < HTTPStatus.BAD_REQUEST:
            headers = codes(response.get("headers", ()))
            yield f"**{describe_status(status)}**" + (f" with {headers}" if headers else "")
            if response["description"] != USUAL:
                yield response["description"]
            yield from write_content(response, components)
    if own:
        yield "**Refused**"
        yield write_refusals(own)


def list_cells(parameter: Schema, components: Schema) -> Sequence[str]:
    schema = follow(parameter["schema"], components)
    return (
        code(parameter["name"]),
        parameter["in"],
        describe_type(schema, components),
        "yes" if parameter["required"] else "",
        parameter.get("description") or schema.get("description", ""),
    )


def write_content(body: Schema, components: Schema) -> Iterator[str]:
    """Yield the fields of a request or a response, and an example."""
    for kind, content in body.get("content", {}).items():
        schema = follow(content.get("schema", {}), components)
        yield "" if kind == JSON else f"Content type: {code(kind)}"
        yield schema.get("description", "")
        yield write_fields(schema, components)
        if schema.get("additionalProperties") is False:
            yield "Any other field is refused."
        yield from map(as_json, list_examples(content, components)[:1])
