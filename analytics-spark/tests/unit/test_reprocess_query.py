"""A rebuild of the tables leaves to the job what the job does once for each record."""

import threading
from typing import Any
from unittest.mock import Mock

import pytest

from analytics_spark.job import job
from analytics_spark.job.generations import FIRST
from analytics_spark.operations import reprocess


class Opened(Exception):
    """The query would be opened now."""


def test_dead_letters_and_spans_of_orders_are_not_repeated(monkeypatch: pytest.MonkeyPatch) -> None:
    settings: Any = Mock(records_per_trigger_max=1)
    open_query = Mock(side_effect=Opened)
    monkeypatch.setattr(job, "open_query", open_query)

    with pytest.raises(Opened):
        reprocess.fill(settings, FIRST, threading.Event())

    assert open_query.call_args.kwargs == {"is_repeated": True}
