-- A cell is what one user bought of one item in one hour while living where the item comes from.
-- Distinct buyers cannot be summed, so they are counted from these rows when somebody asks.
CREATE TABLE cells (
    hour timestamptz NOT NULL,
    user_id text NOT NULL,
    item_id text NOT NULL,
    item_type text NOT NULL,
    address text NOT NULL,
    gender text NOT NULL,
    purchases bigint NOT NULL,
    quantity bigint NOT NULL,
    cents bigint NOT NULL,
    PRIMARY KEY (hour, user_id, item_id, item_type, address, gender)
);

-- How far each query has come: moved in the transaction that moves the cells, so that a batch which
-- Spark runs again changes nothing. The counts are totals since the query's first batch; the number
-- of buckets is fixed with it, because its state is kept by bucket.
CREATE TABLE epochs (
    query_id uuid PRIMARY KEY,
    batch_id bigint NOT NULL,
    buckets integer NOT NULL,
    watermark timestamptz,
    latest_order_at timestamptz,
    trace_id text NOT NULL,
    committed_at timestamptz NOT NULL DEFAULT clock_timestamp(),
    counted bigint NOT NULL,
    late bigint NOT NULL,
    duplicates bigint NOT NULL,
    cancellations bigint NOT NULL,
    ignored bigint NOT NULL,
    bad bigint NOT NULL
);

-- The last batches of each query: what each of them read and counted, and where its trace is.
-- offsets is {topic: {partition: [first, end]}}, end not included.
CREATE TABLE batches (
    query_id uuid NOT NULL,
    batch_id bigint NOT NULL,
    offsets jsonb NOT NULL,
    watermark timestamptz,
    trace_id text NOT NULL,
    committed_at timestamptz NOT NULL DEFAULT clock_timestamp(),
    counted bigint NOT NULL,
    late bigint NOT NULL,
    duplicates bigint NOT NULL,
    cancellations bigint NOT NULL,
    ignored bigint NOT NULL,
    bad bigint NOT NULL,
    PRIMARY KEY (query_id, batch_id)
);
CREATE INDEX batches_by_time ON batches (committed_at);
