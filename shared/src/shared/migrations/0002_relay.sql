-- One row: which relay may publish this service's outbox, and what is published already.
-- published_xmax and published_xip are the snapshot up to which everything was acknowledged. While a
-- large window is paged, target is the snapshot that closes the window and floor_position the last
-- acknowledged position in it. xids mean nothing in another cluster, hence system_identifier.

CREATE TABLE relay (
    only_row boolean PRIMARY KEY DEFAULT true CHECK (only_row),
    owner uuid,
    epoch bigint NOT NULL DEFAULT 0,
    lease_until timestamptz NOT NULL DEFAULT '-infinity',
    published_xmax xid8 NOT NULL DEFAULT '0',
    published_xip xid8[] NOT NULL DEFAULT '{}',
    target pg_snapshot,
    floor_position bigint NOT NULL DEFAULT 0,
    system_identifier bigint
) WITH (fillfactor = 50);

INSERT INTO relay DEFAULT VALUES;

-- Partitions of the outbox. The functions belong to the owner of the tables, so that the service's
-- own role needs no right to create or drop anything. None of them waits for a lock for longer than
-- its lock_timeout, and the caller gives it a time-out, for as long as it may hold one. What could
-- not be done is tried again at the next round.

-- Where a row goes whose hour has no partition (the relay was down, a clock is far off).
CREATE TABLE outbox_rest PARTITION OF outbox DEFAULT;

CREATE FUNCTION create_outbox_partitions(from_at timestamptz, hours integer) RETURNS integer
LANGUAGE plpgsql SECURITY DEFINER SET search_path = public SET lock_timeout = '20ms' AS $$
DECLARE
    starts timestamptz;
    name text;
    created integer := 0;
BEGIN
    FOR hour IN 0 .. hours - 1 LOOP
        starts := date_trunc('hour', from_at, 'UTC') + make_interval(hours => hour);
        name := 'outbox_' || to_char(starts AT TIME ZONE 'UTC', 'YYYYMMDD_HH24');
        CONTINUE WHEN to_regclass(name) IS NOT NULL;
        BEGIN
            -- To attach a table locks no writers out, as PARTITION OF would, except those to
            -- outbox_rest, which is searched for rows of this hour.
            EXECUTE format('CREATE TABLE %I (LIKE outbox INCLUDING ALL)', name);
            EXECUTE format('ALTER TABLE outbox ATTACH PARTITION %I FOR VALUES FROM (%L) TO (%L)',
                           name, starts, starts + interval '1 hour');
            created := created + 1;
        EXCEPTION WHEN check_violation THEN
            NULL; -- rows of this hour are in outbox_rest already, and may stay there
        END;
    END LOOP;
    RETURN created;
END
$$;

-- The partitions that ended before `before`, oldest first, and the rest.
CREATE FUNCTION ended_outbox_partitions(before timestamptz) RETURNS SETOF text
LANGUAGE sql STABLE SET search_path = public AS $$
    SELECT relname::text
    FROM pg_inherits JOIN pg_class ON pg_class.oid = inhrelid
    WHERE inhparent = 'outbox'::regclass
      AND (relname = 'outbox_rest'
           OR to_timestamp(substr(relname, 8) || '+00', 'YYYYMMDD_HH24TZH')
              + interval '1 hour' <= before)
    ORDER BY relname
$$;

-- Empties a partition if all of its rows are published; true when it is empty. Only a partition that
-- nobody writes to any more can be locked in time.
CREATE FUNCTION empty_outbox_partition(name text) RETURNS boolean
LANGUAGE plpgsql SECURITY DEFINER SET search_path = public SET lock_timeout = '20ms'
SET enable_seqscan = off AS $$ -- to find nothing must not mean to read everything
DECLARE
    any_row boolean;
    unpublished boolean;
BEGIN
    IF NOT EXISTS (SELECT FROM pg_inherits
                   WHERE inhparent = 'outbox'::regclass AND inhrelid = to_regclass(name)) THEN
        RAISE EXCEPTION '% is no partition of the outbox', name;
    END IF;
    EXECUTE format('LOCK TABLE %I IN ACCESS EXCLUSIVE MODE', name);
    EXECUTE format('SELECT EXISTS (SELECT FROM %I)', name) INTO any_row;
    IF NOT any_row THEN
        RETURN true;
    END IF;
    EXECUTE format(
        'SELECT relay.target IS NOT NULL
             OR EXISTS (SELECT FROM %1$I WHERE transaction_id >= relay.published_xmax)
             OR EXISTS (SELECT FROM %1$I WHERE transaction_id = ANY(relay.published_xip))
         FROM relay', name) INTO unpublished;
    IF unpublished THEN
        RETURN false;
    END IF;
    EXECUTE format('TRUNCATE %I', name);
    RETURN true;
END
$$;

-- Deletes rows of the rest that are published; gives their number. While the rows of this hour go
-- there, one of them is unpublished at any time, and it would never be emptied.
CREATE FUNCTION delete_from_outbox_rest(rows_max integer) RETURNS integer
LANGUAGE sql SECURITY DEFINER SET search_path = public SET enable_seqscan = off AS $$
    WITH deleted AS (
        DELETE FROM outbox_rest
        WHERE ctid = ANY (ARRAY(
            SELECT outbox_rest.ctid
            FROM outbox_rest, relay
            WHERE relay.target IS NULL
              AND transaction_id < published_xmax
              AND transaction_id <> ALL (published_xip)
            ORDER BY transaction_id, position
            LIMIT rows_max
        ))
        RETURNING 1
    )
    SELECT count(*)::integer FROM deleted
$$;

-- Drops an empty partition, which locks the whole outbox, but for no longer than a catalogue entry
-- takes: its files were emptied before.
CREATE FUNCTION drop_empty_outbox_partition(name text) RETURNS boolean
LANGUAGE plpgsql SECURITY DEFINER SET search_path = public SET lock_timeout = '20ms' AS $$
DECLARE
    any_row boolean;
BEGIN
    IF name = 'outbox_rest' OR NOT EXISTS (
        SELECT FROM pg_inherits
        WHERE inhparent = 'outbox'::regclass AND inhrelid = to_regclass(name)
    ) THEN
        RETURN false;
    END IF;
    LOCK TABLE outbox IN ACCESS EXCLUSIVE MODE;
    EXECUTE format('SELECT EXISTS (SELECT FROM %I)', name) INTO any_row;
    IF any_row THEN
        RETURN false;
    END IF;
    EXECUTE format('DROP TABLE %I', name);
    RETURN true;
END
$$;

SELECT create_outbox_partitions(now(), 2);
