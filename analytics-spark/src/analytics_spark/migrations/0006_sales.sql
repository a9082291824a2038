-- All purchases of an hour by item, also those that are not local. Cells of those have no item: with
-- item and origin next to their users' places there would be many more of them.
--
-- Hours that were counted before have no sales, or too few: readers compare their sums with those of
-- the cells. A rebuild counts all hours again.
DO $$
DECLARE
    generation record;
BEGIN
    FOR generation IN SELECT number, is_active FROM generations WHERE dropped_at IS NULL LOOP
        EXECUTE format('
            CREATE TABLE generation_%s.sales (
                hour timestamptz NOT NULL,
                item_id text NOT NULL,
                item_type text NOT NULL,
                origin text NOT NULL,
                purchases bigint NOT NULL,
                quantity bigint NOT NULL,
                cents bigint NOT NULL,
                PRIMARY KEY (hour, item_id, item_type, origin)
            )', generation.number);
        IF generation.is_active THEN
            EXECUTE format(
                'CREATE VIEW sales AS SELECT * FROM generation_%s.sales', generation.number
            );
        END IF;
    END LOOP;
END
$$;
