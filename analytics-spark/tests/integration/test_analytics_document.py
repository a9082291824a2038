"""The OpenAPI document of analytics is valid and complete, the stream among its operations."""

import pytest
from fastapi import FastAPI

from analytics_spark.serving.api import router
from shared.web.openapi import create_document
from test_support.documents import Json, flaws_of


@pytest.fixture
def shown() -> Json:
    app = FastAPI(telemetry={"tracing": False})
    app.router.routes.extend(router.routes)
    return create_document(app, [router])


def test_the_document_has_no_flaw(shown: Json) -> None:
    assert flaws_of(shown) == []


def test_the_stream_is_documented_as_one(shown: Json) -> None:
    answers = shown["paths"]["/v1/stream"]["get"]["responses"]

    assert list(answers["200"]["content"]) == ["text/event-stream"]
    assert "too-many-listeners" in answers["503"]["description"]
