-- Several batches in one transaction, each judged on its own. The arrays run in parallel, one entry per operation;
-- operations are 0 create, 1 replace, 2 delete, 3 check, and `p_batch` tells which of them belong together. There are at
-- most 127, and no document is named twice: so no batch can depend on another one of the group.
--
-- One row per operation that wrote (`outcome` 0, with its new version), one per refused batch (1, with what is there
-- instead) and one per operation of a batch whose partition somebody else is writing to (2: nothing was tried). The
-- caller tries those again with `p_wait`, one partition at a time: a transaction that waits holds no other lock, hence no
-- two can wait for each other.
--
-- The plans are generic: they cannot go wrong with the size of the table, since rows are found by the primary key only
-- (a range and an order that no other index serves, and the arbiter of the conflict), and planning costs as much as the
-- rest.
CREATE FUNCTION store_write_group(
    p_wait boolean, p_now bigint, p_tombstones_until bigint,
    p_batch integer[], p_container text[], p_partition text[],
    p_op smallint[], p_id text[], p_version bigint[], p_modified bigint[],
    p_kind text[], p_kind_written text[], p_resource_folded text[], p_resource_id text[],
    p_expires bigint[], p_body text[], p_marks bytea[]
) RETURNS TABLE (n integer, outcome smallint, version bigint, modified bigint)
    LANGUAGE plpgsql
    SET plan_cache_mode = force_generic_plan
AS $$
#variable_conflict use_column
DECLARE
    v_locks bigint[];
    v_busy  bigint[];
    v_out   integer[] := '{}';
    v_bad   record;
BEGIN
    -- All locks before anything that assigns a transaction id: so within a partition the order of ids is the order of
    -- commits.
    v_locks := ARRAY(SELECT DISTINCT store_partition_lock(o.container, o.partition)
        FROM unnest(p_container, p_partition) AS o (container, partition) ORDER BY 1);
    IF p_wait THEN
        PERFORM pg_advisory_xact_lock(l.l) FROM unnest(v_locks) AS l (l);
    ELSE
        v_busy := ARRAY(SELECT l.l FROM unnest(v_locks) AS l (l) WHERE NOT pg_try_advisory_xact_lock(l.l));
        IF cardinality(v_busy) > 0 THEN
            v_out := ARRAY(SELECT o.batch FROM unnest(p_batch, p_container, p_partition) AS o (batch, container, partition)
                WHERE store_partition_lock(o.container, o.partition) = ANY (v_busy));
            RETURN QUERY SELECT o.n::integer, 2::smallint, NULL::bigint, NULL::bigint
                FROM unnest(p_batch) WITH ORDINALITY AS o (batch, n) WHERE o.batch = ANY (v_out);
        END IF;
    END IF;

    FOR v_bad IN
        SELECT DISTINCT ON (o.batch) o.batch, o.n, d.version, d.modified
        FROM unnest(p_batch, p_container, p_partition, p_op, p_id, p_version, p_modified) WITH ORDINALITY
            AS o (batch, container, partition, op, id, version, modified, n)
        LEFT JOIN LATERAL (
            SELECT f.id, f.version, f.modified FROM store_document f
            WHERE f.container = o.container AND f.partition = o.partition AND f.id >= o.id AND f.id <= o.id
                AND NOT f.deleted AND (f.expires IS NULL OR f.expires > p_now)
            ORDER BY f.id LIMIT 1) d ON true
        WHERE o.batch <> ALL (v_out) AND CASE WHEN o.op = 0 THEN d.id IS NOT NULL
            ELSE d.version IS DISTINCT FROM o.version OR d.modified IS DISTINCT FROM o.modified END
        ORDER BY o.batch, o.n
    LOOP
        n := v_bad.n; outcome := 1; version := v_bad.version; modified := v_bad.modified;
        RETURN NEXT;
        v_out := v_out || v_bad.batch;
    END LOOP;

    -- A deletion finds its row: it was judged. The transaction gets its id with the first row that is written.
    RETURN QUERY
        INSERT INTO store_document AS d (container, partition, id, kind, kind_written, resource_folded, resource_id,
            version, modified, expires, deleted, pos, body, marks)
        SELECT o.container, o.partition, o.id, o.kind, o.kind_written, o.resource_folded, o.resource_id,
            coalesce(c.version_floor, 0) + 1, p_now, CASE o.op WHEN 2 THEN p_tombstones_until ELSE o.expires END,
            o.op = 2, pg_current_xact_id()::text::bigint * 128 + o.n, o.body, o.marks
        FROM unnest(p_batch, p_container, p_partition, p_op, p_id, p_kind, p_kind_written, p_resource_folded,
                p_resource_id, p_expires, p_body, p_marks) WITH ORDINALITY
            AS o (batch, container, partition, op, id, kind, kind_written, resource_folded, resource_id, expires, body,
                marks, n)
        LEFT JOIN store_container c ON c.name = o.container
        WHERE o.op <> 3 AND o.batch <> ALL (v_out)
        ON CONFLICT (container, partition, id) DO UPDATE SET
            kind = CASE WHEN excluded.deleted THEN d.kind ELSE excluded.kind END,
            kind_written = CASE WHEN excluded.deleted THEN d.kind_written ELSE excluded.kind_written END,
            resource_folded = CASE WHEN excluded.deleted THEN d.resource_folded ELSE excluded.resource_folded END,
            resource_id = CASE WHEN excluded.deleted THEN d.resource_id ELSE excluded.resource_id END,
            version = d.version + 1, modified = excluded.modified, expires = excluded.expires,
            deleted = excluded.deleted, pos = excluded.pos, body = excluded.body, marks = excluded.marks
        RETURNING (d.pos % 128)::integer, 0::smallint, d.version, p_now;
END $$;
