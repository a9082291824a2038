"""`make requests`: the file has each operation, and values and tokens with which it is answered."""

import json
import re
import ssl
import sys
from collections.abc import Callable, Mapping
from pathlib import Path

import httpx
import jwt
import pytest

from local_stack import issuer
from local_stack.run_folder import RunFolder
from scripts import request_file
from scripts.documentation.reference.http import read_documents
from scripts.openapi import list_operations
from shared.runtime.declarations import Process, load_declarations
from test_support.system.clients import Hometown, Json

APIS: Mapping[str, tuple[Process, Json]] = {
    process.name: (process, dict(read_documents()[service.folder]))
    for service in load_declarations().services
    for process in service.processes.values()
    if process.public and service.folder in read_documents()
}
ADDRESSES = {name: f"http://{name}:8000" for name in APIS}
FIRST_USER, FIRST_ORDER, FIRST_ITEM, DELETED_USER, THEIR_ORDER = (
    f"01936f2a-7b00-7000-8000-{number:012}" for number in range(91, 96)
)
OF_FIRST_USER = f"/v1/orders?user_id={FIRST_USER}"
PAGES: Mapping[str, Json] = {
    "/v1/users": {"users": [{"user_id": FIRST_USER}], "next": FIRST_USER},
    "/v1/orders": {"orders": [{"order_id": THEIR_ORDER, "user_id": DELETED_USER}], "next": None},
    OF_FIRST_USER: {"orders": [{"order_id": FIRST_ORDER, "user_id": FIRST_USER}], "next": None},
    "/v1/items": {"items": [{"item_id": FIRST_ITEM, "price": "1.00"}], "next": None},
    "/v1/hours": {"hours": [{"hour": "2016-11-11T04:00:00Z"}], "next": None},
}
EMPTY: Mapping[str, Json] = {path: {name: [] for name in page} for path, page in PAGES.items()}

Pages = Mapping[str, Json]
MakeRequests = Callable[..., str]


