-- The sequence of a container's feed, how far tombstones were purged from it, and the greatest version a purged
-- row had (new keys start above it, so that no key's version ever goes back).
CREATE TABLE container (
    id            INTEGER PRIMARY KEY,
    name          TEXT    NOT NULL UNIQUE,
    seq           INTEGER NOT NULL DEFAULT 0,
    purged        INTEGER NOT NULL DEFAULT 0,
    version_floor INTEGER NOT NULL DEFAULT 0
);

-- Partitions and types are numbered so that the indexes below stay small.
CREATE TABLE partition (
    id        INTEGER PRIMARY KEY,
    container INTEGER NOT NULL,
    name      TEXT    NOT NULL,
    UNIQUE (container, name)
);

CREATE TABLE kind (
    id        INTEGER PRIMARY KEY,
    container INTEGER NOT NULL,
    folded    TEXT    NOT NULL,
    written   TEXT    NOT NULL,
    UNIQUE (container, folded)
);

-- Times are microseconds since 1970. `expires` of a tombstone is when it may be purged. `kind_written` and
-- `resource_id` are null when equal to `kind.written` and `resource_folded`. The body comes last so that reading
-- the rest never touches its overflow pages.
CREATE TABLE document (
    k               INTEGER PRIMARY KEY,
    container       INTEGER NOT NULL,
    partition       INTEGER NOT NULL,
    id              TEXT    NOT NULL,
    kind            INTEGER NOT NULL,
    version         INTEGER NOT NULL,
    modified        INTEGER NOT NULL,
    expires         INTEGER,
    deleted         INTEGER NOT NULL,
    seq             INTEGER NOT NULL,
    kind_written    TEXT,
    resource_folded TEXT    NOT NULL,
    resource_id     TEXT,
    body            TEXT
);

-- The resource id comes before the type: a batch writes documents of several types below one resource, and so they
-- land on the same few pages of an index. A query by type reads over its neighbours without touching their rows.
-- What has no resource id is never queried and costs no place there.
CREATE UNIQUE INDEX document_key     ON document (partition, id);
CREATE INDEX document_in_partition   ON document (partition, resource_folded, k, kind)
    WHERE deleted = 0 AND resource_folded <> '';
CREATE INDEX document_everywhere     ON document (container, resource_folded, k, kind)
    WHERE deleted = 0 AND resource_folded <> '';
CREATE UNIQUE INDEX document_feed    ON document (container, seq);
CREATE INDEX document_expiry         ON document (expires) WHERE expires IS NOT NULL;

-- Says which database a cursor belongs to: one of another life of this directory is refused.
CREATE TABLE life (id TEXT NOT NULL);
INSERT INTO life (id) VALUES (lower(hex(randomblob(4))));
