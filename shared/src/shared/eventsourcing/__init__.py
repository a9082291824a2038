"""Events as the truth: a pure decider, its events as bytes, and streams in PostgreSQL.

Comes in: a command, the aggregate's `Decider`, and the versions that the decision was based on.
Goes out: events, their outbox records and the response to repeat, in one SQL statement for a
request (`event_store`), or for all commands of a worker's batch (`locked_streams`); the history of
one stream for people (`event_log`) or of the whole service (`history`).
Guarantees: all or nothing, and only after the expected version
(`tests/integration/test_event_store.py`, `tests/integration/test_reactions.py`); a lost race is
decided again (`tests/integration/test_handler.py`); the cached state of a long stream is that of
its events (`tests/integration/test_state_cache.py`); any older version of an event is read as the
newest (`tests/integration/test_event_store_versions.py`, `tests/unit/test_codec.py`).
Read `decider.py` first, then `handler.py` and `event_store.py`; test deciders with `testing.py`.
"""
