"""Read models: tables that follow a topic and can be made again from the first event.

Comes in: messages, from the consumer that applies them (`inbox`), or from the whole history of the
service (`rebuild`).
Goes out: rows of the read models' tables; for a rebuild, a comparison with the live tables.
Guarantees: a rebuilt table equals the live one to the byte, readers never wait for a rebuild, and
one that fails changes nothing (`tests/integration/test_rebuild.py`); a new version is filled while
readers get the old one, and miss nothing (`tests/integration/test_read_model_versions.py`).
Each projection must be idempotent and ignore late messages: it compares the stream's version.
Read `read_models.py` first, then `rebuild.py` and `versions.py`.
"""