@pytest.fixture
def make_requests(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> MakeRequests:
    """Call `make requests` with APIs that have these pages; it returns the file."""
    folder = RunFolder(tmp_path)
    issuer.establish(folder)
    monkeypatch.setenv("HOMETOWN_RUN_DIR", str(tmp_path))
    monkeypatch.delenv("HOMETOWN_IN", raising=False)
    monkeypatch.setattr(sys, "argv", ["requests"])

    def call(pages: Pages = PAGES, *, stopped: str = "", other: str = "", status: int = 200) -> str:
        def answer(request: httpx.Request) -> httpx.Response:
            if request.url.host == stopped:
                raise httpx.ConnectError("refused")
            if request.url.host == other:
                return httpx.Response(200, html="<p>Another program.</p>")
            if request.url.path == "/openapi.json":
                return httpx.Response(200, json=APIS[request.url.host][1])
            assert request.method == "GET"
            assert request.headers["Authorization"].startswith("Bearer ey")
            assert request.url.params["limit"] == "1"
            query = str(request.url.copy_remove_param("limit").query, "ascii")
            page = pages.get(f"{request.url.path}?{query}" if query else request.url.path)
            return httpx.Response(status, json=page or {"differences": []})

        client = httpx.Client(transport=httpx.MockTransport(answer))
        hometown = Hometown(ADDRESSES, {}, client, ssl.create_default_context())
        monkeypatch.setattr(Hometown, "of_run_folder", lambda folder: hometown)
        request_file.main()
        return (folder / request_file.FILE).read_text()

    return call


def read_values(text: str) -> Mapping[str, str]:
    return dict(re.findall(r"^@(\w+) = (.+)$", text, re.MULTILINE))


@pytest.mark.parametrize("process", APIS)
def test_each_operation_is_a_request(make_requests: MakeRequests, process: str) -> None:
    variable = process.replace("-", "_")
    wanted = {(each.method, each.path) for each in list_operations(APIS[process][1])}

    text = make_requests()

    requests = re.findall(rf"^([A-Z]+) {{{{{variable}}}}}([^?\s]*)", text, re.MULTILINE)
    found = {(method, re.sub(r"\{\{(\w+)\}\}", r"{\1}", path)) for method, path in requests}
    assert (found, len(requests)) == (wanted, len(wanted))
    assert read_values(text)[variable] == ADDRESSES[process]


def test_each_variable_has_a_value_and_is_used(make_requests: MakeRequests) -> None:
    text = make_requests()

    assert read_values(text).keys() == set(re.findall(r"\{\{(\w+)\}\}", text))


def test_each_request_has_the_token_of_a_role_with_its_scopes(make_requests: MakeRequests) -> None:
    text = make_requests()
    scopes = {
        name: jwt.decode(value, options={"verify_signature": False})["scope"].split()
        for name, value in read_values(text).items()
        if name.endswith("_token")
    }
    for process, (_, document) in APIS.items():
        for operation in list_operations(document):
            heading = re.escape(f"### {process}: {operation.name}\n")
            [used] = re.findall(
                heading + r"(?:.+\n)+?Authorization: Bearer \{\{(\w+)\}\}\n", text + "\n"
            )
            assert operation.scopes <= {*scopes[used]}, operation.name


def test_ids_are_those_of_what_is_there(make_requests: MakeRequests) -> None:
    values = read_values(make_requests())

    assert (values["user_id"], values["order_id"]) == (FIRST_USER, FIRST_ORDER)
    assert (values["item_id"], values["hour"]) == (FIRST_ITEM, "2016-11-11T04:00:00Z")
    assert values["topic"] == "orders.v1"
    assert not {"price", "next"} & values.keys()


def test_an_order_of_others_is_better_than_none(make_requests: MakeRequests) -> None:
    values = read_values(make_requests({**PAGES, OF_FIRST_USER: {"orders": []}}))

    assert (values["user_id"], values["order_id"]) == (FIRST_USER, THEIR_ORDER)


def test_where_nothing_is_there_ids_are_examples(make_requests: MakeRequests) -> None:
    """The negative control of the test above."""
    values = read_values(make_requests(EMPTY))

    assert not {FIRST_USER, FIRST_ORDER, FIRST_ITEM} & set(values.values())
    assert re.fullmatch(r"[0-9a-f-]{36}", values["user_id"])


def test_examples_are_used_while_a_list_cannot_be_read(make_requests: MakeRequests) -> None:
    values, examples = read_values(make_requests(status=503)), read_values(make_requests(EMPTY))

    assert all(values[name] == examples[name] for name in ("user_id", "order_id", "hour"))
    assert FIRST_USER not in values.values()


def test_content_is_an_example_with_these_ids(make_requests: MakeRequests) -> None:
    text = make_requests()
    [body] = re.findall(
        r"^POST \{\{orders_api\}\}/v1/orders\n(?:.+\n)+\n({\n(?:.+\n)+)", text, re.M
    )
    values = read_values(text)

    order = json.loads(re.sub(r"\{\{(\w+)\}\}", lambda name: values[name[1]], body))

    assert order == {
        "user_id": FIRST_USER,
        "lines": [{"item_id": FIRST_ITEM, "quantity": 2}],
    }
    assert "Content-Type: application/json\n\n{" in text


def test_what_deletes_comes_last(make_requests: MakeRequests) -> None:
    methods = re.findall(r"^([A-Z]+) \{\{", make_requests(), re.MULTILINE)

    assert set(methods[methods.index("DELETE") :]) == {"DELETE"}


def test_a_process_that_starts_on_request_can_be_missing(make_requests: MakeRequests) -> None:
    for name, (process, _) in APIS.items():
        if process.profile is not None:
            assert ADDRESSES[name] not in make_requests(stopped=name)
            assert ADDRESSES[name] not in make_requests(other=name)


def test_any_other_process_has_to_run(make_requests: MakeRequests, tmp_path: Path) -> None:
    with pytest.raises(SystemExit, match="not all of it: make up"):
        make_requests(stopped="users-api")

    assert not (tmp_path / request_file.FILE).exists()


def test_the_file_stays_if_an_api_refuses(make_requests: MakeRequests, tmp_path: Path) -> None:
    before = make_requests()

    with pytest.raises(SystemExit, match=r"401 .*see: make status"):
        make_requests(EMPTY, status=401)

    assert (tmp_path / request_file.FILE).read_text() == before


def test_only_the_owner_reads_the_tokens(make_requests: MakeRequests, tmp_path: Path) -> None:
    make_requests()

    assert (tmp_path / request_file.FILE).stat().st_mode & 0o777 == 0o600
