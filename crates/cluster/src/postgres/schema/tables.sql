-- The tables of a file system, in a schema of its own. Times are nanoseconds since 1970.
-- Numbers of inodes, cookies and objects are one space, dealt from `volume.next_number`.

-- The settings, and what sessions that have ended left in the counters of `slot`.
CREATE TABLE volume (
    one boolean PRIMARY KEY DEFAULT true CHECK (one),
    format int4 NOT NULL,
    uuid uuid NOT NULL DEFAULT gen_random_uuid(),
    incarnation int8 NOT NULL,
    bucket text NOT NULL,
    endpoint text NOT NULL,
    region text NOT NULL,
    notifies boolean NOT NULL,
    lease int8 NOT NULL,
    inline int8 NOT NULL,
    staged int8 NOT NULL,
    keep int8 NOT NULL,
    -- The key of the advisory lock of a topic is this, XOR the number of its directory.
    lock_base int8 NOT NULL,
    next_number int8 NOT NULL DEFAULT 2,
    inodes int8 NOT NULL DEFAULT 1,
    pages int8 NOT NULL DEFAULT 0,
    staged_bytes int8 NOT NULL DEFAULT 0,
    objects int8 NOT NULL DEFAULT 0,
    object_bytes int8 NOT NULL DEFAULT 0,
    live_bytes int8 NOT NULL DEFAULT 0
) WITH (fillfactor = 50);

-- `bits`: 1 has extended attributes, 2 has a body, 4 has extents, 8 has space behind its end,
-- 16 never had a name.
CREATE TABLE node (
    ino int8 PRIMARY KEY,
    rdev int8 NOT NULL,
    size int8 NOT NULL,
    atime int8 NOT NULL,
    mtime int8 NOT NULL,
    ctime int8 NOT NULL,
    btime int8 NOT NULL,
    parent int8 NOT NULL,
    pages int8 NOT NULL,
    generation int8 NOT NULL,
    nlink int4 NOT NULL CHECK (nlink >= 0),
    uid int4 NOT NULL,
    gid int4 NOT NULL,
    flags int4 NOT NULL,
    project int4 NOT NULL,
    kind int2 NOT NULL,
    perm int2 NOT NULL,
    bits int2 NOT NULL
) WITH (fillfactor = 85, autovacuum_vacuum_scale_factor = 0.05);

CREATE TABLE entry (
    dir int8 NOT NULL,
    cookie int8 NOT NULL,
    ino int8 NOT NULL,
    kind int2 NOT NULL,
    name bytea NOT NULL,
    PRIMARY KEY (dir, name),
    UNIQUE (dir, cookie)
) WITH (autovacuum_vacuum_scale_factor = 0.05);

CREATE TABLE target (ino int8 PRIMARY KEY, bytes bytea NOT NULL);

CREATE TABLE xattr (
    ino int8 NOT NULL,
    name bytea NOT NULL,
    value bytea NOT NULL,
    PRIMARY KEY (ino, name)
);

-- `pages`: a bit for each page with space. `staged_at` is null for a body within the inline limit.
CREATE TABLE body (
    ino int8 PRIMARY KEY,
    pages int8 NOT NULL,
    staged_at int8,
    data bytea NOT NULL
) WITH (toast_tuple_target = 8160, autovacuum_vacuum_scale_factor = 0.05);
ALTER TABLE body ALTER COLUMN data SET STORAGE EXTERNAL;
CREATE INDEX body_staged ON body (staged_at) WHERE staged_at IS NOT NULL;

-- Extents of a file do not overlap. `object` 0: the range takes space and reads as zeros.
CREATE TABLE extent (
    ino int8 NOT NULL,
    off int8 NOT NULL CHECK (off >= 0),
    len int8 NOT NULL CHECK (len > 0),
    object int8 NOT NULL,
    object_off int8 NOT NULL,
    PRIMARY KEY (ino, off)
);

