-- One row: which relay may publish this service's outbox, and what is published already.
-- published_xmax and published_xip are the snapshot up to which everything was acknowledged. While a
-- large window is paged, target is the snapshot that closes the window and floor_position the last
-- acknowledged position in it. xids mean nothing in another cluster, hence system_identifier.

CREATE TABLE relay (
    only_row boolean PRIMARY KEY DEFAULT true CHECK (only_row),
    owner uuid,
    epoch bigint NOT NULL DEFAULT 0,
    lease_until timestamptz NOT NULL DEFAULT '-infinity',
    published_xmax xid8 NOT NULL DEFAULT '0',
    published_xip xid8[] NOT NULL DEFAULT '{}',
    target pg_snapshot,
    floor_position bigint NOT NULL DEFAULT 0,
    system_identifier bigint
) WITH (fillfactor = 50);

INSERT INTO relay DEFAULT VALUES;
