-- A batch of changes. `words` and `blobs` are what `encode.rs` writes.
--
-- Locks, in this order: the slot; the topology lock and the topics, as advisory locks by number;
-- rows of `node` by number; objects by number. An inode that was not among those locked first is
-- locked only if that needs no waiting: else the request is answered by -2, and sent once more.

CREATE FUNCTION now_ns() RETURNS int8 LANGUAGE plpgsql VOLATILE AS $$
BEGIN
    RETURN (extract(epoch FROM clock_timestamp()) * 1000000)::int8 * 1000;
END $$;

CREATE FUNCTION fenced() RETURNS void LANGUAGE plpgsql AS $$
BEGIN
    RAISE EXCEPTION 'this session of the file system was ended' USING ERRCODE = 'HF001';
END $$;

-- The inode, locked. Null: there is none, or another transaction holds it.
CREATE FUNCTION locked_node(p_ino int8, p_locked int8[]) RETURNS node LANGUAGE plpgsql AS $$
DECLARE
    n node;
BEGIN
    IF p_ino = ANY (p_locked) THEN
        SELECT * INTO n FROM node WHERE ino = p_ino;
    ELSE
        SELECT * INTO n FROM node WHERE ino = p_ino FOR NO KEY UPDATE SKIP LOCKED;
    END IF;
    RETURN n;
END $$;

-- A code for an inode that `locked_node` did not find.
CREATE FUNCTION not_locked(p_ino int8, p_absent int4) RETURNS int4 LANGUAGE plpgsql AS $$
BEGIN
    PERFORM 1 FROM node WHERE ino = p_ino;
    RETURN CASE WHEN FOUND THEN -2 ELSE p_absent END;
END $$;

CREATE FUNCTION failed(p_code int4) RETURNS result LANGUAGE plpgsql IMMUTABLE AS $$
BEGIN
    RETURN ROW(p_code, NULL, NULL, NULL, NULL, NULL)::result;
END $$;

-- An inode before and after.
CREATE FUNCTION changed(o node, n node) RETURNS touched LANGUAGE plpgsql AS $$
DECLARE
    v_target bytea;
BEGIN
    IF n.kind = 10 THEN
        SELECT bytes INTO v_target FROM target WHERE ino = n.ino;
    END IF;
    RETURN ROW(o.size, o.mtime, o.ctime, o.parent, n, v_target)::touched;
END $$;

-- Creates an inode from ten words (number, type, permissions, owner, group, device, flags, project,
-- has a target, number of extended attributes) and its blobs (target, names and values).
CREATE FUNCTION new_node(p_parent int8, w int4, b int4, words int8[], blobs bytea[], p_now int8,
    p_named boolean) RETURNS touched LANGUAGE plpgsql AS $$
DECLARE
    n node;
    v_target bytea;
    v_b int4 := b;
BEGIN
    IF words[w + 8] <> 0 THEN
        v_target := blobs[b];
        v_b := b + 1;
        INSERT INTO target VALUES (words[w], v_target);
    END IF;
    INSERT INTO node VALUES (words[w], words[w + 5], coalesce(length(v_target), 0), p_now, p_now,
        p_now, p_now, p_parent, 0, 1,
        CASE WHEN NOT p_named THEN 0 WHEN words[w + 1] = 4 THEN 2 ELSE 1 END,
        words[w + 3], words[w + 4], words[w + 6], words[w + 7], words[w + 1], words[w + 2],
        CASE WHEN words[w + 9] > 0 THEN 1 ELSE 0 END + CASE WHEN p_named THEN 0 ELSE 16 END)
        RETURNING * INTO n;
    FOR i IN 0 .. words[w + 9] - 1 LOOP
        INSERT INTO xattr VALUES (n.ino, blobs[v_b + 2 * i], blobs[v_b + 2 * i + 1]);
    END LOOP;
    RETURN ROW(NULL, NULL, NULL, NULL, n, v_target)::touched;
END $$;

-- Locks what a batch may change: topics, then inodes. Returns the topics.
CREATE FUNCTION lock_batch(p_base int8, p_notifies boolean, p_dirs int8[], p_inos int8[],
    p_topology boolean) RETURNS int8[] LANGUAGE plpgsql AS $$
DECLARE
    v_inos int8[] := p_inos;
    v_topics int8[] := '{}';
    v_parents int8[] := '{}';
    v_parent int8;
    v_ino int8;
    i int4 := 0;
