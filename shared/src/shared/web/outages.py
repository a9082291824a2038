"""Requests while the database is unavailable: a problem for each, and a log line a minute."""

import logging

from starlette.responses import Response

from shared.runtime.logs import because
from shared.web.problems import problem

UNAVAILABLE = "unavailable"
DETAIL = "the database is unavailable; retry, a write request with the same Idempotency-Key"

log = logging.getLogger(__name__)


def unavailable(error: Exception) -> Response:
    """The response to a request that has failed with an error of `postgres.UNAVAILABLE`.

    Whether a write request was recorded is unknown if the connection was lost during its commit;
    with an idempotency key it can be repeated.
    """
    log.error("the database is unavailable, requests are answered with 503", extra=because(error))
    return problem(503, UNAVAILABLE, DETAIL)
