-- The versions of read models that were served, since when the workers have filled them: the newest
-- row is that of the version which is served.
CREATE TABLE served_versions (
    number bigint GENERATED ALWAYS AS IDENTITY,
    read_model text NOT NULL,
    version integer NOT NULL CHECK (version > 0),
    served_at timestamptz NOT NULL DEFAULT clock_timestamp(),
    PRIMARY KEY (read_model, number)
);
