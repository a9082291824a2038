-- What the observer reads of a consumer that is no consumer group: Spark keeps its offsets in its
-- checkpoint, and these are the ones that came with the cells.

-- When the query was last seen to run: without anything to read it moves no position.
CREATE TABLE beats (
    consumer text PRIMARY KEY,
    beat_at timestamptz NOT NULL
);

CREATE VIEW consumer_positions AS
SELECT 'analytics-job' AS consumer, topic, partition::integer AS partition,
       (range ->> 1)::bigint AS position
FROM (SELECT offsets FROM batches ORDER BY committed_at DESC LIMIT 1) AS newest,
     jsonb_each(offsets) AS topics (topic, partitions),
     jsonb_each(partitions) AS ranges (partition, range);

CREATE VIEW consumer_progress AS
SELECT consumer, beat_at, committed_at, latest_order_at AS event_at, watermark
FROM beats
LEFT JOIN (SELECT * FROM epochs ORDER BY committed_at DESC LIMIT 1) AS newest ON true;
