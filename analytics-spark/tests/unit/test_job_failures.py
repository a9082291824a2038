"""What the job says about a failure and about itself."""

import pytest

from analytics_spark.job.job import get_cause, name_cause

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


@pytest.mark.parametrize(
    ("message", "cause"),
    [
        ("Traceback:\n  File x\nKeyError: 'Elm Street 7'\n", "KeyError"),
        ("pyarrow.lib.ArrowInvalid: Could not convert 'Elm Street 7'", "pyarrow.lib.ArrowInvalid"),
        ("AssertionError\n", "AssertionError"),
        (
            "OSError: [Errno 28] No space left on device",
            "OSError: [Errno 28] No space left on device",
        ),
        ("a.b.NotTheWriter: another job writes", "a.b.NotTheWriter: another job writes"),
        ("connection failed: refused\n\thint", "connection failed: refused"),
    ],
)
def test_the_log_quotes_no_record(message: str, cause: str) -> None:
    assert name_cause(Exception(message)) == cause
