"""Which version reads what another one has written: bytes by hand, JSON with a schema, Avro."""
