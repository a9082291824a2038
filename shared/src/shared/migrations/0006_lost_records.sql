-- What a relay and a consumer remember, so that records which Kafka or PostgreSQL has lost are
-- noticed: a broker loses those that were not on its disk at a power cut, and a database that is
-- restored to an older moment loses the newest events.

-- The offset behind the last record that the broker has acknowledged, by "topic/partition"; it is
-- stored together with the checkpoint. Why no relay publishes until a replay. And the timeline of
-- the server's log, which is another one after a restore to an older moment.
ALTER TABLE relay
    ADD COLUMN acknowledged json NOT NULL DEFAULT '{}',
    ADD COLUMN records_lost text,
    ADD COLUMN timeline text;

CREATE FUNCTION current_timeline() RETURNS text STABLE
RETURN left(pg_walfile_name(pg_current_wal_lsn()), 8);

CREATE FUNCTION is_restored() RETURNS boolean STABLE
RETURN (SELECT coalesce(timeline <> current_timeline(), false) FROM relay);

-- Another event under the same version is not a repeat. A process of the release before writes the
-- version alone: the id counts only together with the version that it is of.
ALTER TABLE consumed_versions
    ADD COLUMN event_version integer,
    ADD COLUMN event_id uuid;
