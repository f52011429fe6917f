-- The rights of a guest: a role that uses the database without being a member of the
-- role that owns schema tique. It has USAGE on the schema, and EXECUTE on the functions
-- that are granted at the end of grants.sql; the tables of the schema are the owner's.
--
-- The caller's role
--   Functions that depend on it are called through calls.sql, which makes sure that the
--   code runs as the role that its session goes by, tique.guest(). All of them run with
--   the owner's rights, in a search path of their own. Privileges count that are there
--   at this moment, on the table as a whole.
--
-- Arguments that are checked
--   Writes that a table's privileges do not allow. Versions that the cache table would
--   not take, or other processes could not read: one such entry would stop all
--   processes that catch up. The number of a transaction that is not its own client's:
--   outcomes go by it. The timestamp up to which a table is folded, drained or pruned:
--   sts and lambda bound it. That a client or a timestamp is in doubt.
--
-- Objects of the caller's
--   None is read or written here but a managed table, behind guest_expect_own: rows and
--   their texts come as arguments. A temporary table could have its maker's code, and
--   would run it with the owner's rights.
--
-- Arguments that are not checked
--   The keys of the caller's write set, and which rows were there before. So a role
--   that calls these functions by hand can break the isolation and the keys of the
--   tables that it may write, of no others.
--
-- Isolation
--   Functions that conclude from rows that are not there (a log entry, a fence) refuse a
--   PostgreSQL transaction whose statements share a snapshot.

-- The role that the session goes by; the code at hand may run as another one.
CREATE FUNCTION tique.guest() RETURNS name
LANGUAGE plpgsql STABLE SET search_path = pg_catalog, pg_temp
AS $$
BEGIN
    RETURN CASE current_setting('role') WHEN 'none' THEN session_user
        ELSE current_setting('role')::name END;
END
$$;

CREATE FUNCTION tique.guest_may(place regclass, privilege text) RETURNS boolean
LANGUAGE sql STABLE SET search_path = pg_catalog, pg_temp
AS $$
    SELECT has_table_privilege(tique.guest(), c.oid, privilege)
        AND has_schema_privilege(tique.guest(), c.relnamespace, 'USAGE')
        AND NOT c.relrowsecurity
    FROM pg_class AS c WHERE c.oid = place
$$;

CREATE FUNCTION tique.guest_place(id bigint) RETURNS regclass
LANGUAGE plpgsql STABLE SET search_path = pg_catalog, pg_temp
AS $$
DECLARE
    place regclass;
BEGIN
    SELECT to_regclass(format('%I.%I', t.schema_name, t.table_name)) INTO place
    FROM tique."tables" AS t WHERE t.id = guest_place.id;
    IF place IS NULL THEN
        RAISE EXCEPTION USING ERRCODE = '42P01', MESSAGE = 'a table was dropped meanwhile';
    END IF;
    RETURN place;
END
$$;

CREATE FUNCTION tique.guest_cache(id bigint) RETURNS text
LANGUAGE sql STABLE SET search_path = pg_catalog, pg_temp
AS $$
    SELECT format('tique.%I', 'tique_cache_' || t.id)
    FROM tique."tables" AS t WHERE t.id = guest_cache.id
$$;

-- The table that versions are written to first, and what brings them from there to the cache
-- table; and a source of the storage rows that a commit's versions ($2) may be of. (Of a
-- distributed table these are others: citus/shards.sql.)
CREATE FUNCTION tique.guest_target(id bigint) RETURNS text
LANGUAGE sql STABLE SET search_path = pg_catalog, pg_temp
AS $$ SELECT tique.guest_cache(id) $$;

CREATE FUNCTION tique.guest_spread(id bigint) RETURNS void
LANGUAGE sql VOLATILE SET search_path = pg_catalog, pg_temp
AS $$ SELECT $$;

-- Fails for a table that cannot be moved in one transaction.
CREATE FUNCTION tique.guest_expect_whole(id bigint) RETURNS void
LANGUAGE sql STABLE SET search_path = pg_catalog, pg_temp
AS $$ SELECT $$;

CREATE FUNCTION tique.guest_stored(place regclass) RETURNS text
LANGUAGE sql STABLE SET search_path = pg_catalog, pg_temp
AS $$ SELECT 'ONLY ' || place::text $$;

