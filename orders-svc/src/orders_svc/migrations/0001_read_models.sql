-- Read models: the items on offer, and orders by user and by status.

CREATE TABLE catalogue (
    item_id uuid PRIMARY KEY,
    name text NOT NULL,
    type text NOT NULL,
    origin text NOT NULL,
    price numeric(12, 2) NOT NULL,
    delisted boolean NOT NULL,
    origin_since timestamptz NOT NULL,
    price_since timestamptz NOT NULL,
    version integer NOT NULL
);

CREATE TABLE order_summaries (
    order_id uuid PRIMARY KEY,
    user_id uuid NOT NULL,
    status text NOT NULL,
    reason text,
    amount numeric(14, 2) NOT NULL,
    ordered_at timestamptz NOT NULL,
    placed_at timestamptz NOT NULL,
    version integer NOT NULL
);
CREATE INDEX order_summaries_by_user ON order_summaries (user_id, order_id);
CREATE INDEX order_summaries_pending ON order_summaries (placed_at) WHERE status = 'pending';
