-- Which database a cursor belongs to.
CREATE TABLE store_life (id text NOT NULL);
INSERT INTO store_life (id) VALUES (substr(md5(random()::text || clock_timestamp()::text), 1, 8));

-- How far tombstones were purged from a container's feed, and the greatest version a purged row had (new keys start
-- above it, so that no key's version ever goes back). No row means: nothing was purged yet.
CREATE TABLE store_container (
    name          text   PRIMARY KEY,
    purged        bigint NOT NULL,
    version_floor bigint NOT NULL
);

-- Names compare byte by byte whatever the database's locale. Times are microseconds since 1970. `expires` of a
-- tombstone is when it may be purged. `pos` is the place in the feed: the transaction's id times 128 plus the
-- number of the operation in its batch, which is at most 100.
CREATE TABLE store_document (
    k               bigint  GENERATED ALWAYS AS IDENTITY,
    container       text    COLLATE "C" NOT NULL,
    partition       text    COLLATE "C" NOT NULL,
    id              text    COLLATE "C" NOT NULL,
    kind            text    COLLATE "C" NOT NULL,
    kind_written    text    NOT NULL,
    resource_folded text    COLLATE "C" NOT NULL,
    resource_id     text    NOT NULL,
    version         bigint  NOT NULL,
    modified        bigint  NOT NULL,
    expires         bigint,
    deleted         boolean NOT NULL,
    pos             bigint  NOT NULL,
    body            text,
    PRIMARY KEY (container, partition, id)
);

CREATE INDEX store_in_partition ON store_document (container, partition, kind, resource_folded, k)
    WHERE NOT deleted AND resource_folded <> '';
CREATE INDEX store_everywhere   ON store_document (container, kind, resource_folded, k)
    WHERE NOT deleted AND resource_folded <> '';
CREATE INDEX store_feed         ON store_document (container, pos);
CREATE INDEX store_expiry       ON store_document (expires) WHERE expires IS NOT NULL;

-- The lock that orders all transactions of a partition. Advisory locks belong to the whole database, so the schema
-- is part of the name; two names that share a number only wait for each other.
CREATE FUNCTION store_partition_lock(p_container text, p_partition text) RETURNS bigint
    LANGUAGE sql STABLE AS $$
        SELECT hashtextextended(current_schema() || E'\n' || p_container || E'\n' || p_partition, 4711)
    $$;

-- One batch: one row with `conflict` set and nothing written, or one row per operation.
-- Operations are 0 create, 1 replace, 2 delete, 3 check; the arrays run in parallel.
CREATE FUNCTION store_write(
    p_container text, p_partition text, p_now bigint, p_tombstones_until bigint,
    p_op smallint[], p_id text[], p_version bigint[], p_modified bigint[],
    p_kind text[], p_kind_written text[], p_resource_folded text[], p_resource_id text[],
    p_expires bigint[], p_body text[]
) RETURNS TABLE (at integer, conflict boolean, version bigint, modified bigint)
    LANGUAGE plpgsql AS $$
#variable_conflict use_column
DECLARE
    v_pos   bigint;
    v_floor bigint;