CREATE FUNCTION tique.guest_refuse(what text) RETURNS void
LANGUAGE plpgsql SET search_path = pg_catalog, pg_temp
AS $$
BEGIN
    RAISE EXCEPTION USING ERRCODE = '42501', MESSAGE = what;
END
$$;

CREATE FUNCTION tique.guest_sees_all() RETURNS void
LANGUAGE plpgsql SET search_path = pg_catalog, pg_temp
AS $$
BEGIN
    IF current_setting('transaction_isolation') IN ('repeatable read', 'serializable')
    THEN
        RAISE EXCEPTION USING ERRCODE = '25001',
            MESSAGE = 'the transaction is not at READ COMMITTED';
    END IF;
END
$$;

-- What a statement on the table could run that is neither PostgreSQL's own nor a superuser's
-- extension's, when it is planned (constants in indexes and statistics are computed then)
-- or executed: triggers, rules, policies, heirs; functions, operators and domains that its
-- constraints, indexes, statistics and types go back to; casts, where a column was given
-- another type than its versions have, and one of both is not PostgreSQL's. A CHECK may also
-- call functions of PostgreSQL's own that run texts as SQL, none of which is immutable.
CREATE FUNCTION tique.guest_strange(place regclass) RETURNS text
LANGUAGE plpgsql STABLE SET search_path = pg_catalog, pg_temp
AS $$
BEGIN
    -- A PL/pgSQL function, since that keeps its plan.
    RETURN (
        WITH RECURSIVE trusted AS (
            SELECT r.oid FROM pg_roles AS r WHERE r.rolsuper
            UNION SELECT n.nspowner FROM pg_namespace AS n WHERE n.nspname = 'tique'
        ), used(class, id) AS (
            SELECT 'pg_class'::regclass::oid, place::oid
            UNION
            SELECT more.class, more.id FROM used AS u CROSS JOIN LATERAL (
                SELECT d.refclassid, d.refobjid FROM pg_depend AS d
                WHERE d.classid = u.class AND d.objid = u.id AND d.refclassid IN (
                    'pg_proc'::regclass, 'pg_operator'::regclass, 'pg_type'::regclass,
                    'pg_opclass'::regclass, 'pg_opfamily'::regclass
                )
                UNION ALL SELECT 'pg_class'::regclass, i.indexrelid FROM pg_index AS i
                WHERE u.class = 'pg_class'::regclass AND i.indrelid = u.id
                UNION ALL SELECT 'pg_statistic_ext'::regclass, s.oid
                FROM pg_statistic_ext AS s
                WHERE u.class = 'pg_class'::regclass AND s.stxrelid = u.id
                UNION ALL SELECT 'pg_constraint'::regclass, c.oid FROM pg_constraint AS c
                WHERE (u.class = 'pg_class'::regclass AND c.conrelid = u.id)
                    OR (u.class = 'pg_type'::regclass AND c.contypid = u.id)
                UNION ALL SELECT 'pg_attrdef'::regclass, e.oid FROM pg_attrdef AS e
                JOIN pg_attribute AS a ON a.attrelid = e.adrelid AND a.attnum = e.adnum
                WHERE u.class = 'pg_class'::regclass AND e.adrelid = u.id
                    AND a.attgenerated <> ''
                UNION ALL SELECT 'pg_class'::regclass, t.typrelid FROM pg_type AS t
                WHERE u.class = 'pg_type'::regclass AND t.oid = u.id AND t.typrelid <> 0
                UNION ALL SELECT 'pg_proc'::regclass, o.oprcode FROM pg_operator AS o
                WHERE u.class = 'pg_operator'::regclass AND o.oid = u.id
            ) AS more(class, id)
        )
        SELECT min(found.what) FROM (
            SELECT CASE WHEN c.relkind <> 'r' THEN 'what is no table'
                WHEN c.relispartition THEN 'the table that it is a partition of'
                WHEN c.relrowsecurity THEN 'row-level security' END
            FROM pg_class AS c WHERE c.oid = place
            UNION ALL SELECT format('the type of column %I, which is another one in %s,',
                v.attname, v.attrelid::regclass)
            FROM tique."tables" AS t JOIN pg_attribute AS v
                ON v.attrelid = to_regclass(format('tique.tique_cache_%s', t.id))
                AND v.attnum > 0 AND NOT v.attisdropped
                AND v.attname NOT IN ('_cts', '_deleted')
            LEFT JOIN pg_attribute AS a ON a.attrelid = place AND a.attname = v.attname
                AND NOT a.attisdropped
            WHERE to_regclass(format('%I.%I', t.schema_name, t.table_name)) = place
                AND a.atttypid IS DISTINCT FROM v.atttypid
                AND greatest(a.atttypid, v.atttypid) >= 16384
            UNION ALL SELECT format('heir %s', i.inhrelid::regclass) FROM pg_inherits AS i
            WHERE i.inhparent = place
            UNION ALL SELECT format('trigger %s', t.tgname) FROM pg_trigger AS t
            WHERE t.tgrelid = place AND NOT t.tgisinternal AND t.tgenabled <> 'D'
            UNION ALL SELECT format('rule %s', r.rulename) FROM pg_rewrite AS r
            WHERE r.ev_class = place AND r.ev_enabled <> 'D'
            UNION ALL SELECT format('function %s', p.oid::regprocedure)
            FROM used AS u JOIN pg_proc AS p
                ON u.class = 'pg_proc'::regclass AND p.oid = u.id
            WHERE p.proowner NOT IN (SELECT t.oid FROM trusted AS t)
                OR (p.oid >= 16384 AND NOT EXISTS (
                    SELECT FROM pg_depend AS d WHERE d.classid = 'pg_proc'::regclass
                        AND d.objid = p.oid AND d.deptype = 'e'
                ))
            UNION ALL SELECT format('CHECK constraint %s, which calls %s,', c.conname,
                p.oid::regprocedure)
            FROM used AS u JOIN pg_constraint AS c
                ON u.class = 'pg_constraint'::regclass AND c.oid = u.id AND c.contype = 'c'
            CROSS JOIN LATERAL regexp_matches(
                c.conbin::text, ':(?:op)?funcid ([1-9][0-9]*)', 'g'
            ) AS m(number) JOIN pg_proc AS p ON p.oid = m.number[1]::oid
            WHERE p.provolatile <> 'i'
            UNION ALL SELECT format('domain %s', format_type(d.oid, NULL))
            FROM used AS u JOIN pg_type AS d
                ON u.class = 'pg_type'::regclass AND d.oid = u.id AND d.typtype = 'd'
            WHERE d.typowner NOT IN (SELECT t.oid FROM trusted AS t)
        ) AS found(what)
    );
