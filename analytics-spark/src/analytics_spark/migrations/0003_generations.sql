-- The job's tables by generation, each in a schema of its own and filled from a checkpoint of its
-- own. A rebuild fills the next one beside the one that is shown; readers see the active one through
-- the views, and the job writes into its own generation, which comes first on its search path.
CREATE TABLE generations (
    number integer PRIMARY KEY,
    checkpoint text NOT NULL, -- a folder below CHECKPOINT_DIR
    is_active boolean NOT NULL DEFAULT false,
    began_at timestamptz NOT NULL DEFAULT clock_timestamp(),
    built_at timestamptz, -- when a rebuild had read all that was in the topics at its start
    shown_until timestamptz, -- when another one took its place
    dropped_at timestamptz -- its number is not used again, so that nothing old is taken for it
);
CREATE UNIQUE INDEX one_generation_is_active ON generations (is_active) WHERE is_active;

-- What is there becomes the first one, with its checkpoint where it always was.
INSERT INTO generations (number, checkpoint, is_active) VALUES (1, '.', true);

CREATE SCHEMA generation_1;
ALTER TABLE cells SET SCHEMA generation_1;
ALTER TABLE epochs SET SCHEMA generation_1;
ALTER TABLE batches SET SCHEMA generation_1;

-- All columns, whatever a migration of before has added.
CREATE VIEW cells AS SELECT * FROM generation_1.cells;
CREATE VIEW epochs AS SELECT * FROM generation_1.epochs;
CREATE VIEW batches AS SELECT * FROM generation_1.batches;
