-- The truth of a service: streams of events, and what leaves the service because of them.

CREATE TABLE streams (
    stream_id uuid PRIMARY KEY,
    category text NOT NULL,
    version integer NOT NULL
) WITH (fillfactor = 80); -- room for the next version on the same page (HOT updates)

CREATE TABLE events (
    stream_id uuid NOT NULL,
    version integer NOT NULL,
    event_id uuid NOT NULL,
    type text NOT NULL,
    schema_version smallint NOT NULL,
    data json NOT NULL,
    metadata json NOT NULL,
    recorded_at timestamptz NOT NULL,
    PRIMARY KEY (stream_id, version)
);

-- Wire-ready records for Kafka. The sequence keeps its cache of 1: within one snapshot the order of
-- positions must respect the order of versions of each stream.
CREATE TABLE outbox (
    position bigint GENERATED ALWAYS AS IDENTITY,
    transaction_id xid8 NOT NULL DEFAULT pg_current_xact_id(),
    topic text NOT NULL,
    partition smallint NOT NULL,
    key bytea NOT NULL,
    value bytea NOT NULL,
    headers json NOT NULL,
    recorded_at timestamptz NOT NULL
);
CREATE INDEX outbox_by_transaction ON outbox (transaction_id, position);
CREATE INDEX outbox_by_position ON outbox (position);

-- The answer that a repeated request gets again.
CREATE TABLE idempotency_keys (
    scope text NOT NULL,
    key text NOT NULL,
    fingerprint bytea NOT NULL,
    status smallint NOT NULL,
    headers json NOT NULL,
    body bytea NOT NULL,
    recorded_at timestamptz NOT NULL,
    PRIMARY KEY (scope, key)
);

-- How far each consumer has come in each stream of another service.
CREATE TABLE consumed_versions (
    consumer text NOT NULL,
    stream_id uuid NOT NULL,
    version integer NOT NULL,
    PRIMARY KEY (consumer, stream_id)
) WITH (fillfactor = 80);

CREATE TYPE new_event AS (
    event_id uuid,
    type text,
    schema_version smallint,
    data json,
    topic text,
    partition smallint,
    key bytea,
    value bytea,
    headers json
);

CREATE TYPE stored_answer AS (
    scope text,
    key text,
    fingerprint bytea,
    status smallint,
    headers json,
    body bytea
);

CREATE TYPE consumed_version AS (
    consumer text,
    stream_id uuid,
    version integer
);

-- One append is one statement and one round trip: the answer to repeat, the message that caused it,
-- the version check, the events and their outbox rows become visible together or not at all.
-- Errors: HT001 the idempotency key was used, HT002 the message was consumed before,
-- HT003 the expected version is not the current one (which is the error's detail).
CREATE FUNCTION append(
    the_stream uuid,
    the_category text,
    expected_version integer,
    the_events new_event[],
    the_metadata json,
    now_at timestamptz,
    answer stored_answer,
    consumed consumed_version
) RETURNS integer LANGUAGE plpgsql AS $$
DECLARE
    new_version integer := expected_version + cardinality(the_events);
BEGIN
    IF answer.key IS NOT NULL THEN
        INSERT INTO idempotency_keys (scope, key, fingerprint, status, headers, body, recorded_at)
        VALUES (answer.scope, answer.key, answer.fingerprint, answer.status, answer.headers,
                answer.body, now_at)
        ON CONFLICT DO NOTHING;
        IF NOT FOUND THEN
            RAISE EXCEPTION 'idempotency key was used' USING ERRCODE = 'HT001';
        END IF;
    END IF;

    IF consumed.consumer IS NOT NULL THEN
        INSERT INTO consumed_versions AS known (consumer, stream_id, version)
        VALUES (consumed.consumer, consumed.stream_id, consumed.version)
        ON CONFLICT (consumer, stream_id) DO UPDATE
        SET version = excluded.version
        WHERE known.version < excluded.version;
        IF NOT FOUND THEN
            RAISE EXCEPTION 'message was consumed before' USING ERRCODE = 'HT002';
        END IF;
    END IF;

    -- To do nothing is a decision as well, and holds only for the version it was made on.
    IF cardinality(the_events) = 0 THEN
        PERFORM FROM streams
        WHERE stream_id = the_stream AND version <> expected_version
        FOR UPDATE;
        IF FOUND THEN
            RAISE EXCEPTION 'stream has another version' USING ERRCODE = 'HT003', DETAIL =
                (SELECT version FROM streams WHERE stream_id = the_stream);
        END IF;
        RETURN expected_version;
    END IF;

    IF expected_version = 0 THEN
        INSERT INTO streams (stream_id, category, version)
        VALUES (the_stream, the_category, new_version)
        ON CONFLICT DO NOTHING;
    ELSE
        UPDATE streams
        SET version = new_version
        WHERE stream_id = the_stream AND version = expected_version;
    END IF;
    IF NOT FOUND THEN
        RAISE EXCEPTION 'stream has another version' USING ERRCODE = 'HT003', DETAIL = coalesce(
            (SELECT version FROM streams WHERE stream_id = the_stream), 0);
    END IF;

    INSERT INTO events (stream_id, version, event_id, type, schema_version, data, metadata,
                        recorded_at)
    SELECT the_stream, expected_version + number, event_id, type, schema_version, data,
           the_metadata, now_at
    FROM unnest(the_events) WITH ORDINALITY AS event
        (event_id, type, schema_version, data, topic, partition, key, value, headers, number);

    INSERT INTO outbox (topic, partition, key, value, headers, recorded_at)
    SELECT topic, partition, key, value, headers, now_at
    FROM unnest(the_events) WITH ORDINALITY AS event
        (event_id, type, schema_version, data, topic, partition, key, value, headers, number)
    WHERE topic IS NOT NULL
    ORDER BY number;

    RETURN new_version;
END
$$;
