-- Which hours a batch changed, for those who want to hear of changes; of older batches nobody knows.
-- milliseconds is how long the batch took, until just before its commit.
ALTER TABLE batches ADD COLUMN hours timestamptz[];
ALTER TABLE batches ADD COLUMN milliseconds bigint;
