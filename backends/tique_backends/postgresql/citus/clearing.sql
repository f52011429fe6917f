-- Versions that count for nothing go from all shards in a transaction of their own
-- (moves.py): what guest_clear (guests_sql/clients.sql) deletes together with the
-- coordinator's rows is the coordinator's own.
CREATE OR REPLACE FUNCTION tique.guest_clear(stamps bigint[]) RETURNS void
LANGUAGE plpgsql SET search_path = pg_catalog, pg_temp
AS $$
DECLARE
    id bigint;
BEGIN
    FOR id IN SELECT t.id FROM tique."tables" AS t WHERE NOT EXISTS (
        SELECT FROM pg_dist_partition AS p WHERE p.logicalrelid = tique.guest_cache(t.id)::regclass
    ) LOOP
        EXECUTE format('DELETE FROM %s WHERE _cts = ANY ($1)', tique.guest_cache(id))
        USING stamps;
    END LOOP;
END
$$;

CREATE OR REPLACE FUNCTION tique.guest_clear_shards(stamps bigint[]) RETURNS void
LANGUAGE plpgsql SET search_path = pg_catalog, pg_temp
AS $$
DECLARE
    id bigint;
BEGIN
    FOR id IN SELECT t.id FROM tique."tables" AS t WHERE EXISTS (
        SELECT FROM pg_dist_partition AS p WHERE p.logicalrelid = tique.guest_cache(t.id)::regclass
    ) LOOP
        EXECUTE format('DELETE FROM %s WHERE _cts = ANY ($1)', tique.guest_cache(id))
        USING stamps;
    END LOOP;
END
$$;

REVOKE ALL ON FUNCTION tique.guest_clear(bigint[]), tique.guest_clear_shards(bigint[])
    FROM PUBLIC;
