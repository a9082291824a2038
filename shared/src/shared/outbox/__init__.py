"""The transactional outbox and its relay: committed records to Kafka, at least once, in order.

Comes in: rows of the table `outbox`, which `append` writes together with their events.
Goes out: records in Kafka, and the checkpoint in the row `relay`.
Guarantees: nothing is lost, each key stays in order, repeats follow only a failure
(`tests/integration/test_outbox.py`, `tests/integration/test_relay.py`, `make stress`); a partition
that takes no records waits alone (`tests/integration/test_behind.py`); one relay of a service is
active at a time (`tests/integration/test_lease.py`); published rows are dropped by the hour
(`tests/integration/test_outbox_partitions.py`); a lost topic can be published again
(`tests/integration/test_replay.py`).
Read `outbox.py` first (why a snapshot and not a position), then `relay.py` and `lease.py`.
"""