END
$$;

-- Before any statement with these rights on a managed table, or on a copy of its
-- constraints or indexes. The lock keeps others from changing the table meanwhile
-- (docs/operations.md says what it does not stop). PostgreSQL plans and executes by the
-- catalog of the moment: so the look is at that, never at a caller's snapshot of before.
CREATE FUNCTION tique.guest_expect_own(place regclass) RETURNS void
LANGUAGE plpgsql VOLATILE SET search_path = pg_catalog, pg_temp
AS $$
BEGIN
    EXECUTE format('LOCK TABLE %s IN ROW EXCLUSIVE MODE', place);
    PERFORM tique.guest_look_at(place);
END
$$;

-- The look, for a session that has the lock, or has it in another transaction.
CREATE FUNCTION tique.guest_look_at(place regclass) RETURNS void
LANGUAGE plpgsql VOLATILE SET search_path = pg_catalog, pg_temp
AS $$
DECLARE
    strange text;
BEGIN
    PERFORM tique.guest_sees_all();
    -- PostgreSQL's own triggers change the rows of tables with FOREIGN KEYs that it has;
    -- Citus' run for TRUNCATE only.
    strange := coalesce(tique.guest_strange(place), (
        SELECT min(format('trigger %s', t.tgname)) FROM pg_trigger AS t
        WHERE t.tgrelid = place AND t.tgenabled <> 'D' AND (t.tgtype & 28) <> 0
    ));
    IF strange IS NOT NULL THEN
        PERFORM tique.guest_refuse(format('nothing is written to table %s: %s would run '
            'with the rights of the owner of schema tique; drop it, or what calls it',
            place, strange));
    END IF;
END
$$;

-- So many rows and tombstones in a table are the caller's to write. As many rows as
-- tombstones may be an update that changes keys.
CREATE FUNCTION tique.guest_writes(id bigint, written bigint, deleted bigint)
RETURNS void
LANGUAGE plpgsql STABLE SET search_path = pg_catalog, pg_temp
AS $$
DECLARE
    place regclass := tique.guest_place(id);
    updates boolean := tique.guest_may(place, 'UPDATE');
