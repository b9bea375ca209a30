-- Questions. Inodes go out as their rows in binary form, which `decode.rs` reads.

-- Names of a directory. The row 0 is the directory.
CREATE FUNCTION hf1_look_up(p_sid int8, p_dir int8, p_names bytea[], p_topics int8[])
RETURNS TABLE (ord int8, cookie int8, ino int8, kind int2, node bytea, target bytea, data bytea,
    pages int8) LANGUAGE plpgsql SECURITY DEFINER @pinned@ AS $$
BEGIN
    PERFORM begin_question(p_sid, p_topics);
    RETURN QUERY SELECT 0::int8, 0::int8, n.ino, n.kind, NULL::bytea, NULL::bytea, NULL::bytea,
        NULL::int8 FROM node n WHERE n.ino = p_dir;
    RETURN QUERY SELECT u.ord, e.cookie, e.ino, e.kind, record_send(n), t.bytes, b.data, b.pages
        FROM unnest(p_names) WITH ORDINALITY u (name, ord)
        JOIN entry e ON e.dir = p_dir AND e.name = u.name
        LEFT JOIN node n ON n.ino = e.ino
        LEFT JOIN target t ON n.kind = 10 AND t.ino = e.ino
        LEFT JOIN body b ON n.bits & 2 <> 0 AND b.ino = e.ino AND b.staged_at IS NULL;
END $$;

CREATE FUNCTION hf1_load(p_sid int8, p_inos int8[], p_topics int8[])
RETURNS TABLE (node bytea, target bytea, data bytea, pages int8)
LANGUAGE plpgsql SECURITY DEFINER @pinned@ AS $$
BEGIN
    PERFORM begin_question(p_sid, p_topics);
    RETURN QUERY SELECT record_send(n), t.bytes, b.data, b.pages
        FROM unnest(p_inos) u (ino)
        JOIN node n ON n.ino = u.ino
        LEFT JOIN target t ON n.kind = 10 AND t.ino = u.ino
        LEFT JOIN body b ON n.bits & 2 <> 0 AND b.ino = u.ino AND b.staged_at IS NULL;
END $$;

-- Targets and extended attributes: a row for each inode, with its target, then for each attribute.
CREATE FUNCTION hf1_rests(p_sid int8, p_inos int8[])
RETURNS TABLE (ord int8, name bytea, value bytea) LANGUAGE plpgsql SECURITY DEFINER @pinned@ AS $$
BEGIN
    PERFORM begin_question(p_sid, '{}');
    RETURN QUERY SELECT u.ord, NULL::bytea, t.bytes
        FROM unnest(p_inos) WITH ORDINALITY u (ino, ord)
        JOIN node n ON n.ino = u.ino
        LEFT JOIN target t ON n.kind = 10 AND t.ino = u.ino;
    RETURN QUERY SELECT u.ord, x.name, x.value
        FROM unnest(p_inos) WITH ORDINALITY u (ino, ord) JOIN xattr x ON x.ino = u.ino;
END $$;

-- A page of names. The first row, without a name, is the directory.
CREATE FUNCTION hf1_names(p_sid int8, p_dir int8, p_after int8, p_max int8, p_topics int8[])
RETURNS TABLE (name bytea, cookie int8, ino int8, kind int2)
LANGUAGE plpgsql SECURITY DEFINER @pinned@ AS $$
BEGIN
    PERFORM begin_question(p_sid, p_topics);
    RETURN QUERY SELECT NULL::bytea, 0::int8, n.ino, n.kind FROM node n WHERE n.ino = p_dir;
    RETURN QUERY SELECT e.name, e.cookie, e.ino, e.kind FROM entry e
        WHERE e.dir = p_dir AND e.cookie > p_after ORDER BY e.dir, e.cookie LIMIT p_max;
END $$;

-- Directories whole. For each a row without a name, then its names in the order of cookies.
CREATE FUNCTION hf1_directories(p_sid int8, p_dirs int8[], p_most int8, p_inodes boolean,
    p_topics int8[])
RETURNS TABLE (ord int4, name bytea, cookie int8, ino int8, kind int2, node bytea, target bytea,
    data bytea, pages int8) LANGUAGE plpgsql SECURITY DEFINER @pinned@ AS $$
DECLARE
    d node;
