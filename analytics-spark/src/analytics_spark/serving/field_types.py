"""Types of the fields in requests that only this service has."""

from typing import Annotated

from pydantic import BeforeValidator

from shared.web.field_types import (
    DATE_FORM,
    IN_YEARS,
    Instant,
    create_instant_schema,
    require_pattern,
)

HOUR_FORM = rf"{DATE_FORM}T([01][0-9]|2[0-3]):00:00(\.0{{1,9}})?(Z|[+-]([01][0-9]|2[0-3]):00)"

Hour = Annotated[
    Instant,
    BeforeValidator(require_pattern(HOUR_FORM, "2016-11-11T00:00:00Z")),
    create_instant_schema(HOUR_FORM, f"The beginning of an hour, in the years {IN_YEARS}."),
]