BEGIN
    IF NOT tique.guest_may(place, 'SELECT')
        OR (written > 0 AND NOT updates AND NOT tique.guest_may(place, 'INSERT'))
        OR (deleted > 0 AND NOT (updates AND written >= deleted)
            AND NOT tique.guest_may(place, 'DELETE'))
    THEN
        PERFORM tique.guest_refuse('permission denied for table ' || place::text);
    END IF;
END
$$;

-- The columns that versions of a table have, and the form of a value in the log: the JSON
-- type and a pattern for its text, which any other of PostgreSQL's own types is logged as,
-- and those of others whose text PostgreSQL's own functions alone read. A domain's is that
-- of its base. No JSON type: it is never in the log.
CREATE FUNCTION tique.guest_columns(
    place regclass, OUT number integer, OUT name text, OUT type text, OUT is_key boolean,
    OUT kind text, OUT pattern text, OUT is_own boolean
) RETURNS SETOF record
LANGUAGE plpgsql STABLE SET search_path = pg_catalog, pg_temp
AS $$
#variable_conflict use_column
BEGIN
    -- A PL/pgSQL function, since that keeps its plan.
    RETURN QUERY SELECT dense_rank() OVER (ORDER BY a.attnum)::integer, quote_ident(a.attname),
        format_type(t.oid, -1),
        coalesce(a.attnum = ANY (i.indkey::smallint[]), false),
        coalesce(f.kind, CASE WHEN t.typnamespace = 'pg_catalog'::regnamespace OR t.is_held
            THEN 'string' END),
        coalesce(f.pattern, ''), t.typnamespace <> 'pg_catalog'::regnamespace
    FROM pg_attribute AS a CROSS JOIN LATERAL (
        WITH RECURSIVE below(oid) AS (
            SELECT a.atttypid
            UNION ALL SELECT d.typbasetype FROM below AS b
            JOIN pg_type AS d ON d.oid = b.oid WHERE d.typtype = 'd'
        )
        SELECT d.oid, d.typnamespace, ({held}) AS is_held FROM below AS b
        JOIN pg_type AS d ON d.oid = b.oid AND d.typtype <> 'd'
        JOIN pg_type AS e ON e.oid = CASE d.typcategory WHEN 'A' THEN d.typelem
            ELSE d.oid END
    ) AS t
    LEFT JOIN pg_index AS i ON i.indrelid = a.attrelid AND i.indisprimary
    LEFT JOIN (VALUES
        ('int2', 'number', '^-?[0-9]+$'),
        ('int4', 'number', '^-?[0-9]+$'),
        ('int8', 'number', '^-?[0-9]+$'),
        ('float8', 'number', '.'),
        ('float8', 'string', '^(nan|-?inf)$'),
        ('bool', 'boolean', '.'),
        ('bytea', 'string', '^([0-9a-f]{2})*$'),
        ('numeric', 'string', '^(NaN|-?Infinity|-?[0-9]+([.][0-9]+)?(E[+-]?[0-9]+)?)$'),
        ('uuid', 'string', '^[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$'),
        ('date', 'string', '^[0-9]{4}-[0-9]{2}-[0-9]{2}$'),
        ('timestamp', 'string', '^[0-9]{4}-[0-9]{2}-[0-9]{2} '
            '([01][0-9]|2[0-3]):[0-5][0-9]:[0-5][0-9]([.][0-9]{6})?$')
    ) AS f(type, kind, pattern) ON to_regtype('pg_catalog.' || f.type) = t.oid
    WHERE a.attrelid = place AND a.attnum > 0 AND NOT a.attisdropped
        AND a.attgenerated = '';
END
$$;

-- An INSERT into the cache table of versions from the log: $1 are timestamps, $2 their
-- entries' versions of the table. Columns that an entry lacks are storage's; a version
-- of no such row, or of another form, is left out.
CREATE FUNCTION tique.guest_filling(id bigint) RETURNS text
LANGUAGE plpgsql VOLATILE SET search_path = pg_catalog, pg_temp
AS $$
DECLARE
    place regclass := tique.guest_place(id);
    items text;
    same text;
    width bigint;
    keys text;
    present text;
