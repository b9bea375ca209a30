-- Requests that change the content of a file.

-- The first `p_pages` pages of the 64 of a body.
CREATE FUNCTION first_pages(p_pages int8) RETURNS int8 LANGUAGE plpgsql IMMUTABLE AS $$
BEGIN
    RETURN CASE WHEN p_pages >= 64 THEN -1 WHEN p_pages = 63 THEN 9223372036854775807
        ELSE (1::int8 << p_pages::int4) - 1 END;
END $$;

-- Makes a range of a file with extents a hole. `ids` and `live`: bytes of objects that are mapped
-- no more. `freed`: pages.
CREATE FUNCTION clear_range(p_ino int8, p_from int8, p_to int8, OUT freed int8, OUT ids int8[],
    OUT live int8[]) LANGUAGE plpgsql AS $$
DECLARE
    x extent;
    v_first int8;
    v_left int8;
    v_right int8;
BEGIN
    freed := 0;
    ids := '{}';
    live := '{}';
    SELECT off INTO v_first FROM extent
        WHERE ino = p_ino AND off <= p_from ORDER BY off DESC LIMIT 1;
    FOR x IN SELECT * FROM extent
        WHERE ino = p_ino AND off >= coalesce(v_first, p_from) AND off < p_to ORDER BY off
    LOOP
        CONTINUE WHEN x.off + x.len <= p_from;
        v_left := greatest(p_from - x.off, 0);
        v_right := greatest(x.off + x.len - p_to, 0);
        IF v_left > 0 THEN
            UPDATE extent SET len = v_left WHERE ino = p_ino AND off = x.off;
        ELSE
            DELETE FROM extent WHERE ino = p_ino AND off = x.off;
        END IF;
        IF v_right > 0 THEN
            INSERT INTO extent VALUES (p_ino, p_to, v_right, x.object,
                CASE WHEN x.object = 0 THEN 0 ELSE x.object_off + p_to - x.off END);
        END IF;
        freed := freed + (x.len + 4095) / 4096 - (v_left + 4095) / 4096 - (v_right + 4095) / 4096;
        IF x.object <> 0 THEN
            ids := array_append(ids, x.object);
            live := array_append(live, v_left + v_right - x.len);
        END IF;
    END LOOP;
END $$;

-- Words: inode, generation, edit (0 none, 1 a body, 2 extents, 3 a map), how the length changes
-- (0 stays, 1 at least, 2 exactly), the length, is there a time, the time, eight words of
-- attributes. Then of a body its pages. Of a map: is there a cut, the cut, a number and ranges
-- that are cleared, as beginnings and ends. Of extents and of a map: a number and extents, a number
-- and new objects.
-- Blobs: an access control list, if the mask of attributes has it; of a body its bytes.
CREATE FUNCTION flush_file(w int4, b int4, words int8[], blobs bytea[], p_locked int8[],
    p_now int8, p_inline int8, OUT answer result, OUT pages int8, OUT staged int8, OUT ids int8[],
    OUT live int8[], OUT sizes int8[]) LANGUAGE plpgsql AS $$
DECLARE
    v_ino int8 := words[w];
    v_edit int8 := words[w + 2];
    v_data int4 := b + CASE WHEN words[w + 7] & 512 <> 0 THEN 1 ELSE 0 END;
    v int4 := w + 15;
    v_add int4;
    v_adds int4 := 0;
    v_object int8;
    v_size int8;
    v_keep int8;
    x body;
    o node;
    n node;
    c record;
