"""The idempotent consumer: each message of a topic is applied once and in order, or it waits.

Comes in: batches of records from Kafka (`group_reader`, a member of a consumer group).
Goes out: the effects of the service's reactions, in one transaction with the versions of the
streams; dead letters; parked streams with the messages that wait for a redrive.
Guarantees: each message is applied once, in the order of its stream
(`tests/unit/test_inbox.py`, `tests/integration/test_consumer.py`), also when a worker is killed, or
another one of its group joins, leaves or is frozen (`tests/integration/test_worker.py`); whatever
bytes a record has, the next one is taken (`tests/integration/test_any_bytes.py`); a poisonous
message stops its own stream alone, and a redrive continues it in order
(`tests/integration/test_redrive.py`); what is counted and logged was committed
(`tests/integration/test_outcomes.py`).
Read `inbox.py` first (where a repeated message is recognised), then `consumer.py` and `parked.py`.
"""
