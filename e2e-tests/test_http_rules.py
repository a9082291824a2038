"""What holds for every operation of the APIs' own documents, also future ones."""

import re
from collections.abc import Mapping
from copy import deepcopy
from typing import Any

import pytest

from local_stack import issuer
from scripts.documentation.reference import http
from shared.runtime.declarations import ALL, API, load_declarations
from test_support.system.clients import Json
from test_support.system.operations import SERVICES, Operation, find_operations
from test_support.system.scene import Scene

ODD_TEXTS = ["%00", "a%00", "%0D%0A", "%7f", "%ff", "%ed%a0%80", "%F0%9F%98%80", "%2f", "a" * 5_000]
NOT_IN_DIGITS = ["1_0", "%2B5", "-5", "5.0", "5.", "%205", "5%0a", "0x5", "5e0", "%D9%A5", ""]
OF_HOURS = "2016-11-11T05:30:00%2B05:30"
PHRASE = re.compile(r"^[A-Z][\w -]*(?=: )")
NAMES = {"user_id": "{victim}", "order_id": "{order}", "item_id": "{item}", "hour": OF_HOURS}


@pytest.fixture(scope="module")
def caller(scene: Scene) -> dict[str, str]:
    """The header of a caller with all rights."""
    scopes = " ".join([*load_declarations().scopes, ALL])
    return {"Authorization": f"Bearer {issuer.sign(scene.folder, {'sub': 'all', 'scope': scopes})}"}


@pytest.fixture(scope="module")
def operations(scene: Scene) -> list[Operation]:
    found = list(find_operations(scene))
    assert {each.service for each in found} == set(SERVICES)
    return found


def test_the_reference_is_made_of_what_the_apis_serve(scene: Scene) -> None:
    names = {
        service.process_name(API): service.folder
        for service in load_declarations().services
        if API in service.processes
    }
    for service in SERVICES:
        served = scene.send("GET", service, "/openapi.json").json()
        made = http.read_documents()[names[service]]
        assert without_phrases(made) == without_phrases(served)


def without_phrases(document: Mapping[str, Any]) -> Mapping[str, Any]:
    """Return a document without the phrases of statuses, which depend on the version of Python."""
    copy: Json = deepcopy(dict(document))
    for methods in copy["paths"].values():
        for operation in methods.values():
            for response in operation["responses"].values():
                response["description"] = PHRASE.sub("", response["description"])
    return copy


def test_no_id_is_any_text(
    scene: Scene, operations: list[Operation], caller: dict[str, str]
) -> None:
    """With a key, a text is a part of the row that is looked up before the id is validated."""
    tried = 0
    for each in operations:
        for text in ODD_TEXTS if "{" in each.path else ():
            for headers in (caller, caller | {"Idempotency-Key": "key"}):
                body: Json | None = {} if "requestBody" in each.described else None
                path = each.fill(dict.fromkeys(NAMES, text))
                answer = scene.send(each.method, each.service, path, headers=headers, body=body)
                assert answer.status_code in {404, 422}, (each.method, path, answer.text)
                tried += 1

    assert tried >= 2 * len(ODD_TEXTS) * 12


def test_each_whole_number_in_a_query_is_written_in_digits(
    scene: Scene, operations: list[Operation], caller: dict[str, str]
) -> None:
    tried = 0
    for each in operations:
        for parameter in each.parameters:
            if (parameter["in"], parameter["schema"].get("type")) != ("query", "integer"):
                continue
            for number in NOT_IN_DIGITS:
                path = each.fill(NAMES, f"{parameter['name']}={number}")
                answer = scene.send(each.method, each.service, path, headers=caller)
                assert answer.status_code == 422, (path, answer.text)
                assert parameter["name"] in answer.text
                tried += 1

    assert tried >= len(NOT_IN_DIGITS) * 12


def test_each_read_can_be_conditional_and_of_the_head_alone(
    scene: Scene, operations: list[Operation], caller: dict[str, str]
) -> None:
    succeeded = 0
    for each in operations:
        if each.method != "GET":
            continue
        path = each.fill(NAMES)
        head = scene.send("HEAD", each.service, path, headers=caller)
        known = scene.send("GET", each.service, path, headers=caller | {"If-None-Match": "*"})
        other = scene.send("GET", each.service, path, headers=caller | {"If-Match": '"x"'})
        bad = scene.send("GET", each.service, path, headers=caller | {"If-None-Match": "x"})
        assert head.content == b""
        assert bad.status_code == 400
        if head.status_code == 200:
            assert (known.status_code, known.content) == (304, b""), path
            assert other.status_code == 412
            succeeded += 1
        else:
            assert {known.status_code, other.status_code} == {head.status_code}, path

    assert succeeded >= 15


def test_each_content_is_json_in_utf_8(
    scene: Scene, operations: list[Operation], caller: dict[str, str]
) -> None:
    tried = 0
    for each in operations:
        if "requestBody" not in each.described:
            continue
        path = each.fill(NAMES)
        for content_type in ("text/plain", "application/x-www-form-urlencoded", ""):
            headers = caller | {"Content-Type": content_type}
            answer = scene.send(each.method, each.service, path, headers=headers, content=b"{}")
            assert answer.status_code == 415, (path, answer.text)
        for encoding in ("utf-16", "utf-32"):
            content = "{}".encode(encoding)
            answer = scene.send(each.method, each.service, path, headers=caller, content=content)
            assert answer.status_code == 400, (path, answer.text)
        tried += 1

    assert tried >= 8
