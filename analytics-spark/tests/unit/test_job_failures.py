"""What the job says about a failure and about itself."""

import pytest

from analytics_spark.job.job import get_cause

THROUGH_PY4J = """An exception was raised by the Python Proxy. Return Message: Traceback:
  File "py4j/clientserver.py", line 644, in _call_proxy
    return_value = getattr(self.pool[obj_id], method)(*params)
psycopg.errors.CharacterNotInRepertoire: invalid byte sequence for encoding
CONTEXT:  COPY deltas, line 1
"""


@pytest.mark.parametrize(
    ("message", "cause"),
    [
        (
            THROUGH_PY4J,
            "psycopg.errors.CharacterNotInRepertoire: invalid byte sequence for encoding",
        ),
        ("Traceback:\n  File x\nValueError: no\n", "ValueError: no"),
        ("connection failed: refused\n\thint", "connection failed: refused"),
        ("", "Exception('')"),
        ("Traceback:\n  assert x\nAssertionError\n", "AssertionError"),
    ],
)
def test_the_cause_of_a_failure_is_one_line(message: str, cause: str) -> None:
    assert get_cause(Exception(message)) == cause
