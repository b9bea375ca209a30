-- Names of inodes as they are counted and as they are.
CREATE FUNCTION counted_names() RETURNS TABLE (ino int8, nlink int4, links int4, size int8,
    length int8) LANGUAGE sql AS $$
    SELECT n.ino, n.nlink, (CASE WHEN n.kind <> 4 THEN coalesce(t.names, 0)
            WHEN t.names > 0 OR n.ino = 1 THEN 2 + coalesce(c.dirs, 0) ELSE 0 END)::int4,
        n.size, (CASE WHEN n.kind = 4 THEN 32 * coalesce(c.names, 0) ELSE n.size END)::int8
    FROM node n
    LEFT JOIN (SELECT ino, count(*) AS names FROM entry GROUP BY ino) t ON t.ino = n.ino
    LEFT JOIN (SELECT dir, count(*) AS names, count(*) FILTER (WHERE kind = 4) AS dirs
        FROM entry GROUP BY dir) c ON c.dir = n.ino
$$;

-- The invariants of the tables. Each finding is a sentence; counts are repaired if that is asked
-- for. The caller runs it in one snapshot, or for a repair with the tables locked.
CREATE FUNCTION hf1_check(p_repair boolean) RETURNS SETOF text
LANGUAGE plpgsql SECURITY DEFINER @free@ AS $$
#variable_conflict use_column
BEGIN
    IF p_repair THEN
        LOCK TABLE slot, node, entry, extent, object, body, gone IN SHARE ROW EXCLUSIVE MODE;
    END IF;
    RETURN QUERY SELECT format('directory %s, name %s: inode %s is missing', e.dir,
        encode(e.name, 'escape'), e.ino)
        FROM entry e LEFT JOIN node n USING (ino) WHERE n.ino IS NULL;
    RETURN QUERY SELECT format('directory %s, name %s: inode %s has another type', e.dir,
        encode(e.name, 'escape'), e.ino)
        FROM entry e JOIN node n USING (ino) WHERE e.kind <> n.kind;
    RETURN QUERY SELECT format('directory %s, name %s: the parent is %s', e.dir,
        encode(e.name, 'escape'), n.parent)
        FROM entry e JOIN node n USING (ino) WHERE n.kind = 4 AND n.parent <> e.dir;
    RETURN QUERY SELECT format('inode %s: directory %s, which has a name of it, is missing', n.ino,
        e.dir)
        FROM entry e JOIN node n USING (ino) LEFT JOIN node d ON d.ino = e.dir AND d.kind = 4
        WHERE d.ino IS NULL;
    RETURN QUERY WITH RECURSIVE below (ino) AS (
            SELECT 1::int8
            UNION SELECT e.ino FROM below b JOIN entry e ON e.dir = b.ino AND e.kind = 4)
        SELECT format('directory %s: no path leads to it', n.ino) FROM node n
        WHERE n.kind = 4 AND n.nlink > 0 AND NOT EXISTS (SELECT FROM below b WHERE b.ino = n.ino);

    RETURN QUERY SELECT format('inode %s: %s names are counted, it has %s', ino, nlink, links)
        FROM counted_names() WHERE nlink <> links;
    RETURN QUERY SELECT format('directory %s: its size is %s instead of %s', ino, size, length)
        FROM counted_names() WHERE size <> length;
    IF p_repair THEN
        UPDATE node n SET nlink = l.links, size = l.length FROM counted_names() l
            WHERE l.ino = n.ino AND (l.nlink <> l.links OR l.size <> l.length);
    END IF;

    RETURN QUERY SELECT format('inode %s: it has no name, and is not to be freed', n.ino)
        FROM node n LEFT JOIN gone g USING (ino) WHERE n.nlink = 0 AND g.ino IS NULL;
    RETURN QUERY SELECT format('inode %s: it is to be freed, and has a name or is missing', g.ino)
        FROM gone g LEFT JOIN node n USING (ino) WHERE n.nlink IS DISTINCT FROM 0;
    IF p_repair THEN
        DELETE FROM gone g
            WHERE NOT EXISTS (SELECT FROM node n WHERE n.ino = g.ino AND n.nlink = 0);
        -- A beat asks for at most 4,096 of one transaction. What is left is found the next time.
        INSERT INTO gone SELECT n.ino, pg_current_xact_id() FROM node n
            WHERE n.nlink = 0 AND NOT EXISTS (SELECT FROM gone g WHERE g.ino = n.ino) LIMIT 4000;
    END IF;

    RETURN QUERY SELECT format('inode %s: extents at %s and %s overlap', ino, off, next)
        FROM (SELECT ino, off, len, lead(off) OVER (PARTITION BY ino ORDER BY off) AS next
            FROM extent) x
        WHERE off + len > next;
    RETURN QUERY SELECT format('inode %s: object %s is missing', x.ino, x.object)
        FROM extent x LEFT JOIN object o ON o.id = x.object AND NOT o.doomed
        WHERE x.object <> 0 AND (o.id IS NULL OR x.object_off + x.len > o.size);
    RETURN QUERY SELECT format('inode %s: its content is of no file', x.ino)
        FROM (SELECT ino, 2 AS bit FROM body UNION ALL SELECT DISTINCT ino, 4 FROM extent) x
        LEFT JOIN node n ON n.ino = x.ino AND n.kind = 8
        WHERE n.ino IS NULL OR n.bits & 6 <> x.bit;
    RETURN QUERY SELECT format('inode %s: %s pages are counted, it has %s', n.ino, n.pages, p.pages)
        FROM node n LEFT JOIN (
            SELECT ino, bit_count(pages::bit(64))::int8 AS pages FROM body
            UNION ALL SELECT ino, sum((len + 4095) / 4096)::int8 FROM extent GROUP BY ino) p
            ON p.ino = n.ino
        WHERE n.kind = 8 AND n.pages <> coalesce(p.pages, 0);

    RETURN QUERY SELECT format('object %s: %s mapped bytes are counted, it has %s', o.id, o.live,
        coalesce(x.live, 0))
        FROM object o
        LEFT JOIN (SELECT object, sum(len)::int8 AS live FROM extent GROUP BY object) x
            ON x.object = o.id
        WHERE o.live <> coalesce(x.live, 0);
    IF p_repair THEN
        UPDATE object o SET live = x.live FROM (
            SELECT o.id, coalesce(sum(e.len), 0)::int8 AS live
            FROM object o LEFT JOIN extent e ON e.object = o.id GROUP BY o.id) x
            WHERE x.id = o.id AND o.live <> x.live;
    END IF;

    RETURN QUERY SELECT format('space in use: %s of %s are counted, there are %s', what, counted,
        found)
        FROM (
            SELECT 'inodes' AS what, (SELECT count(*) FROM node) AS found,
                (SELECT inodes FROM volume) + coalesce((SELECT sum(inodes) FROM slot), 0) AS counted
            UNION ALL SELECT 'pages', coalesce((SELECT sum(pages) FROM node), 0),
                (SELECT pages FROM volume) + coalesce((SELECT sum(pages) FROM slot), 0)
            UNION ALL SELECT 'staged bytes',
                coalesce((SELECT sum(length(data)) FROM body WHERE staged_at IS NOT NULL), 0),
                (SELECT staged_bytes FROM volume)
                    + coalesce((SELECT sum(staged_bytes) FROM slot), 0)
            UNION ALL SELECT 'objects', (SELECT count(*) FROM object),
                (SELECT objects FROM volume) + coalesce((SELECT sum(objects) FROM slot), 0)
            UNION ALL SELECT 'mapped bytes', coalesce((SELECT sum(live) FROM object), 0),
                (SELECT live_bytes FROM volume) + coalesce((SELECT sum(live_bytes) FROM slot), 0)
        ) x WHERE found <> counted;
    IF p_repair THEN
        UPDATE slot SET inodes = 0, pages = 0, staged_bytes = 0, objects = 0, object_bytes = 0,
            live_bytes = 0;
        UPDATE volume SET inodes = (SELECT count(*) FROM node),
            pages = (SELECT coalesce(sum(pages), 0) FROM node),
            staged_bytes = (SELECT coalesce(sum(length(data)), 0) FROM body
                WHERE staged_at IS NOT NULL),
            objects = (SELECT count(*) FROM object),
            object_bytes = (SELECT coalesce(sum(size), 0) FROM object),
            live_bytes = (SELECT coalesce(sum(live), 0) FROM object) WHERE one;
    END IF;
END $$;
