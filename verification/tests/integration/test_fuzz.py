"""A short `make fuzz`: APIs conform to their documents, and a wrong document is detected."""

from collections.abc import Callable, Iterator

import pytest

from test_support.system.clients import Hometown, Json
from verification.fuzz.fuzzing import SERVICES, Round, create_tally, play, stack_without_spark

EXAMPLES_MAX = 5
CASES_MIN = 150
SEED = 1
ORDERS = "orders-api"
SMALLEST = "analytics-api"
"""The document with the fewest operations."""
LONG = pytest.mark.verify(part="fuzz")
ALL_CHECKS = {
    "not_a_server_error",
    "status_code_conformance",
    "content_type_conformance",
    "response_headers_conformance",
    "response_schema_conformance",
    "negative_data_rejection",
    "positive_data_acceptance",
    "missing_required_header",
    "unsupported_method",
    "allow_header_conformance",
    "use_after_free",
    "ensure_resource_availability",
    "ignored_auth",
    "only_the_business_refuses",
}


@pytest.fixture(scope="module")
def hometown() -> Iterator[Hometown]:
    """A stack for these tests alone: their requests would change what other tests read."""
    with stack_without_spark() as hometown:
        yield hometown


@pytest.mark.parametrize(
    "service",
    [pytest.param(each, marks=() if each == SMALLEST else LONG) for each in SERVICES],
)
def test_an_api_conforms_to_its_document(hometown: Hometown, service: str) -> None:
    tally = create_tally(hometown, service)

    play(hometown, Round(service=service, seed=SEED, examples_max=EXAMPLES_MAX), tally)

    assert not tally.failures, "\n".join(tally.failures)
    assert tally.server_errors == 0
    assert tally.never_succeeded == []
    assert tally.cases > CASES_MIN
    assert tally.checks.keys() >= ALL_CHECKS


def remove_a_refusal(document: Json) -> None:
    del document["paths"]["/v1/items/{item_id}"]["delete"]["responses"]["412"]


def remove_a_code(document: Json) -> None:
    answer = document["paths"]["/v1/items"]["get"]["responses"]["401"]
    answer["content"]["application/problem+json"]["schema"]["allOf"][1]["properties"]["code"] = {
        "enum": ["invalid-token"]
    }


def allow_any_price(document: Json) -> None:
    document["components"]["schemas"]["ListItemRequest"]["properties"]["price"] = {"type": "string"}


def promise_a_number(document: Json) -> None:
    document["components"]["schemas"]["ItemResponse"]["properties"]["price"] = {"type": "number"}


def promise_a_header(document: Json) -> None:
    document["paths"]["/v1/items"]["get"]["responses"]["200"]["headers"] = {
        "ETag": {"schema": {"type": "string"}, "required": True}
    }


@pytest.mark.parametrize(
    "falsify",
    [
        promise_a_number,
        *(
            pytest.param(each, marks=LONG)
            for each in (remove_a_refusal, remove_a_code, allow_any_price, promise_a_header)
        ),
    ],
)
def test_a_wrong_document_is_detected(hometown: Hometown, falsify: Callable[[Json], None]) -> None:
    tally = create_tally(hometown, ORDERS)
    keep_paths(tally.document, "/v1/items", "/v1/items/{item_id}")
    falsify(tally.document)

    play(hometown, Round(service=ORDERS, seed=SEED, examples_max=EXAMPLES_MAX), tally)

    assert tally.failures != []


@LONG
def test_an_operation_that_only_refuses_is_detected(hometown: Hometown) -> None:
    tally = create_tally(hometown, ORDERS)
    keep_paths(tally.document, "/v1/orders/{order_id}")

    play(hometown, Round(service=ORDERS, seed=SEED, examples_max=EXAMPLES_MAX), tally)

    assert tally.never_succeeded == ["GET /v1/orders/{order_id}"]


def keep_paths(document: Json, *kept: str) -> None:
    document["paths"] = {path: document["paths"][path] for path in kept}
