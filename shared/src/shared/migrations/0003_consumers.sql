-- What consumers remember: how far they came in each stream, and which streams wait for a person.

CREATE TABLE consumed_versions (
    consumer text NOT NULL,
    stream_id uuid NOT NULL,
    version integer NOT NULL,
    PRIMARY KEY (consumer, stream_id)
) WITH (fillfactor = 80);

-- A stream whose next message could not be taken. Its later messages wait in parked_messages until
-- somebody redrives or discards them.
CREATE TABLE parked_streams (
    consumer text NOT NULL,
    stream_id uuid NOT NULL,
    topic text NOT NULL,
    reason text NOT NULL,
    parked_at timestamptz NOT NULL,
    PRIMARY KEY (consumer, stream_id)
);

CREATE TABLE parked_messages (
    consumer text NOT NULL,
    stream_id uuid NOT NULL,
    version integer NOT NULL,
    event_id uuid NOT NULL,
    topic text NOT NULL,
    partition integer NOT NULL,
    record_offset bigint NOT NULL,
    key bytea NOT NULL,
    value bytea NOT NULL,
    headers json NOT NULL, -- [name, value] in the order of the record
    discarded boolean NOT NULL DEFAULT false,
    parked_at timestamptz NOT NULL,
    PRIMARY KEY (consumer, stream_id, version),
    FOREIGN KEY (consumer, stream_id) REFERENCES parked_streams
);

-- What people did to parked streams, for ever.
CREATE TABLE parked_audit (
    number bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    done_at timestamptz NOT NULL,
    done_by text NOT NULL,
    action text NOT NULL,
    consumer text NOT NULL,
    stream_id uuid NOT NULL,
    version integer,
    reason text NOT NULL,
    value_before bytea,
    value_after bytea
);