BEGIN
    PERFORM begin_question(p_sid, p_topics);
    FOR i IN 1 .. cardinality(p_dirs) LOOP
        SELECT * INTO d FROM node n WHERE n.ino = p_dirs[i];
        CONTINUE WHEN d.ino IS NULL OR d.kind <> 4 OR d.size / 32 > p_most;
        RETURN QUERY SELECT i, NULL::bytea, 0::int8, d.ino, d.kind, record_send(d), NULL::bytea,
            NULL::bytea, NULL::int8;
        IF p_inodes THEN
            RETURN QUERY SELECT i, e.name, e.cookie, e.ino, e.kind, record_send(n), t.bytes, b.data,
                b.pages
                FROM entry e
                LEFT JOIN node n ON n.ino = e.ino
                LEFT JOIN target t ON n.kind = 10 AND t.ino = e.ino
                LEFT JOIN body b ON n.bits & 2 <> 0 AND b.ino = e.ino AND b.staged_at IS NULL
                WHERE e.dir = d.ino ORDER BY e.dir, e.cookie;
        ELSE
            RETURN QUERY SELECT i, e.name, e.cookie, e.ino, e.kind, NULL::bytea, NULL::bytea,
                NULL::bytea, NULL::int8 FROM entry e WHERE e.dir = d.ino ORDER BY e.dir, e.cookie;
        END IF;
    END LOOP;
END $$;

-- The content of a file. Extents are parallel arrays.
CREATE FUNCTION hf1_content(p_sid int8, p_ino int8)
RETURNS TABLE (generation int8, data bytea, pages int8, offs int8[], lens int8[], objects int8[],
    object_offs int8[]) LANGUAGE plpgsql SECURITY DEFINER @pinned@ AS $$
BEGIN
    PERFORM begin_question(p_sid, '{}');
    RETURN QUERY SELECT n.generation, b.data, b.pages, x.offs, x.lens, x.objects, x.object_offs
        FROM node n LEFT JOIN body b ON b.ino = n.ino,
        LATERAL (SELECT array_agg(y.off) AS offs, array_agg(y.len) AS lens,
            array_agg(y.object) AS objects, array_agg(y.object_off) AS object_offs
            FROM (SELECT * FROM extent e WHERE e.ino = n.ino ORDER BY e.ino, e.off) y) x
        WHERE n.ino = p_ino;
END $$;

CREATE FUNCTION hf1_walk(p_sid int8, p_after int8, p_max int8)
RETURNS TABLE (node bytea, target bytea, data bytea, pages int8)
LANGUAGE plpgsql SECURITY DEFINER @pinned@ AS $$
BEGIN
    PERFORM begin_question(p_sid, '{}');
    RETURN QUERY SELECT record_send(n), t.bytes, b.data, b.pages
        FROM (SELECT * FROM node m WHERE m.ino > p_after ORDER BY m.ino LIMIT p_max) n
        LEFT JOIN target t ON n.kind = 10 AND t.ino = n.ino
        LEFT JOIN body b ON n.bits & 2 <> 0 AND b.ino = n.ino AND b.staged_at IS NULL
        ORDER BY n.ino;
END $$;

CREATE FUNCTION hf1_usage(p_sid int8)
RETURNS TABLE (inodes int8, pages int8, staged_bytes int8, objects int8, object_bytes int8,
    live_bytes int8, unmapped int8) LANGUAGE plpgsql SECURITY DEFINER @free@ AS $$
BEGIN
    PERFORM begin_question(p_sid, '{}');
    RETURN QUERY SELECT (v.inodes + s.inodes)::int8, (v.pages + s.pages)::int8,
        (v.staged_bytes + s.staged_bytes)::int8, (v.objects + s.objects)::int8,
        (v.object_bytes + s.object_bytes)::int8, (v.live_bytes + s.live_bytes)::int8,
        (SELECT count(*) FROM object o WHERE o.live = 0)
        FROM volume v, (SELECT coalesce(sum(l.inodes), 0) AS inodes,
            coalesce(sum(l.pages), 0) AS pages,
            coalesce(sum(l.staged_bytes), 0) AS staged_bytes,
            coalesce(sum(l.objects), 0) AS objects,
            coalesce(sum(l.object_bytes), 0) AS object_bytes,
            coalesce(sum(l.live_bytes), 0) AS live_bytes
            FROM slot l) s;
END $$;

-- Bodies that are to be moved into objects.
CREATE FUNCTION hf1_staged(p_sid int8, p_max int8)
RETURNS TABLE (ino int8, generation int8, data bytea, pages int8)
LANGUAGE plpgsql SECURITY DEFINER @pinned@ AS $$
DECLARE
    v_until int8 := now_ns() - 10000000000;
BEGIN
    PERFORM begin_question(p_sid, '{}');
    RETURN QUERY SELECT n.ino, n.generation, b.data, b.pages
        FROM (SELECT * FROM body c WHERE c.staged_at < v_until
            ORDER BY c.staged_at LIMIT p_max) b
        JOIN node n ON n.ino = b.ino ORDER BY b.staged_at;
END $$;