BEGIN
    IF p_topology THEN
        PERFORM pg_advisory_xact_lock(p_base);
    END IF;
    IF cardinality(p_inos) > 1 THEN
        v_inos := ARRAY(SELECT DISTINCT u FROM unnest(p_inos) u ORDER BY 1);
    END IF;
    IF p_notifies THEN
        FOREACH v_ino IN ARRAY v_inos LOOP
            SELECT parent INTO v_parent FROM node WHERE ino = v_ino;
            v_parents := array_append(v_parents, v_parent);
        END LOOP;
        v_topics := ARRAY(SELECT DISTINCT u FROM unnest(p_dirs || v_parents) u
            WHERE u IS NOT NULL ORDER BY 1);
        FOREACH v_ino IN ARRAY v_topics LOOP
            PERFORM pg_advisory_xact_lock_shared(p_base # v_ino);
        END LOOP;
    END IF;
    FOREACH v_ino IN ARRAY v_inos LOOP
        i := i + 1;
        SELECT parent INTO v_parent FROM node WHERE ino = v_ino FOR NO KEY UPDATE;
        IF p_notifies AND FOUND AND v_parents[i] IS DISTINCT FROM v_parent THEN
            RAISE EXCEPTION 'an inode moved meanwhile' USING ERRCODE = '40001';
        END IF;
    END LOOP;
    RETURN v_topics;
END $$;

-- Adds what extents map of objects, in the order of their numbers.
CREATE FUNCTION account_objects(p_ids int8[], p_live int8[], p_sizes int8[], p_now int8,
    OUT objects int8, OUT bytes int8, OUT live int8) LANGUAGE plpgsql AS $$
DECLARE
    r record;
BEGIN
    objects := 0;
    bytes := 0;
    live := 0;
    FOR r IN SELECT u.id, sum(u.live)::int8 AS live, max(u.size) AS size
        FROM unnest(p_ids, p_live, p_sizes) u (id, live, size) GROUP BY u.id ORDER BY u.id
    LOOP
        IF r.size IS NOT NULL THEN
            INSERT INTO object VALUES (r.id, r.size, 0, false, p_now) ON CONFLICT DO NOTHING;
            IF FOUND THEN
                objects := objects + 1;
                bytes := bytes + r.size;
            END IF;
        END IF;
        live := live + r.live;
        UPDATE object o SET live = o.live + r.live,
            since = CASE WHEN o.live + r.live = 0 THEN p_now ELSE o.since END
            WHERE o.id = r.id AND (NOT o.doomed OR r.live <= 0);
        IF NOT FOUND THEN
            RAISE EXCEPTION 'object % is not in use', r.id USING ERRCODE = 'HF002';
        END IF;
    END LOOP;
END $$;

CREATE FUNCTION hf1_perform(p_sid int8, p_slot int4, p_seq int8, p_hash int8, words int8[],
    blobs bytea[]) RETURNS bytea LANGUAGE plpgsql SECURITY DEFINER @pinned@ AS $$
DECLARE
    v_seq int8;
    v_hash int8;
    v_results bytea;
    v_end int4 := coalesce(array_length(words, 1), 0);
    v_base int8;
    v_notifies boolean;
    v_inline int8;
    v_now int8;
    w int4;
    b int4;
    v_op int8;
    v_dirs int8[] := '{}';
    v_inos int8[] := '{}';
    v_ino int8;
    v_kind int2;
    v_topology boolean := false;
    results result[] := '{}';
    v_result result;
    d node;                  -- the directory of the last request, as it is to be
    v_dirty boolean := false;
    o node;
    n node;
    v_new touched;
    e entry;
    v_ctime int8;
    v_inodes int8 := 0;
    v_pages int8 := 0;
    v_staged int8 := 0;
    v_objects int8 := 0;
    v_object_bytes int8 := 0;
    v_live_bytes int8 := 0;
    f record;
    v_ids int8[] := '{}';
    v_live int8[] := '{}';
    v_sizes int8[] := '{}';
    v_topics int8[];
    v_told int8[];
BEGIN
    SELECT s.seq, s.hash, s.results INTO v_seq, v_hash, v_results
        FROM slot s WHERE s.sid = p_sid AND s.number = p_slot FOR UPDATE;
    IF v_seq = p_seq AND v_hash = p_hash THEN
        RETURN v_results;
    ELSIF v_seq IS DISTINCT FROM p_seq - 1 THEN
        PERFORM fenced();
    END IF;
    SELECT v.lock_base, v.notifies, v.inline INTO v_base, v_notifies, v_inline
        FROM volume v WHERE v.one;

    -- What is to be locked.
    w := 1;
    b := 1;
    WHILE w <= v_end LOOP
        v_op := words[w];
        v_ino := words[w + 3];
        IF v_op <= 5 THEN
            IF v_op = 3 THEN
                v_inos := array_append(v_inos, v_ino);
                v_ino := words[w + 4];
            END IF;
            IF v_op <> 2 AND (v_inos[cardinality(v_inos)] = v_ino) IS NOT TRUE THEN
                v_inos := array_append(v_inos, v_ino);
            END IF;
            v_dirs := array_append(v_dirs, v_ino);
            IF v_op >= 4 THEN
                SELECT ino, kind INTO v_ino, v_kind
                    FROM entry WHERE dir = v_ino AND name = blobs[b];
                IF FOUND THEN
                    v_inos := array_append(v_inos, v_ino);
                END IF;
            END IF;
            IF v_op = 5 THEN
                v_topology := v_topology OR words[w + 3] <> words[w + 4] AND v_kind = 4;
                v_inos := array_append(v_inos, words[w + 4]);
                v_dirs := array_append(v_dirs, words[w + 4]);
                SELECT ino, kind INTO v_ino, v_kind
                    FROM entry WHERE dir = words[w + 4] AND name = blobs[b + 1];
                IF FOUND THEN
                    v_inos := array_append(v_inos, v_ino);
                    v_topology := v_topology
                        OR words[w + 3] <> words[w + 4] AND v_kind = 4 AND words[w + 5] & 2 <> 0;
                END IF;
            END IF;
        ELSE
            v_inos := array_append(v_inos, v_ino);
        END IF;
        b := b + words[w + 2];
        w := w + words[w + 1];
    END LOOP;
    v_topics := lock_batch(v_base, v_notifies, v_dirs, v_inos, v_topology);
    v_now := now_ns();

    w := 1;
    b := 1;
    WHILE w <= v_end LOOP
        v_op := words[w];
        -- The directory of requests that follow each other is written once.
        IF v_dirty AND (v_op NOT IN (1, 4) OR d.ino <> words[w + 3]) THEN
            UPDATE node SET size = d.size, nlink = d.nlink, mtime = d.mtime, ctime = d.ctime
                WHERE ino = d.ino;
            v_dirty := false;
        END IF;
        IF v_op IN (1, 4) THEN
            IF NOT v_dirty THEN
                SELECT * INTO d FROM node WHERE ino = words[w + 3];
            END IF;
            o := d;
        END IF;
        IF v_op = 1 THEN
            IF d.ino IS NULL THEN
                v_result := failed(116);
            ELSIF d.kind <> 4 THEN
                v_result := failed(20);
            ELSIF d.nlink = 0 THEN
                v_result := failed(2);
            ELSIF words[w + 5] = 4 AND d.nlink = 2147483647 THEN
                v_result := failed(31);
            ELSE
                INSERT INTO entry VALUES (d.ino, words[w + 4], words[w + 4], words[w + 5], blobs[b])
                    ON CONFLICT (dir, name) DO NOTHING;
                IF NOT FOUND THEN
                    v_result := failed(17);
                ELSE
                    v_new := new_node(d.ino, w + 4, b + 1, words, blobs, v_now, true);
                    v_inodes := v_inodes + 1;
                    d.size := d.size + 32;
                    d.ctime := greatest(v_now, d.ctime + 1);
                    d.mtime := d.ctime;
                    IF words[w + 5] = 4 THEN
                        d.nlink := d.nlink + 1;
                    END IF;
                    v_dirty := true;
                    v_result := ROW(0, words[w + 4], words[w + 5], NULL, NULL,
                        ARRAY[ROW(o.size, o.mtime, o.ctime, o.parent, d, NULL)::touched, v_new]
                        )::result;
                END IF;
            END IF;
        ELSIF v_op = 4 THEN
            e := NULL;
            IF d.ino IS NULL THEN
                v_result := failed(116);
            ELSIF d.kind <> 4 THEN
                v_result := failed(20);
            ELSE
                SELECT * INTO e FROM entry WHERE dir = d.ino AND name = blobs[b];
                n := NULL;
                IF e.ino IS NULL THEN
                    v_result := failed(2);
                ELSIF words[w + 4] <> 0 AND e.kind <> 4 THEN
                    v_result := failed(20);
                ELSIF words[w + 4] = 0 AND e.kind = 4 THEN
                    v_result := failed(21);
                ELSE
                    n := locked_node(e.ino, v_inos);
                    IF n.ino IS NULL THEN
                        v_result := failed(not_locked(e.ino, 5));
                    ELSIF n.kind = 4 AND EXISTS (SELECT FROM entry WHERE dir = e.ino) THEN
                        v_result := failed(39);
                        n := NULL;
                    END IF;
                END IF;
                IF n.ino IS NOT NULL THEN
                    DELETE FROM entry WHERE dir = d.ino AND name = blobs[b];
                    v_ctime := greatest(v_now, n.ctime + 1);
                    d.size := d.size - 32;
                    d.ctime := greatest(v_now, d.ctime + 1);
                    d.mtime := d.ctime;
                    IF n.kind = 4 THEN
                        d.nlink := d.nlink - 1;
                    END IF;
                    v_dirty := true;
                    v_new := drop_name(n, v_ctime);
                    v_result := ROW(0, n.ino, n.kind, NULL, NULL,
                        ARRAY[ROW(o.size, o.mtime, o.ctime, o.parent, d, NULL)::touched, v_new]
                        )::result;
                END IF;
            END IF;
        ELSIF v_op = 2 THEN
            v_result := make_unnamed(p_sid, w + 3, b, words, blobs, v_now);
            IF v_result.code = 0 THEN
                v_inodes := v_inodes + 1;
            END IF;
        ELSIF v_op = 3 THEN
            v_result := link_node(words[w + 3], words[w + 4], words[w + 5], blobs[b], v_inos,
                v_now);
        ELSIF v_op = 5 THEN
            v_result := move_name(w + 3, b, words, blobs, v_inos, v_topology, v_now);
            IF v_result.code = 0 AND words[w + 7] <> 0 AND v_result.touched IS NOT NULL THEN
                v_inodes := v_inodes + 1;
            END IF;
        ELSIF v_op = 6 THEN
            v_result := set_attributes(w + 3, b, words, blobs, v_inos, v_now);
        ELSIF v_op IN (7, 8) THEN
            v_result := set_xattr(v_op = 8, w + 3, b, words, blobs, v_inos, v_now);
        ELSE
            SELECT * INTO f FROM flush_file(w + 3, b, words, blobs, v_inos, v_now, v_inline);
            v_result := f.answer;
            v_pages := v_pages + f.pages;
            v_staged := v_staged + f.staged;
            v_ids := v_ids || f.ids;
            v_live := v_live || f.live;
            v_sizes := v_sizes || f.sizes;
        END IF;
        results := array_append(results, v_result);
        b := b + words[w + 2];
        w := w + words[w + 1];
    END LOOP;
    IF v_dirty THEN
        UPDATE node SET size = d.size, nlink = d.nlink, mtime = d.mtime, ctime = d.ctime
            WHERE ino = d.ino;
    END IF;
    IF v_notifies THEN
        SELECT array_agg(DISTINCT dir) INTO v_told
            FROM interest WHERE dir = ANY (v_topics) AND sid <> p_sid;
        IF v_told IS NOT NULL AND notify_others(p_sid, v_told, words, blobs, results, v_now) THEN
            -- The client rings once this is committed.
            results := array_append(results, failed(-3));
        END IF;
    END IF;
    IF cardinality(v_ids) > 0 THEN
        SELECT * INTO v_objects, v_object_bytes, v_live_bytes
            FROM account_objects(v_ids, v_live, v_sizes, v_now);
    END IF;
    v_results := array_send(results);
    UPDATE slot s SET seq = p_seq, hash = p_hash, results = v_results,
        inodes = s.inodes + v_inodes, pages = s.pages + v_pages,
        staged_bytes = s.staged_bytes + v_staged, objects = s.objects + v_objects,
        object_bytes = s.object_bytes + v_object_bytes,
        live_bytes = s.live_bytes + v_live_bytes
        WHERE s.sid = p_sid AND s.number = p_slot;
    RETURN v_results;
END $$;
