-- What each comparison of the final hours with the event stores has found.
CREATE TABLE reconciliations (
    id bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    ended_at timestamptz NOT NULL DEFAULT clock_timestamp(),
    since timestamptz, -- the hours compared are those in [since, until); none before there is one
    until timestamptz,
    purchases bigint NOT NULL,
    undecided bigint NOT NULL,
    differences bigint NOT NULL,
    hours timestamptz[] NOT NULL -- that differ, the first of them
);
