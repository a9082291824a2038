-- For every hour, how many users bought an item that comes from the place where they live?
--
-- This is the question. The operator (job/processor.py) answers it incrementally, batch by batch,
-- without reading a record twice; this query reads all records at once. `make differential` runs
-- this file in DuckDB over random histories, and a cell that differs is a bug of the job.
--
-- records: what the topics hold
--          (topic, partition, offset, key, value, type, seq, recorded_at)
-- batches: which offsets each batch of the job read, and the watermark that it had
--          (topic, partition, first, "end", batch_id, watermark); "end" is not included
-- All times are in milliseconds since 1970. A batch without a watermark has -1.
--
-- Times of facts are in the years 1970 to 2099, quantities from 1 to 1,000,000, prices from 0.00 to
-- 9999999999.99, versions from 1 to 2147483647 (shared/src/shared/messaging/bounds.py), and no text
-- holds the character U+0000. What has another type or form does not count.

WITH
-- Which batch read a record decides what was known when. A value that is no JSON is null from here
-- on, so that no step below accepts it.
read_records AS (
    SELECT topic, type, seq, "offset", recorded_at, batch_id, watermark,
        try(decode(key)) AS key,
        try_cast(try(decode(value)) AS JSON) AS event
    FROM records
    JOIN batches USING (topic, partition)
    WHERE "offset" >= first AND "offset" < "end"
),

-- When a fact happened, in the one form that the contracts have for it.
facts AS (
    SELECT *,
        event->>(CASE topic WHEN 'orders.v1' THEN '$.ordered_at' ELSE '$.effective_at' END) AS time,
        epoch_ms(date_trunc('ms', try_cast(time AS TIMESTAMPTZ))) AS happened_at
    FROM read_records
    WHERE regexp_full_match(time, '(19[7-9]|20[0-9])[0-9](-[0-9]{2}){2}'
        || 'T([01][0-9]|2[0-3])(:[0-9]{2}){2}(\.[0-9]{1,6})?Z')
),

-- Where a user lives, from an instant on: until the next version begins. A deleted user lives
-- nowhere from then on.
user_versions AS (
    SELECT event->>'$.user_id' AS user_id,
        happened_at AS valid_from,
        event->>'$.address' AS address,
        event->>'$.gender' AS gender,
        seq, batch_id, watermark
    FROM facts
    WHERE topic = 'users.v1' AND type IN ('user-registered', 'user-moved', 'user-deleted')
      AND user_id = key AND valid_from IS NOT NULL AND seq BETWEEN 1 AND 2147483647
      AND list_has_all(
          ['VARCHAR', 'NULL'], json_type(event, ['$.user_id', '$.address', '$.gender'])
      )
      AND (type = 'user-deleted' OR (address IS NOT NULL AND gender IS NOT NULL))
      AND NOT contains(concat(address, gender), chr(0))
),

-- Where an item comes from, from an instant on: a correction can reach back to the beginning.
item_versions AS (
    SELECT event->>'$.item_id' AS item_id,
        happened_at AS valid_from,
        event->>'$.origin' AS origin,
        event->>'$.type' AS item_type,
        seq, batch_id, watermark
    FROM facts
    WHERE topic = 'items.v1' AND type IN ('item-listed', 'item-origin-corrected')
      AND item_id = key AND valid_from IS NOT NULL AND seq BETWEEN 1 AND 2147483647
      AND list_has_all(['VARCHAR'], json_type(event, ['$.item_id', '$.origin', '$.type']))
      AND NOT contains(origin || item_type, chr(0))
),

-- Confirmations and cancellations. One from more than ten minutes ahead is a mistake: it would make
-- all orders after it late. A line that is none makes its whole order none.
order_events AS (
    SELECT event->>'$.order_id' AS order_id,
        event->>'$.user_id' AS user_id,
        happened_at AS ordered_at,
        try_cast(event->'$.lines' AS JSON[]) AS lines,
        try_cast(event->>'$.was_confirmed' AS BOOLEAN) AS was_confirmed,
        type, "offset", batch_id, watermark
    FROM facts
    WHERE topic = 'orders.v1' AND type IN ('order-confirmed', 'order-cancelled')
      AND user_id = key AND NOT contains(order_id, chr(0)) AND len(lines) > 0
      AND ordered_at <= recorded_at + 600000
      AND list_has_all(['VARCHAR'], json_type(event, ['$.order_id', '$.user_id']))
      AND list_has_all(['BOOLEAN', 'NULL'], json_type(event, ['$.was_confirmed']))
      AND list_bool_and(list_transform(lines, lambda line: coalesce(
          json_type(line, '$.item_id') = 'VARCHAR' AND NOT contains(line->>'$.item_id', chr(0))
          AND json_type(line, '$.quantity') = 'UBIGINT'
          AND try_cast(line->>'$.quantity' AS BIGINT) BETWEEN 1 AND 1000000
          AND json_type(line, '$.unit_price') = 'VARCHAR'
          AND regexp_full_match(line->>'$.unit_price', '[0-9]{1,10}(\.[0-9]{1,2})?'),
          false
      )))
),

