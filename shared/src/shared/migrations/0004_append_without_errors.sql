-- `append` whose refusals are values. A lost race is an expected outcome: as an error it was a line
-- with its statement in the server's log, for each of them.

-- What was said of `append` holds here (0001_event_store.sql). After a refusal nothing is recorded,
-- not even the answer, which is written first: what others write under the same key waits for it.
--   refusal         stream_version
--   NULL            the new version
--   'key-used'      NULL; the idempotency key was used
--   'version'       the current version, which is not the expected one
--   'stale-read'    NULL; one of the other streams has another version
CREATE FUNCTION try_append(
    the_stream uuid,
    the_category text,
    expected_version integer,
    the_events new_event[],
    the_metadata json,
    now_at timestamptz,
    answer stored_answer,
    other_streams uuid[] DEFAULT '{}',
    other_versions integer[] DEFAULT '{}',
    OUT refusal text,
    OUT stream_version integer
) LANGUAGE plpgsql AS $$
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
            refusal := 'key-used';
            RETURN;
        END IF;
    END IF;

    IF cardinality(other_streams) > 0 AND EXISTS (
        SELECT FROM unnest(other_streams, other_versions) AS other (stream_id, version)
        LEFT JOIN streams USING (stream_id)
        WHERE streams.version IS DISTINCT FROM other.version
    ) THEN
        refusal := 'stale-read';
    ELSIF new_version = expected_version THEN
        -- To do nothing is a decision as well, and holds only for the version it was made on.
        PERFORM FROM streams WHERE stream_id = the_stream AND version = expected_version FOR SHARE;
        IF NOT FOUND AND (
            expected_version > 0 OR EXISTS (SELECT FROM streams WHERE stream_id = the_stream)
        ) THEN
            refusal := 'version';
        END IF;
    ELSE
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
            refusal := 'version';
        END IF;
    END IF;

    IF refusal IS NOT NULL THEN
        IF answer.key IS NOT NULL THEN
            DELETE FROM idempotency_keys WHERE scope = answer.scope AND key = answer.key;
        END IF;
        IF refusal = 'version' THEN
            stream_version := coalesce(
                (SELECT version FROM streams WHERE stream_id = the_stream), 0);
        END IF;
        RETURN;
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

    stream_version := new_version;
END
$$;

-- For processes of the release before, which run until all are replaced: the same with errors.
CREATE OR REPLACE FUNCTION append(
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
    outcome record := try_append(the_stream, the_category, expected_version, the_events,
                                 the_metadata, now_at, answer, other_streams, other_versions);
BEGIN
    CASE
        WHEN outcome.refusal IS NULL THEN
            RETURN outcome.stream_version;
        WHEN outcome.refusal = 'key-used' THEN
            RAISE EXCEPTION 'idempotency key was used' USING ERRCODE = 'HT001';
        WHEN outcome.refusal = 'version' THEN
            RAISE EXCEPTION 'stream has another version' USING ERRCODE = 'HT002',
                DETAIL = outcome.stream_version;
        ELSE
            RAISE EXCEPTION 'another stream has changed' USING ERRCODE = 'HT003';
    END CASE;
END
$$;
