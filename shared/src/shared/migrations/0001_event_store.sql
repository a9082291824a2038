-- The truth of a service: streams of events, and what leaves the service because of them.

CREATE TABLE streams (
    stream_id uuid PRIMARY KEY,
    category text NOT NULL,
    version integer NOT NULL,
    published_version integer NOT NULL -- of the last event that left the service; 0 if none did
) WITH (fillfactor = 80); -- room for the next version on the same page (HOT updates)

CREATE TABLE events (
    stream_id uuid NOT NULL,
    version integer NOT NULL,
    position bigint GENERATED ALWAYS AS IDENTITY,
    event_id uuid NOT NULL,
    type text NOT NULL,
    schema_version smallint NOT NULL,
    data json NOT NULL,
    metadata json NOT NULL,
    recorded_at timestamptz NOT NULL,
    PRIMARY KEY (stream_id, version)
);
-- Who reads all events from the beginning (a rebuild, a replay) reads them in this order, which
-- respects the order of versions in each stream.
CREATE UNIQUE INDEX events_by_position ON events (position);

-- Wire-ready records for Kafka, in partitions of an hour that are dropped when they are published.
-- The sequence keeps its cache of 1: within one snapshot the order of positions must respect the
-- order of versions of each stream.
CREATE SEQUENCE outbox_position CACHE 1;

CREATE TABLE outbox (
    position bigint NOT NULL DEFAULT nextval('outbox_position'),
    transaction_id xid8 NOT NULL DEFAULT pg_current_xact_id(),
    topic text NOT NULL,
    partition smallint NOT NULL,
    key bytea NOT NULL,
    value bytea NOT NULL,
    headers bytea NOT NULL, -- packed as a Kafka record has them
    traceparent text, -- only of a trace that is recorded
    recorded_at timestamptz NOT NULL
) PARTITION BY RANGE (recorded_at);
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
-- Old answers are forgotten. They lie in the order of their time, so a summary of each range of
-- pages is enough to find them.
CREATE INDEX idempotency_keys_by_time ON idempotency_keys USING brin (recorded_at)
    WITH (pages_per_range = 16, autosummarize = on);

CREATE TYPE new_event AS (
    event_id uuid,
    type text,
    schema_version smallint,
    data json,
    topic text, -- NULL, as all that follow, for an event that stays inside the service
    partition smallint,
    key bytea,
    value bytea,
    headers bytea, -- their count says one more: that of the version before
    traceparent text
);

CREATE TYPE stored_answer AS (
    scope text,
    key text,
    fingerprint bytea,
    status smallint,
    headers json,
    body bytea
);

-- The header as a Kafka record has it: each text after its length, a number that counts double.
CREATE FUNCTION previous_version_header(version integer) RETURNS bytea IMMUTABLE
RETURN '\x24'::bytea || 'ce_previousversion'::bytea
    || set_byte('\x00'::bytea, 0, 2 * length(version::text)) || version::text::bytea;

-- One append is one statement and one round trip: the answer to repeat, the version check, the
-- events and their outbox rows become visible together or not at all. Each outbox row says which
-- version of its stream left before it, so that a consumer notices when one is missing.
-- What was decided on other streams as well holds only while these have the versions that were read.
-- Errors: HT001 the idempotency key was used, HT002 the expected version is not the current one
-- (which is the error's detail), HT003 one of the other streams has another version.
CREATE FUNCTION append(
    the_stream uuid,
    the_category text,
    expected_version integer,
    the_events new_event[],
    the_metadata json,
    now_at timestamptz,
    answer stored_answer,
    other_streams uuid[] DEFAULT '{}',
    other_versions integer[] DEFAULT '{}'
) RETURNS integer LANGUAGE plpgsql AS $$
DECLARE
    new_version integer := expected_version + cardinality(the_events);
    current integer := expected_version;
    published integer := 0;
    last_published integer;
    event new_event;
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

    IF cardinality(other_streams) > 0 AND EXISTS (
        SELECT FROM unnest(other_streams, other_versions) AS other (stream_id, version)
        LEFT JOIN streams USING (stream_id)
        WHERE streams.version IS DISTINCT FROM other.version
    ) THEN
        RAISE EXCEPTION 'another stream has changed' USING ERRCODE = 'HT003';
    END IF;

    -- To do nothing is a decision as well, and holds only for the version it was made on.
    IF new_version = expected_version THEN
        PERFORM FROM streams WHERE stream_id = the_stream AND version = expected_version FOR SHARE;
        IF NOT FOUND AND (
            expected_version > 0 OR EXISTS (SELECT FROM streams WHERE stream_id = the_stream)
        ) THEN
            RAISE EXCEPTION 'stream has another version' USING ERRCODE = 'HT002', DETAIL = coalesce(
                (SELECT version FROM streams WHERE stream_id = the_stream), 0);
        END IF;
        RETURN expected_version;
    END IF;

    FOR index IN REVERSE cardinality(the_events) .. 1 LOOP
        IF the_events[index].topic IS NOT NULL THEN
            last_published := expected_version + index;
            EXIT;
        END IF;
    END LOOP;

    IF expected_version = 0 THEN
        INSERT INTO streams (stream_id, category, version, published_version)
        VALUES (the_stream, the_category, new_version, coalesce(last_published, 0))
        ON CONFLICT DO NOTHING;
    ELSE
        UPDATE streams
        SET version = new_version,
            published_version = coalesce(last_published, streams.published_version)
        FROM streams AS before
        WHERE streams.stream_id = the_stream AND streams.version = expected_version
          AND before.stream_id = the_stream
        RETURNING before.published_version INTO published;
    END IF;
    IF NOT FOUND THEN
        RAISE EXCEPTION 'stream has another version' USING ERRCODE = 'HT002', DETAIL = coalesce(
            (SELECT version FROM streams WHERE stream_id = the_stream), 0);
    END IF;

    FOREACH event IN ARRAY the_events LOOP
        current := current + 1;
        INSERT INTO events (stream_id, version, event_id, type, schema_version, data, metadata,
                            recorded_at)
        VALUES (the_stream, current, event.event_id, event.type, event.schema_version, event.data,
                the_metadata, now_at);
        CONTINUE WHEN event.topic IS NULL;
        INSERT INTO outbox (topic, partition, key, value, headers, traceparent, recorded_at)
        VALUES (event.topic, event.partition, event.key, event.value,
                event.headers || previous_version_header(published), event.traceparent, now_at);
        published := current;
    END LOOP;

    RETURN new_version;
END
$$;
