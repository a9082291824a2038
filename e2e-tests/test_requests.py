"""The requests of docs/requests are answered as documented; the stack knows none of their ids."""

import re
from collections.abc import Iterator
from dataclasses import dataclass

import httpx
import pytest

from local_stack import issuer
from scripts.documentation.reference.http import find_operations
from shared.runtime.declarations import Process, load_declarations
from test_support.system.stack import CHECKOUT, Stack

SECONDS_MAX = 60
NO_OPERATION = {
    "not-found",
    "method-not-allowed",
    "invalid-request",
    "unauthenticated",
    "invalid-token",
    "insufficient-scope",
}
"""What a request gets that is wrong in itself."""

APIS = [
    (path.stem, process)
    for path in sorted((CHECKOUT / "docs/requests").glob("*.http"))
    for service in load_declarations().services
    for process in service.processes.values()
    if service.folder == path.stem and process.public and process.profile is None
]


@dataclass(frozen=True, slots=True)
class Request:
    method: str
    url: str
    headers: dict[str, str]
    body: str


def read_requests(text: str, given: dict[str, str]) -> Iterator[Request]:
    """As an editor reads them, with other values for some variables."""
    values = dict(re.findall(r"^@(\w+) = ?(.*)$", text, re.MULTILINE)) | given
    filled = re.sub(r"\{\{(\w+)\}\}", lambda match: values[match[1]], text)
    for block in re.split(r"^### .*\n", filled, flags=re.MULTILINE)[1:]:
        head, _, body = re.sub(r"^#.*\n", "", block, flags=re.MULTILINE).partition("\n\n")
        first, *headers = head.strip().splitlines()
        method, url = first.split(" ")
        yield Request(method, url, dict(line.split(": ", 1) for line in headers), body.strip())


def to_pattern(operation: str) -> str:
    """Of the method and path of a call: `GET /v1/users/[^/]+`."""
    return re.sub(r"\{\w+\}", "[^/]+", operation)


@pytest.mark.parametrize(("folder", "process"), APIS, ids=lambda value: getattr(value, "name", ""))
def test_each_request_is_answered(stack: Stack, folder: str, process: Process) -> None:
    address = stack.hometown.addresses[process.name]
    document = httpx.get(f"{address}/openapi.json").raise_for_status().json()
    operations = dict(find_operations(document))
    tokens = {
        f"{role}_token": issuer.token(stack.folder, role, None) for role in ("clerk", "analyst")
    }
    given = {process.name.replace("-", "_"): address, **tokens}

    requests = [*read_requests((CHECKOUT / f"docs/requests/{folder}.http").read_text(), given)]

    assert len(requests) == len(operations)
    for request in requests:
        with httpx.stream(
            request.method,
            request.url,
            headers=request.headers,
            content=request.body or None,
            timeout=SECONDS_MAX,
        ) as response:
            is_problem = "problem" in response.headers.get("Content-Type", "")
            code = response.read() and response.json()["code"] if is_problem else ""
        assert code not in NO_OPERATION, (request, code)
        called = f"{request.method} {httpx.URL(request.url).path}"
        [name] = [each for each in operations if re.fullmatch(to_pattern(each), called)]
        assert str(response.status_code) in operations[name]["responses"], (called, code)
