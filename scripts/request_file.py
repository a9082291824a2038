"""Write each operation of the APIs as a request, for the HTTP client of an editor: into one file,
with the addresses of the stack that runs, tokens, and ids of what is there.

make requests
"""

import argparse
import json
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

import httpx

from local_stack import issuer
from local_stack.run_folder import RunFolder, write_atomically
from local_stack.settings import Settings
from scripts.guide import exit_with_reason, say
from scripts.openapi import Operation, Schema, follow, list_examples, list_operations
from shared.runtime.declarations import load_declarations
from shared.runtime.identifiers import new_id
from test_support.system.clients import Hometown, Json

FILE = "requests.http"
"""In the run folder, which git ignores: it has tokens."""
ROLES = sorted(issuer.ROLES, key=lambda role: role == issuer.PERSONAL)
"""The one that is limited to what belongs to a user comes last."""

IN_PATH = re.compile(r"\{(\w+)\}")
ID_IN_BODY = re.compile(r'"(\w+_id)": "([^"]*)"')
PAGE_SIZE = "limit"
"""The parameter of operations that list what is there."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Api:
    """A process that serves operations, with its OpenAPI document."""

    process: str
    address: str
    document: Schema

    @property
    def variable(self) -> str:
        """The name of the address in the file."""
        return self.process.replace("-", "_")

    @property
    def components(self) -> Schema:
        components: Schema = self.document["components"]["schemas"]
        return components

    def find_example(self, parameter: Schema) -> str:
        schema = follow(parameter["schema"], self.components)
        known = [*schema.get("examples", ()), *schema.get("enum", ()), schema.get("minimum")]
        return str(known[0] if known[0] is not None else parameter["name"])

    def write_body(self, operation: Operation) -> str:
        """Return the first example of a request; an empty text if the operation has no content."""
        for content in operation.described.get("requestBody", {}).get("content", {}).values():
            for example in list_examples(content, self.components):
                return json.dumps(example, indent=2, ensure_ascii=False)
        return ""


def main() -> None:
    argparse.ArgumentParser(description=__doc__).parse_args()
    folder = RunFolder(Settings().run_dir)
    with exit_with_reason("there are no requests"):
        hometown = Hometown.of_run_folder(folder.path)
        tokens = sign_tokens(folder)
        apis = read_apis(hometown)
        text = write(apis, tokens, find_values(hometown, apis, tokens))
    write_atomically(folder / FILE, text, mode=0o600)
    say(f"{text.count('### ')} requests, which an editor can send: {folder / FILE}")


def sign_tokens(folder: RunFolder) -> Mapping[str, str]:
    """Return a token for each role; the personal one has the id of no registered user."""
    return {
        role: issuer.token(folder, role, str(new_id()) if role == issuer.PERSONAL else None)
        for role in ROLES
    }


def read_apis(hometown: Hometown) -> Sequence[Api]:
    """Return all APIs of a stack; of processes that start on request, those that respond."""
    apis = []
    for process in load_declarations().processes:
        address = hometown.addresses.get(process.name)
        if not process.public or address is None:
            continue
        try:
            response = hometown.http.get(f"{address}/openapi.json").raise_for_status()
            apis.append(Api(process=process.name, address=address, document=response.json()))
        except (httpx.HTTPError, ValueError):  # another program can have the port of such a process
            if process.profile is None:
                raise
    return apis


def find_values(
    hometown: Hometown, apis: Sequence[Api], tokens: Mapping[str, str]
) -> Mapping[str, str]:
    """Return a value for each variable of requests: of the first thing that is there, or else an
    example."""
    examples: dict[str, str] = {}
    for api, operation in list_all(apis):
        for parameter in operation.required:
            examples.setdefault(parameter["name"], api.find_example(parameter))
        examples |= dict(ID_IN_BODY.findall(api.write_body(operation)))
    found: dict[str, str] = {}
    for api, operation in list_all(apis):
        if is_list(operation):
            token = tokens[choose_role(operation)]
            for first in read_first(hometown, api, operation, token, found):
                names = examples.keys() & first.keys()
                found = {name: str(first[name]) for name in names} | found
    return examples | found


def list_all(apis: Sequence[Api]) -> Sequence[tuple[Api, Operation]]:
    return [(api, operation) for api in apis for operation in list_operations(api.document)]


def read_first(
    hometown: Hometown, api: Api, operation: Operation, token: str, found: Mapping[str, str]
) -> Iterator[Json]:
    """Yield the first thing of a list that belongs to what is found, and of the whole list."""
    names = {each["name"] for each in operation.parameters}
    belongs = {name: found[name] for name in names & found.keys()}
    for query in (belongs, {}) if belongs else ({},):
        page = hometown.http.get(
            api.address + operation.path,
            params={PAGE_SIZE: 1, **query},
            headers={"Authorization": f"Bearer {token}"},
        )
        if not page.is_server_error:  # that of a dependency; an example is better than no file
            yield find_first(page.raise_for_status().json())


def is_list(operation: Operation) -> bool:
    """Whether it lists all that is there, and not what belongs to something."""
    names = {each["name"] for each in operation.parameters}
    return operation.method == "GET" and PAGE_SIZE in names and not operation.required


def find_first(page: Json) -> Json:
    """Return the first thing of a page; an empty one if the page is empty."""
    lists = (each for each in page.values() if isinstance(each, list))
    return next((first for each in lists for first in each if isinstance(first, dict)), {})


def choose_role(operation: Operation) -> str:
    """Return the first role with the scopes of an operation."""
    return next(role for role in ROLES if operation.scopes <= {*issuer.ROLES[role]})


def write(apis: Sequence[Api], tokens: Mapping[str, str], values: Mapping[str, str]) -> str:
    """Return the text of the file. What deletes comes last: others need what is there.

    Args:
        tokens: by role.
        values: by the name of a parameter, or of a field with an id.
    """
    listed = sorted(list_all(apis), key=lambda each: each[1].method == "DELETE")
    requests = [write_request(api, operation) for api, operation in listed]
    variables = (
        {api.variable: api.address for api in apis}
        | {to_variable(role): token for role, token in tokens.items()}
        | dict(sorted(values.items()))
    )
    used = {name for request in requests for name in re.findall(r"\{\{(\w+)\}\}", request)}
    return "\n".join(
        [
            "# Written by `make requests`, which replaces it: with tokens for"
            f" {issuer.HOURS_DEFAULT:g} hours, and ids of what was there.",
            *(f"@{name} = {value}" for name, value in variables.items() if name in used),
            "",
            *requests,
        ]
    )


def write_request(api: Api, operation: Operation) -> str:
    return "\n".join([*list_lines(api, operation), ""])


def list_lines(api: Api, operation: Operation) -> Iterator[str]:
    required = operation.required
    optional = [each["name"] for each in operation.parameters if each not in required]
    query = "&".join(
        f"{each['name']}={refer_to(each['name'])}" for each in required if each["in"] == "query"
    )
    path = IN_PATH.sub(lambda name: refer_to(name[1]), operation.path)
    yield f"### {api.process}: {operation.name}"
    if optional:
        yield f"# Optional: {', '.join(optional)}"
    yield f"{operation.method} {refer_to(api.variable)}{path}{'?' if query else ''}{query}"
    yield f"Authorization: Bearer {refer_to(to_variable(choose_role(operation)))}"
    if body := api.write_body(operation):
        yield "Content-Type: application/json"
        yield ""
        yield ID_IN_BODY.sub(lambda found: f'"{found[1]}": "{refer_to(found[1])}"', body)


def to_variable(role: str) -> str:
    return f"{role}_token"


def refer_to(variable: str) -> str:
    return f"{{{{{variable}}}}}"


if __name__ == "__main__":
    main()
