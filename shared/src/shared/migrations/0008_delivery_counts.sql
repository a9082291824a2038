-- How many versions of streams have left this service, and how many each of its consumers has
-- consumed. The observer compares the sums across services, each half minute: a message that was
-- lost behind the last one of its stream leaves no gap, and would be noticed by nothing else.
CREATE VIEW delivery_counts AS
SELECT 'written' AS stage, category AS name, sum(published_version)::bigint AS versions
FROM streams
GROUP BY category
UNION ALL
SELECT 'applied', consumer, sum(version)::bigint
FROM consumed_versions
GROUP BY consumer;