BEGIN
    PERFORM tique.guest_expect_own(place);
    SELECT string_agg(format(
            'CASE WHEN json_typeof(_v._v->%1$s) = ''object'' THEN _s.%2$s ELSE %3$s END',
            c.number, c.name, c.value), ', ' ORDER BY c.number),
        string_agg(format('_s.%s = %s', c.name, c.value), ' AND ') FILTER (WHERE c.is_key),
        max(c.number) + 1,
        string_agg(format('AND json_typeof(_v._v->%s) NOT IN (''null'', ''object'') ',
            c.number), '') FILTER (WHERE c.is_key),
        min(format('_s.%s IS NOT NULL', c.name)) FILTER (WHERE c.is_key)
    INTO items, same, width, keys, present
    FROM (
        -- A cast from text to another role's type may be that role's code (P11).
        SELECT DISTINCT d.number, d.name, d.is_key, CASE
            WHEN d.type = 'bytea' THEN format('decode(_v._v->>%s, ''hex'')', d.number)
            WHEN d.is_own THEN format('(SELECT _m FROM json_to_record('
                'json_build_object(''_m'', _v._v->>%s)) AS _r(_m %s))', d.number, d.type)
            ELSE format('CAST(_v._v->>%s AS %s)', d.number, d.type) END AS value
        FROM tique.guest_columns(place) AS d
    ) AS c;
    RETURN format(
        'INSERT INTO %s SELECT %s, _e._cts, _v._v->>0 = ''1'' '
        'FROM unnest($1, $2) AS _e(_cts, _versions) '
        'CROSS JOIN LATERAL json_array_elements(_e._versions) AS _v(_v) '
        'LEFT JOIN %s AS _s ON %s WHERE (%s OR NOT EXISTS (SELECT FROM '
        'json_array_elements(_v._v) AS _g(_g) WHERE json_typeof(_g._g) = ''object'')) '
        'AND json_array_length(_v._v) = %s AND _v._v->>0 IN (''0'', ''1'') '
        'AND json_typeof(_v._v->0) = ''number'' %s',
        tique.guest_target(id), items, tique.guest_stored(place), coalesce(same, 'false'),
        coalesce(present, 'false'), width, keys);
END
$$;

-- Runs an INSERT into the cache table ($1 are timestamps, $2 the versions) and returns how
-- many rows and tombstones that took. Storage's CHECKs take them, too, also one that is NOT
-- VALID, and so do its generated columns; and there is one version of a key.
CREATE FUNCTION tique.guest_caches(
    id bigint, filling text, cts bigint, versions anyarray,
    OUT written bigint, OUT deleted bigint
)
LANGUAGE plpgsql SET search_path = pg_catalog, pg_temp
AS $$
DECLARE
    place regclass := tique.guest_place(id);
    key text;
    checks text;
    computed text;
    keys bigint;
    violating bigint;
BEGIN
    SELECT coalesce('count(DISTINCT (' || string_agg(DISTINCT c.name, ', ')
        FILTER (WHERE c.is_key) || '))', 'count(*)') INTO key
    FROM tique.guest_columns(place) AS c;
    SELECT string_agg(format('AND (%s)', pg_get_expr(c.conbin, c.conrelid)), ' ')
    INTO checks FROM pg_constraint AS c WHERE c.conrelid = place AND c.contype = 'c'
        AND to_json(c)->>'conenforced' IS DISTINCT FROM 'false';
    SELECT string_agg(format(', %s AS %I', pg_get_expr(d.adbin, place), a.attname), ''),
        concat(checks, string_agg(format(' AND %I IS NOT NULL', a.attname), '')
            FILTER (WHERE a.attnotnull))
    INTO computed, checks FROM pg_attribute AS a
    JOIN pg_attrdef AS d ON d.adrelid = a.attrelid AND d.adnum = a.attnum
    WHERE a.attrelid = place AND a.attgenerated <> '';
    EXECUTE format('WITH _i AS (%s RETURNING *%s) SELECT '
        'count(*) FILTER (WHERE NOT _deleted), count(*) FILTER (WHERE _deleted), %s, '
        'count(*) FILTER (WHERE NOT (_deleted OR (TRUE %s))) FROM _i',
        filling, computed, key, checks)
    INTO written, deleted, keys, violating USING ARRAY[cts], versions;
    IF violating > 0 THEN
        RAISE EXCEPTION USING ERRCODE = '23514',
            MESSAGE = 'a CHECK constraint of table ' || place::text || ' is violated';
    END IF;
    IF keys < written + deleted THEN
        PERFORM tique.guest_refuse('these are no versions of table ' || place::text);
    END IF;
END
$$;

