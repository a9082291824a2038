-- When the loop of the holder last came round, written with each renewal of its lease: a relay that
-- has nothing to publish moves no position, and one that hangs can still renew its lease.
ALTER TABLE relay ADD COLUMN beat_at timestamptz;
