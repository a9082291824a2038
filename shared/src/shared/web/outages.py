"""Requests while the database is unavailable: a problem for each, and one log line per outage."""

import logging
import time
from collections.abc import Callable

from starlette.responses import Response

from shared.web.problems import problem

UNAVAILABLE = "unavailable"
DETAIL = "the database is unavailable; retry, a write request with the same Idempotency-Key"
QUIET_SECONDS = 30.0
"""An outage has ended when no request has failed for so long."""

log = logging.getLogger(__name__)


class Outages:
    """Logs the first failure of an outage, not those that follow."""

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._failed_at = float("-inf")

    def to_response(self, error: Exception) -> Response:
        """The response to a request that has failed with an error of `postgres.UNAVAILABLE`.

        Whether a write request was recorded is unknown if the connection was lost during its
        commit; with an idempotency key it can be repeated.
        """
        now = self._clock()
        if now - self._failed_at > QUIET_SECONDS:
            log.error("the database is unavailable, requests are answered with 503: %r", error)
        self._failed_at = now
        return problem(503, UNAVAILABLE, DETAIL)