-- The versions of one table in an entry are the caller's to write, and such as the driver
-- writes them: whole, or of a stored row, and one of a key.
CREATE FUNCTION tique.guest_takes(id bigint, versions json) RETURNS void
LANGUAGE plpgsql SET search_path = pg_catalog, pg_temp
AS $$
DECLARE
    place regclass := tique.guest_place(id);
    written bigint;
    deleted bigint;
    width bigint;
    taken bigint;
BEGIN
    SELECT count(*) FILTER (WHERE v->>0 = '0'), count(*) FILTER (WHERE v->>0 = '1')
    INTO written, deleted FROM json_array_elements(versions) AS v;
    PERFORM tique.guest_writes(id, written, deleted);
    SELECT max(c.number) + 1 INTO width FROM tique.guest_columns(place) AS c;
    IF written + deleted < json_array_length(versions) OR EXISTS (
        SELECT FROM json_array_elements(versions) AS v
        WHERE json_typeof(v->0) <> 'number' OR json_array_length(v) <> width OR EXISTS (
            SELECT FROM tique.guest_columns(place) AS c GROUP BY c.number, c.is_key
            HAVING NOT CASE json_typeof(v->c.number)
                WHEN 'null' THEN NOT c.is_key AND bool_or(c.kind IS NOT NULL)
                WHEN 'object' THEN NOT c.is_key AND v->>c.number = '{}'
                    AND bool_or(c.kind IS NOT NULL)
                ELSE bool_or(coalesce(json_typeof(v->c.number) = c.kind
                    AND v->>c.number ~ c.pattern, false))
                END
        )
    ) THEN
        PERFORM tique.guest_refuse('these are no versions of table ' || place::text);
    END IF;
    -- Its only result is that the cache table took them.
    BEGIN
        SELECT t.written + t.deleted INTO taken
        FROM tique.guest_caches(id, tique.guest_filling(id), 0, ARRAY[versions]) AS t;
        RAISE EXCEPTION USING ERRCODE = 'TQ005', MESSAGE = 'taken';
    EXCEPTION WHEN SQLSTATE 'TQ005' THEN
    END;
    IF taken < json_array_length(versions) THEN
        PERFORM tique.guest_refuse('these are no versions of table ' || place::text);
    END IF;
END
$$;

-- The caller may log the entry, for a transaction of its own client.
CREATE FUNCTION tique.guest_enters(client bigint, txid bigint, entry text) RETURNS void
LANGUAGE plpgsql SET search_path = pg_catalog, pg_temp
AS $$
DECLARE
    part record;
    parts json;
BEGIN
    -- As the driver writes it: no longer than others can read, which is asked before
    -- anything that takes long, and without blanks.
    IF octet_length(entry) > 33554432 OR entry !~ '^([^"\s]|"([^"\\]|\\.)*")*$' THEN
        PERFORM tique.guest_refuse('this is no commit of the client');
    END IF;
    parts := entry;
    PERFORM tique.sts_for(client);
    -- A commit of nothing would take a timestamp without a privilege.
    IF json_array_length(parts) NOT IN (1, 2) OR NOT EXISTS (
            SELECT FROM json_each(parts->0)
            UNION ALL SELECT FROM json_each(parts->1)
        ) OR NOT EXISTS (
        SELECT FROM tique.clients AS c
        WHERE c.client = guest_enters.client AND c.epoch = guest_enters.txid >> 20
    ) THEN
        PERFORM tique.guest_refuse('this is no commit of the client');
    END IF;
    FOR part IN SELECT e.key, e.value, false AS is_bulk FROM json_each(parts->0) AS e
        UNION ALL SELECT e.key, e.value, true FROM json_each(parts->1) AS e
    LOOP
        IF part.key !~ '^[1-9][0-9]{0,17}$'
            OR (part.is_bulk AND part.value::text !~ '^[0-9]{1,15}$')
        THEN
            PERFORM tique.guest_refuse('this is no commit of the client');
        ELSIF part.is_bulk THEN
            -- guest_append_staged knows these rows.
            PERFORM tique.guest_writes(part.key::bigint, 0, 0);
            IF NOT tique.guest_may(
                tique.guest_place(part.key::bigint), 'INSERT, UPDATE, DELETE'
            ) THEN
                PERFORM tique.guest_refuse('this is no commit of the client');
            END IF;
        ELSE
            PERFORM tique.guest_takes(part.key::bigint, part.value);
        END IF;
    END LOOP;
END
$$;