-- An order at or before the watermark is late, and dropped: its hour may be final.
order_events_in_time AS (
    SELECT *
    FROM order_events
    WHERE ordered_at > watermark
),

-- Kafka delivers at least once, so an order counts from its first confirmation only.
confirmed_orders AS (
    SELECT *
    FROM order_events_in_time
    WHERE type = 'order-confirmed'
    QUALIFY row_number() OVER (PARTITION BY order_id ORDER BY "offset") = 1
),

-- A cancellation takes its order out again, also out of an hour that has passed.
orders AS (
    SELECT *
    FROM confirmed_orders
    WHERE NOT EXISTS (
        SELECT 1
        FROM order_events_in_time AS cancelled
        WHERE cancelled.order_id = confirmed_orders.order_id
          AND cancelled.type = 'order-cancelled' AND cancelled.was_confirmed
          AND cancelled."offset" > confirmed_orders."offset"
    )
),

-- A purchase is one line of an order: each item has an origin of its own.
order_lines AS (
    SELECT order_id, user_id, ordered_at, batch_id,
        unnest(lines) AS line,
        line->>'$.item_id' AS item_id
    FROM orders
),

-- Where the buyer lived when they ordered. A version counts that was known when the order was read,
-- and one that became known later while the order could still be corrected.
user_at_order AS (
    SELECT order_id, address, gender
    FROM orders
    JOIN user_versions USING (user_id)
    WHERE valid_from <= ordered_at
      AND (user_versions.batch_id <= orders.batch_id OR ordered_at > user_versions.watermark)
    QUALIFY row_number() OVER (PARTITION BY order_id ORDER BY valid_from DESC, seq DESC) = 1
),

-- Where the item came from when it was ordered, by the same rule.
item_at_order AS (
    SELECT order_id, item_id, origin, item_type
    FROM order_lines
    JOIN item_versions USING (item_id)
    WHERE valid_from <= ordered_at
      AND (item_versions.batch_id <= order_lines.batch_id OR ordered_at > item_versions.watermark)
    QUALIFY row_number() OVER (PARTITION BY order_id, item_id ORDER BY valid_from DESC, seq DESC) = 1
),

-- Local is what comes from the place where its buyer lived; what is unknown equals nothing.
purchases AS (
    SELECT ordered_at - ordered_at % 3600000 AS hour,
        coalesce(address = origin, false) AS is_local,
        user_id, item_id, item_type, address, gender,
        (line->>'$.quantity')::BIGINT AS quantity,
        ((line->>'$.unit_price')::DECIMAL(18, 2) * 100)::BIGINT AS unit_cents
    FROM order_lines
    LEFT JOIN user_at_order USING (order_id)
    LEFT JOIN item_at_order USING (order_id, item_id)
),

-- The local buyers of an hour are count(DISTINCT user_id) of its cells with a user: distinct users
-- cannot be summed, so a cell names its user. What is not local needs neither user nor item.
cells AS (
    SELECT hour,
        CASE WHEN is_local THEN item_id ELSE '' END AS item_id,
        coalesce(item_type, '') AS item_type,
        coalesce(address, '') AS address,
        coalesce(gender, '') AS gender,
        CASE WHEN is_local THEN user_id ELSE '' END AS user_id,
        count(*)::BIGINT AS purchases,
        sum(quantity)::BIGINT AS quantity,
        sum(quantity * unit_cents)::BIGINT AS cents
    FROM purchases
    GROUP BY ALL
),

-- No order is lost without a trace: each one is counted, or counted as late.
tally AS (
    SELECT count(DISTINCT order_id) FILTER (WHERE ordered_at > watermark) AS counted,
        count(*) FILTER (WHERE ordered_at <= watermark) AS late
    FROM order_events
    WHERE type = 'order-confirmed'
)

-- Without cells there is one row, which has the tally alone.
SELECT cells.*, tally.*
FROM tally
LEFT JOIN cells ON true