-- `live`: bytes that extents map. `since`: when it became 0. A deletable object is `doomed`, and
-- is mapped no more.
CREATE TABLE object (
    id int8 PRIMARY KEY,
    size int8 NOT NULL,
    live int8 NOT NULL CHECK (live >= 0),
    doomed boolean NOT NULL,
    since int8 NOT NULL
) WITH (fillfactor = 85);
CREATE INDEX object_unmapped ON object (since) WHERE live = 0;

-- Inodes without names, by the transaction that removed the last one.
CREATE TABLE gone (ino int8 PRIMARY KEY, xid xid8 NOT NULL);
CREATE INDEX gone_xid ON gone (xid);

-- Sessions that use an inode without names.
CREATE TABLE sustain (ino int8, sid int8, PRIMARY KEY (ino, sid));
CREATE INDEX sustain_sid ON sustain (sid);

-- `looked`: inodes that were gone before this transaction were looked at. `sent`, `sent_id` and
-- `sent_in`: the number of the last message of the last beat, its row, and the beat's snapshot.
CREATE TABLE session (
    sid int8 PRIMARY KEY,
    host text NOT NULL,
    version text NOT NULL,
    heard int8 NOT NULL,
    looked xid8 NOT NULL,
    struck int8 NOT NULL DEFAULT 0,
    sent int8 NOT NULL DEFAULT 0,
    sent_id int8 NOT NULL DEFAULT 0,
    sent_in pg_snapshot
) WITH (fillfactor = 50, autovacuum_vacuum_threshold = 200);

-- A slot of a session: the last batch that it performed, and what it added to the space in use.
CREATE TABLE slot (
    sid int8,
    number int4,
    seq int8 NOT NULL,
    hash int8 NOT NULL,
    inodes int8 NOT NULL DEFAULT 0,
    pages int8 NOT NULL DEFAULT 0,
    staged_bytes int8 NOT NULL DEFAULT 0,
    objects int8 NOT NULL DEFAULT 0,
    object_bytes int8 NOT NULL DEFAULT 0,
    live_bytes int8 NOT NULL DEFAULT 0,
    results bytea NOT NULL,
    PRIMARY KEY (sid, number)
) WITH (fillfactor = 30, autovacuum_vacuum_threshold = 200,
    toast.autovacuum_vacuum_threshold = 2000);
-- The results of a batch repeat themselves: compressed they take a quarter.
DO $$
BEGIN
    ALTER TABLE slot ALTER COLUMN results SET COMPRESSION lz4;
EXCEPTION WHEN feature_not_supported THEN
    RAISE NOTICE 'this server was built without lz4';
END $$;

-- Numbers dealt to sessions that live.
CREATE TABLE deal (first int8 PRIMARY KEY, last int8 NOT NULL, sid int8 NOT NULL);
CREATE INDEX deal_sid ON deal (sid);

-- Unlogged: a server that was interrupted, or a standby that took over, begins without them, and
-- the number in `life` is another then.
CREATE UNLOGGED TABLE life (one boolean PRIMARY KEY DEFAULT true CHECK (one), number int8 NOT NULL);
CREATE UNLOGGED TABLE interest (dir int8, sid int8, PRIMARY KEY (dir, sid));
CREATE INDEX interest_sid ON interest (sid);
-- With a name: an entry of the directory `ino`. Without: an inode, `content` as well.
CREATE UNLOGGED TABLE inbox (
    sid int8,
    id int8 GENERATED ALWAYS AS IDENTITY,
    xid xid8 NOT NULL DEFAULT pg_current_xact_id(),
    ino int8 NOT NULL,
    content boolean NOT NULL,
    name bytea,
    PRIMARY KEY (sid, id)
) WITH (autovacuum_vacuum_threshold = 1000, autovacuum_vacuum_scale_factor = 0.05);

-- An inode that a request changed, with its version and its parent before: null for a new one.
CREATE TYPE touched AS (size int8, mtime int8, ctime int8, parent int8, n node, target bytea);
-- The answer to a request. `code`: 0 performed, -1 refused, -2 to be sent once more, else an errno.
CREATE TYPE result AS (
    code int4, entry int8, entry_kind int2, other int8, other_kind int2, touched touched[]
);
