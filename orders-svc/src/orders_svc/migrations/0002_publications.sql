-- Where each event of an order lies in its topic, noted by the worker that reads it there.

CREATE TABLE publications (
    stream_id uuid NOT NULL,
    version integer NOT NULL,
    partition integer NOT NULL,
    record_offset bigint NOT NULL,
    seen_at timestamptz NOT NULL DEFAULT clock_timestamp(),
    PRIMARY KEY (stream_id, version)
);
