-- Read model: the last event of each thing.

CREATE TABLE thing_digest (
    thing_id uuid PRIMARY KEY,
    type text NOT NULL,
    at timestamptz NOT NULL,
    version integer NOT NULL
);
