-- A stream is known by its topic and its id. Two services can have streams with one id: the id of a
-- user is chosen by who issues tokens.
--
-- The topic of what a release before has consumed is unknown, '': it is that of the message that
-- follows. A worker of that release cannot park a stream any more, and retries until it is replaced.

ALTER TABLE consumed_versions
    ADD COLUMN topic text NOT NULL DEFAULT '',
    DROP CONSTRAINT consumed_versions_pkey,
    ADD PRIMARY KEY (consumer, stream_id, topic);

ALTER TABLE parked_messages
    DROP CONSTRAINT parked_messages_consumer_stream_id_fkey,
    DROP CONSTRAINT parked_messages_pkey,
    ADD PRIMARY KEY (consumer, stream_id, topic, version);

ALTER TABLE parked_streams
    DROP CONSTRAINT parked_streams_pkey,
    ADD PRIMARY KEY (consumer, stream_id, topic);

-- What waited with a stream of the same id.
INSERT INTO parked_streams (consumer, stream_id, topic, reason, parked_at)
SELECT consumer, stream_id, topic, 'waited with a stream of the same id', min(parked_at)
FROM parked_messages
GROUP BY consumer, stream_id, topic
ON CONFLICT DO NOTHING;

ALTER TABLE parked_messages
    ADD FOREIGN KEY (consumer, stream_id, topic) REFERENCES parked_streams;

ALTER TABLE parked_audit ADD COLUMN topic text;