BEGIN
    pages := 0;
    staged := 0;
    ids := '{}';
    live := '{}';
    sizes := '{}';
    o := locked_node(v_ino, p_locked);
    IF o.ino IS NULL THEN
        answer := failed(116);
        RETURN;
    ELSIF o.kind <> 8 THEN
        answer := failed(22);
        RETURN;
    ELSIF v_edit IN (1, 2) AND o.generation <> words[w + 1]
        OR v_edit = 3 AND (o.bits & 2 <> 0 OR words[w + 1] NOT IN (0, o.generation))
    THEN
        answer := failed(-1);
        RETURN;
    END IF;
    n := o;

    -- The objects that are mapped: new ones, or in use.
    IF v_edit >= 2 THEN
        v_add := v;
        IF v_edit = 3 THEN
            v_add := v + 3 + 2 * words[v + 2];
        END IF;
        v_adds := words[v_add];
        v := v_add + 1 + 4 * v_adds;
        FOR i IN 1 .. words[v] LOOP
            ids := array_append(ids, words[v + 2 * i - 1]);
            live := array_append(live, 0::int8);
            sizes := array_append(sizes, words[v + 2 * i]);
        END LOOP;
        FOR i IN 0 .. v_adds - 1 LOOP
            v_object := words[v_add + 4 * i + 3];
            CONTINUE WHEN v_object = 0;
            SELECT CASE WHEN doomed THEN NULL ELSE size END INTO v_size
                FROM object WHERE id = v_object;
            IF NOT FOUND THEN
                v_size := sizes[array_position(ids, v_object)];
            END IF;
            IF v_size IS NULL OR words[v_add + 4 * i + 4] + words[v_add + 4 * i + 2] > v_size THEN
                answer := failed(CASE WHEN v_size IS NULL THEN -1 ELSE 22 END);
                ids := '{}';
                live := '{}';
                sizes := '{}';
                RETURN;
            END IF;
        END LOOP;
    END IF;

    n.size := CASE words[w + 3] WHEN 1 THEN greatest(o.size, words[w + 4])
        WHEN 2 THEN words[w + 4] ELSE o.size END;
    IF o.bits & 2 <> 0 AND (v_edit IN (1, 2) OR v_edit = 0 AND words[w + 3] = 2) THEN
        DELETE FROM body WHERE ino = v_ino RETURNING * INTO x;
        IF x.staged_at IS NOT NULL THEN
            staged := -length(x.data);
        END IF;
        n.bits := n.bits & ~2;
    END IF;

    -- Everything behind `v_keep` becomes a hole.
    v := w + 15;
    v_keep := CASE WHEN v_edit IN (1, 2) THEN 0
        WHEN v_edit = 0 AND words[w + 3] = 2 THEN words[w + 4]
        WHEN v_edit = 3 AND words[v] <> 0 THEN words[v + 1] END;
    IF o.bits & 4 <> 0 AND v_keep IS NOT NULL THEN
        c := clear_range(v_ino, v_keep, 9223372036854775807);
        n.pages := n.pages - c.freed;
        ids := ids || c.ids;
        live := live || c.live;
    END IF;
    IF v_edit = 1 THEN
        x.data := blobs[v_data];
        x.pages := words[v];
        x.staged_at := NULL;
    ELSIF v_edit = 2 THEN
        x.data := NULL;
    END IF;
    IF x.data IS NOT NULL THEN
        IF v_edit = 0 THEN
            x.data := substring(x.data FROM 1 FOR least(n.size, 2147483647)::int4);
            x.pages := x.pages & first_pages((n.size + 4095) / 4096);
        END IF;
        n.pages := bit_count(x.pages::bit(64));
        IF length(x.data) > 0 OR x.pages <> 0 THEN
            x.staged_at := CASE WHEN length(x.data) <= p_inline THEN NULL
                ELSE coalesce(x.staged_at, p_now) END;
            INSERT INTO body VALUES (v_ino, x.pages, x.staged_at, x.data);
            IF x.staged_at IS NOT NULL THEN
                staged := staged + length(x.data);
            END IF;
            n.bits := n.bits | 2;
        END IF;
        n.bits := (n.bits & ~12)
            | CASE WHEN x.pages & ~first_pages((n.size + 4095) / 4096) <> 0 THEN 8 ELSE 0 END;
    ELSIF v_edit = 2 THEN
        n.pages := 0;
    END IF;

    IF v_edit = 3 THEN
        FOR i IN 0 .. words[v + 2] - 1 LOOP
            c := clear_range(v_ino, words[v + 3 + 2 * i], words[v + 4 + 2 * i]);
            n.pages := n.pages - c.freed;
            ids := ids || c.ids;
            live := live || c.live;
        END LOOP;
    END IF;
    FOR i IN 0 .. v_adds - 1 LOOP
        v := v_add + 4 * i;
        IF v_edit = 3 THEN
            c := clear_range(v_ino, words[v + 1],
                words[v + 1] + (words[v + 2] + 4095) / 4096 * 4096);
            n.pages := n.pages - c.freed;
            ids := ids || c.ids;
            live := live || c.live;
        END IF;
        INSERT INTO extent VALUES (v_ino, words[v + 1], words[v + 2], words[v + 3], words[v + 4]);
        n.pages := n.pages + (words[v + 2] + 4095) / 4096;
        IF words[v + 3] <> 0 THEN
            ids := array_append(ids, words[v + 3]);
            live := array_append(live, words[v + 2]);
        END IF;
    END LOOP;
    IF n.bits & 2 <> 0 AND x.ino IS NULL AND v_edit = 0 THEN
        -- The body stays as it is, and the end of the file may move over its pages.
        IF n.size > o.size AND n.bits & 8 <> 0 THEN
            SELECT body.pages INTO v_keep FROM body WHERE ino = v_ino;
            n.bits := (n.bits & ~8)
                | CASE WHEN v_keep & ~first_pages((n.size + 4095) / 4096) <> 0 THEN 8 ELSE 0 END;
        END IF;
    ELSIF n.bits & 2 = 0 THEN
        SELECT off + len INTO v_size FROM extent WHERE ino = v_ino ORDER BY off DESC LIMIT 1;
        n.bits := (n.bits & ~12) | CASE WHEN v_size IS NULL THEN 0 ELSE 4 END
            | CASE WHEN (v_size + 4095) / 4096 > (n.size + 4095) / 4096 THEN 8 ELSE 0 END;
    END IF;

    -- The accounts of objects are parallel arrays.
    sizes := sizes || array_fill(NULL::int8, ARRAY[cardinality(ids) - cardinality(sizes)]);

    IF v_edit <> 0 OR n.size <> o.size OR n.pages <> o.pages THEN
        n.generation := o.generation + 1;
    END IF;
    IF words[w + 5] <> 0 THEN
        n.ctime := greatest(least(words[w + 6], p_now), o.ctime + 1);
        n.mtime := n.ctime;
    END IF;
    n := with_attributes(n, w + 7, blobs[b], words, n.ctime);
    UPDATE node SET size = n.size, pages = n.pages, generation = n.generation, bits = n.bits,
        perm = n.perm, uid = n.uid, gid = n.gid, atime = n.atime, mtime = n.mtime,
        ctime = n.ctime, flags = n.flags, project = n.project WHERE ino = v_ino;
    pages := n.pages - o.pages;
    answer := ROW(0, NULL, NULL, NULL, NULL, ARRAY[changed(o, n)])::result;
END $$;
