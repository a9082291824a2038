"""Messages between services: their values, their bytes, their topics, and the producer.

Comes in: records of Kafka (`reading`, `records`), topic declarations (`topics`).
Goes out: a `Message` or the reason why a record is none; record batches (`wire`) that `kafka`
publishes and that are acknowledged by all in-sync replicas.
Guarantees: the bytes are those of aiokafka's own builder (`tests/unit/test_wire.py`); a malformed
record never becomes a message (`tests/unit/test_records.py`), and no bytes stop a reader
(`tests/unit/test_reading.py`); a publish that returns is acknowledged, in order and once
(`tests/integration/test_kafka.py`).
Read `messages.py` first, then `wire.py`. Imports `runtime` alone.
"""
