-- What is measured from outside of the processes, so that it is true also while they are stopped. The
-- observer reads every view whose name ends with _observations: a row is a value of a gauge, and the
-- reader needs no right on any table.

-- Rows of the outbox that are not acknowledged yet, the oldest of them: 10,000 stand for more. Each
-- branch is ordered so that it is a range of the index, see the relay's own queries.
CREATE VIEW pending_outbox AS
SELECT pending.recorded_at
FROM relay, LATERAL (
    (SELECT recorded_at, position
     FROM outbox
     WHERE transaction_id >= relay.published_xmax
     ORDER BY transaction_id, position
     LIMIT 10000)
    UNION ALL
    (SELECT recorded_at, position
     FROM outbox
     WHERE transaction_id = ANY (relay.published_xip) AND transaction_id < relay.published_xmax
     ORDER BY transaction_id, position
     LIMIT 10000)
) AS pending
WHERE relay.target IS NULL OR position > relay.floor_position;

CREATE VIEW delivery_observations AS
WITH outbox_state AS (
    SELECT count(*) AS pending, min(recorded_at) AS oldest FROM pending_outbox
)
SELECT 'hometown.outbox.rows' AS name, '{row}' AS unit,
       'Rows of the outbox that the broker has not acknowledged, 10,000 at most' AS description,
       '{}'::json AS attributes, pending::float8 AS value
FROM outbox_state
UNION ALL
SELECT 'hometown.outbox.age', 's', 'How long the oldest of them has waited', '{}',
       coalesce(greatest(0, extract(epoch FROM clock_timestamp() - oldest)), 0)::float8
FROM outbox_state
UNION ALL
SELECT 'hometown.relay.holders', '1', 'Relays that hold the lease: one, or none', '{}',
       (lease_until > clock_timestamp())::integer::float8
FROM relay
UNION ALL
SELECT 'hometown.parked.streams', '{stream}', 'Streams that wait for an operator',
       json_build_object('consumer', consumer), count(*)::float8
FROM parked_streams
GROUP BY consumer
UNION ALL
SELECT 'hometown.parked.age', 's', 'How long the first of them has waited',
       json_build_object('consumer', consumer),
       extract(epoch FROM clock_timestamp() - min(parked_at))::float8
FROM parked_streams
GROUP BY consumer;
