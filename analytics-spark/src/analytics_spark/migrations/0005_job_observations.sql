-- What is measured from outside of the job, so that it is true also while the job is stopped.

CREATE VIEW job_observations AS
WITH active AS (
    SELECT * FROM epochs ORDER BY committed_at DESC LIMIT 1
)
SELECT 'hometown.job.commit.age' AS name, 's' AS unit,
       'Time since the last batch was committed' AS description,
       '{}'::json AS attributes,
       extract(epoch FROM clock_timestamp() - committed_at)::float8 AS value
FROM active
UNION ALL
SELECT 'hometown.job.event.lag', 's', 'From the latest order that was counted to now', '{}',
       extract(epoch FROM clock_timestamp() - latest_order_at)::float8
FROM active
WHERE latest_order_at IS NOT NULL
UNION ALL
SELECT 'hometown.job.watermark.lag', 's', 'From the watermark to the latest order', '{}',
       extract(epoch FROM latest_order_at - watermark)::float8
FROM active
WHERE watermark IS NOT NULL
UNION ALL
SELECT 'hometown.job.late', '{order}', 'Orders that were too late to count, in all', '{}',
       late::float8
FROM active;

-- Spark keeps its offsets in its checkpoint; these are the ones that came with the cells.
CREATE VIEW consumer_positions AS
SELECT 'analytics-job' AS consumer, topic, partition::integer AS partition,
       (range ->> 1)::bigint AS position
FROM (SELECT offsets FROM batches ORDER BY committed_at DESC LIMIT 1) AS newest,
     jsonb_each(offsets) AS topics (topic, partitions),
     jsonb_each(partitions) AS ranges (partition, range);
