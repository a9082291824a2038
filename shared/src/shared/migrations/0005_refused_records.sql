-- A relay parks a stream as well, under its own name: when the broker refuses one of its records
-- permanently. The relay itself sends what waits, because only the holder of the lease can send.

ALTER TABLE parked_streams ADD COLUMN redrive_at timestamptz; -- when an operator asked for it