BEGIN
    -- Before anything that assigns a transaction id: so within a partition the order of ids is the order of commits.
    PERFORM pg_advisory_xact_lock(store_partition_lock(p_container, p_partition));

    RETURN QUERY
        SELECT o.at::integer, true, d.version, d.modified
        FROM unnest(p_op, p_id, p_version, p_modified) WITH ORDINALITY AS o (op, id, version, modified, at)
        LEFT JOIN store_document d
            ON d.container = p_container AND d.partition = p_partition AND d.id = o.id
            AND NOT d.deleted AND (d.expires IS NULL OR d.expires > p_now)
        WHERE CASE WHEN o.op = 0 THEN d.id IS NOT NULL
            ELSE d.version IS DISTINCT FROM o.version OR d.modified IS DISTINCT FROM o.modified END
        ORDER BY o.at LIMIT 1;
    IF FOUND THEN
        RETURN;
    END IF;

    v_pos := pg_current_xact_id()::text::bigint * 128;
    v_floor := coalesce((SELECT c.version_floor FROM store_container c WHERE c.name = p_container), 0);

    RETURN QUERY
        WITH o AS (
            SELECT * FROM unnest(p_op, p_id, p_version, p_modified, p_kind, p_kind_written, p_resource_folded,
                p_resource_id, p_expires, p_body) WITH ORDINALITY
                AS o (op, id, version, modified, kind, kind_written, resource_folded, resource_id, expires, body, at)
        ), put AS (
            INSERT INTO store_document AS d (container, partition, id, kind, kind_written, resource_folded,
                resource_id, version, modified, expires, deleted, pos, body)
            SELECT p_container, p_partition, o.id, o.kind, o.kind_written, o.resource_folded, o.resource_id,
                v_floor + 1, p_now, o.expires, false, v_pos + o.at, o.body
            FROM o WHERE o.op <= 1
            ON CONFLICT (container, partition, id) DO UPDATE SET
                kind = excluded.kind, kind_written = excluded.kind_written,
                resource_folded = excluded.resource_folded, resource_id = excluded.resource_id,
                version = d.version + 1, modified = excluded.modified, expires = excluded.expires,
                deleted = false, pos = excluded.pos, body = excluded.body
            RETURNING d.id, d.version
        ), buried AS (
            UPDATE store_document d SET version = d.version + 1, modified = p_now, expires = p_tombstones_until,
                deleted = true, pos = v_pos + o.at, body = NULL
            FROM o
            WHERE o.op = 2 AND d.container = p_container AND d.partition = p_partition AND d.id = o.id
            RETURNING d.id, d.version
        )
        SELECT o.at::integer, false, coalesce(put.version, buried.version, o.version),
            CASE WHEN o.op = 3 THEN o.modified ELSE p_now END
        FROM o LEFT JOIN put ON put.id = o.id LEFT JOIN buried ON buried.id = o.id
        ORDER BY o.at;
END $$;

-- Removes expired documents and old tombstones, about `p_limit` at most; returns how many rows went.
-- One purge runs at a time, and a partition somebody writes to right now is left for the next one.
CREATE FUNCTION store_purge(p_now bigint, p_limit integer) RETURNS integer
    LANGUAGE plpgsql AS $$
DECLARE
    v_part  record;
    v_gone  record;
    v_total integer := 0;
BEGIN
    IF NOT pg_try_advisory_xact_lock(hashtextextended(current_schema() || E'\npurge', 4711)) THEN
        RETURN 0;
    END IF;
    FOR v_part IN
        SELECT DISTINCT due.container, due.partition FROM (
            SELECT d.container, d.partition FROM store_document d
            WHERE d.expires IS NOT NULL AND d.expires <= p_now ORDER BY d.expires LIMIT p_limit) due
    LOOP
        CONTINUE WHEN NOT pg_try_advisory_xact_lock(store_partition_lock(v_part.container, v_part.partition));
        WITH gone AS (
            DELETE FROM store_document d
            WHERE d.container = v_part.container AND d.partition = v_part.partition AND d.expires <= p_now
            RETURNING d.version, d.deleted, d.pos
        )
        SELECT count(*) AS rows, coalesce(max(g.version), 0) AS version,
            coalesce(max(g.pos) FILTER (WHERE g.deleted), 0) AS pos
        INTO v_gone FROM gone g;
        -- Expiry is not told on the feed, so only lost tombstones matter to its readers.
        INSERT INTO store_container AS c (name, purged, version_floor)
            VALUES (v_part.container, v_gone.pos, v_gone.version)
            ON CONFLICT (name) DO UPDATE SET purged = greatest(c.purged, excluded.purged),
                version_floor = greatest(c.version_floor, excluded.version_floor);
        v_total := v_total + v_gone.rows;
    END LOOP;
    RETURN v_total;
END $$;
