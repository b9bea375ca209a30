-- Requests about names and attributes. Each function answers one of them; `w` and `b` are the first
-- word and the first blob behind the head of the request.

-- An inode loses a name, or for a directory its only one.
CREATE FUNCTION drop_name(o node, p_ctime int8) RETURNS touched LANGUAGE plpgsql AS $$
DECLARE
    n node;
BEGIN
    UPDATE node SET nlink = CASE WHEN kind = 4 THEN 0 ELSE nlink - 1 END, ctime = p_ctime
        WHERE ino = o.ino RETURNING * INTO n;
    IF n.nlink = 0 THEN
        INSERT INTO gone VALUES (n.ino, pg_current_xact_id());
    END IF;
    RETURN changed(o, n);
END $$;

-- A directory gets `p_names` names and `p_dirs` subdirectories more.
CREATE FUNCTION change_names(p_dir int8, p_names int8, p_dirs int4, p_now int8) RETURNS touched
LANGUAGE plpgsql AS $$
DECLARE
    o node;
    n node;
BEGIN
    SELECT * INTO o FROM node WHERE ino = p_dir;
    UPDATE node SET size = size + 32 * p_names, nlink = nlink + p_dirs,
        ctime = greatest(p_now, ctime + 1), mtime = greatest(p_now, ctime + 1)
        WHERE ino = p_dir RETURNING * INTO n;
    RETURN changed(o, n);
END $$;

CREATE FUNCTION make_unnamed(p_sid int8, w int4, b int4, words int8[], blobs bytea[], p_now int8)
RETURNS result LANGUAGE plpgsql AS $$
DECLARE
    d node;
    v_new touched;
BEGIN
    SELECT * INTO d FROM node WHERE ino = words[w];
    IF d.ino IS NULL THEN
        RETURN failed(116);
    ELSIF d.kind <> 4 THEN
        RETURN failed(20);
    ELSIF d.nlink = 0 THEN
        RETURN failed(2);
    ELSIF words[w + 2] <> 8 THEN
        RETURN failed(22);
    END IF;
    v_new := new_node(d.ino, w + 1, b, words, blobs, p_now, false);
    INSERT INTO gone VALUES (words[w + 1], pg_current_xact_id());
    INSERT INTO sustain VALUES (words[w + 1], p_sid);
    RETURN ROW(0, words[w + 1], words[w + 2], NULL, NULL, ARRAY[v_new])::result;
END $$;

CREATE FUNCTION link_node(p_ino int8, p_dir int8, p_cookie int8, p_name bytea, p_locked int8[],
    p_now int8) RETURNS result LANGUAGE plpgsql AS $$
DECLARE
    d node;
    o node;
    n node;
BEGIN
    d := locked_node(p_dir, p_locked);
    o := locked_node(p_ino, p_locked);
    IF o.ino IS NULL THEN
        RETURN failed(116);
    ELSIF o.kind = 4 THEN
        RETURN failed(1);
    ELSIF o.nlink = 0 AND o.bits & 16 = 0 THEN
        RETURN failed(2);
    ELSIF o.nlink = 2147483647 THEN
        RETURN failed(31);
    ELSIF d.ino IS NULL THEN
        RETURN failed(116);
    ELSIF d.kind <> 4 THEN
        RETURN failed(20);
    ELSIF d.nlink = 0 THEN
        RETURN failed(2);
    ELSIF EXISTS (SELECT FROM entry WHERE dir = p_dir AND name = p_name) THEN
        RETURN failed(17);
    END IF;
    INSERT INTO entry VALUES (p_dir, p_cookie, p_ino, o.kind, p_name);
    UPDATE node SET nlink = nlink + 1, bits = bits & ~16, parent = p_dir,
        ctime = greatest(p_now, ctime + 1) WHERE ino = p_ino RETURNING * INTO n;
    IF o.nlink = 0 THEN
        DELETE FROM gone WHERE ino = p_ino;
        DELETE FROM sustain WHERE ino = p_ino;
    END IF;
    RETURN ROW(0, p_ino, o.kind, NULL, NULL,
        ARRAY[change_names(p_dir, 1, 0, p_now), changed(o, n)])::result;
END $$;

-- Is `p_ino` the directory `p_dir`, or above it?
CREATE FUNCTION is_above(p_ino int8, p_dir int8) RETURNS boolean LANGUAGE plpgsql AS $$
DECLARE
    v_dir int8 := p_dir;
BEGIN
    -- A loop, which only damage makes, ends the walk as well.
    FOR i IN 0 .. 1000000 LOOP
        IF v_dir IS NULL OR v_dir = 1 OR v_dir = p_ino THEN
            RETURN v_dir = p_ino;
        END IF;
        SELECT parent INTO v_dir FROM node WHERE ino = v_dir;
    END LOOP;
    RETURN true;
END $$;

-- Words: both directories, flags, cookie, is there a whiteout, its ten words.
-- Blobs: both names, those of the whiteout. Flags: 1 no replacing, 2 exchange, 4 whiteout.
CREATE FUNCTION move_name(w int4, b int4, words int8[], blobs bytea[], p_locked int8[],
    p_topology boolean, p_now int8) RETURNS result LANGUAGE plpgsql AS $$
DECLARE
    v_from int8 := words[w];
    v_to int8 := words[w + 1];
    v_exchange boolean := words[w + 2] & 2 <> 0;
    v_cookie int8 := words[w + 3];
    v_same boolean := v_from = v_to;
    f node;
    t node;
    s entry;
    r entry;
    o node;
    n node;
    g node;
    v_touched touched[] := '{}';
    v_source touched;
    v_names int4 := 0;
    v_dirs int4 := 0;
BEGIN
    f := locked_node(v_from, p_locked);
    t := locked_node(v_to, p_locked);
    IF f.ino IS NULL OR t.ino IS NULL THEN
        RETURN failed(116);
    ELSIF f.kind <> 4 OR t.kind <> 4 THEN
        RETURN failed(20);
    END IF;
    SELECT * INTO s FROM entry WHERE dir = v_from AND name = blobs[b];
    SELECT * INTO r FROM entry WHERE dir = v_to AND name = blobs[b + 1];
    IF s.ino IS NULL THEN
        RETURN failed(2);
    ELSIF v_exchange AND words[w + 2] <> 2 THEN
        RETURN failed(22);
    ELSIF r.ino IS NOT NULL AND words[w + 2] & 1 <> 0 THEN
        RETURN failed(17);
    ELSIF r.ino IS NULL AND (v_exchange OR t.nlink = 0) THEN
        RETURN failed(2);
    END IF;
    IF NOT v_same AND (s.kind = 4 OR v_exchange AND r.kind = 4) AND NOT p_topology THEN
        RETURN failed(-2);
    END IF;
    IF s.kind = 4 AND is_above(s.ino, v_to)
        OR v_exchange AND r.kind = 4 AND is_above(r.ino, v_from)
    THEN
        RETURN failed(22);
    ELSIF s.ino = r.ino THEN
        RETURN ROW(0, s.ino, s.kind, NULL, NULL, NULL)::result;
    ELSIF r.ino IS NOT NULL AND NOT v_exchange THEN
        IF s.kind = 4 AND r.kind <> 4 THEN
            RETURN failed(20);
        ELSIF s.kind <> 4 AND r.kind = 4 THEN
            RETURN failed(21);
        END IF;
    END IF;
    o := locked_node(s.ino, p_locked);
    IF o.ino IS NULL THEN
        RETURN failed(not_locked(s.ino, 5));
    END IF;
    IF r.ino IS NOT NULL THEN
        g := locked_node(r.ino, p_locked);
        IF g.ino IS NULL THEN
            RETURN failed(not_locked(r.ino, 5));
        ELSIF NOT v_exchange AND g.kind = 4 AND EXISTS (SELECT FROM entry WHERE dir = g.ino) THEN
            RETURN failed(39);
        END IF;
    END IF;

    DELETE FROM entry WHERE dir = v_from AND name = s.name;
    DELETE FROM entry WHERE dir = v_to AND name = blobs[b + 1];
    INSERT INTO entry VALUES (v_to, v_cookie, s.ino, s.kind, blobs[b + 1]);
    UPDATE node SET ctime = greatest(p_now, ctime + 1), parent = v_to
        WHERE ino = s.ino RETURNING * INTO n;
    v_source := changed(o, n);
    IF v_exchange THEN
        INSERT INTO entry VALUES (v_from, v_cookie + 1, r.ino, r.kind, s.name);
        UPDATE node SET ctime = greatest(p_now, ctime + 1), parent = v_from
            WHERE ino = r.ino RETURNING * INTO n;
        v_touched := ARRAY[v_source, changed(g, n)];
    ELSIF r.ino IS NOT NULL THEN
        v_touched := ARRAY[v_source, drop_name(g, greatest(p_now, g.ctime + 1))];
    ELSE
        v_touched := ARRAY[v_source];
    END IF;
    IF words[w + 4] <> 0 THEN
        INSERT INTO entry VALUES (v_from, words[w + 5], words[w + 5], words[w + 6], s.name);
        v_touched := v_touched || new_node(v_from, w + 5, b + 2, words, blobs, p_now, true);
        v_names := 1;
    END IF;

    -- What the directories gain: `v_names` and `v_dirs` count for the first of them.
    IF NOT v_exchange THEN
        v_names := v_names - 1;
        v_dirs := CASE WHEN s.kind = 4 THEN -1 ELSE 0 END;
    ELSIF s.kind = 4 AND r.kind <> 4 THEN
        v_dirs := -1;
    ELSIF s.kind <> 4 AND r.kind = 4 THEN
        v_dirs := 1;
    END IF;
    IF v_same THEN
        v_touched := v_touched || change_names(v_from,
            v_names + CASE WHEN r.ino IS NULL THEN 1 ELSE 0 END,
            CASE WHEN NOT v_exchange AND r.kind = 4 THEN -1 ELSE 0 END, p_now);
    ELSE
        v_touched := v_touched || change_names(v_from, v_names, v_dirs, p_now);
        v_touched := v_touched || change_names(v_to,
            CASE WHEN r.ino IS NULL THEN 1 ELSE 0 END,
            CASE WHEN v_exchange THEN -v_dirs WHEN s.kind = 4 AND r.ino IS NULL THEN 1 ELSE 0 END,
            p_now);
    END IF;
    RETURN ROW(0, s.ino, s.kind, r.ino, r.kind, v_touched)::result;
END $$;

-- Bit 1 of `bits`: are there extended attributes?
CREATE FUNCTION with_xattrs(p_ino int8, p_bits int2) RETURNS int2 LANGUAGE plpgsql AS $$
BEGIN
    PERFORM 1 FROM xattr WHERE ino = p_ino;
    RETURN (p_bits & ~1) | CASE WHEN FOUND THEN 1 ELSE 0 END;
END $$;

-- Applies changes of attributes to an inode that the caller writes. Eight words: a mask,
-- permissions, owner, group, times of access and modification, flags, project. One blob: the access
-- control list.
CREATE FUNCTION with_attributes(p_node node, w int4, p_acl bytea, words int8[], p_time int8)
RETURNS node LANGUAGE plpgsql AS $$
DECLARE
    n node := p_node;
    v_mask int8 := words[w];
BEGIN
    IF v_mask & 1 <> 0 THEN
        n.perm := words[w + 1];
    END IF;
    IF v_mask & 2 <> 0 THEN
        n.uid := words[w + 2];
    END IF;
    IF v_mask & 4 <> 0 THEN
        n.gid := words[w + 3];
    END IF;
    IF v_mask & 24 <> 0 THEN
        n.atime := CASE WHEN v_mask & 8 <> 0 THEN words[w + 4] ELSE p_time END;
    END IF;
    IF v_mask & 96 <> 0 THEN
        n.mtime := CASE WHEN v_mask & 32 <> 0 THEN words[w + 5] ELSE p_time END;
    END IF;
    IF v_mask & 128 <> 0 THEN
        n.flags := words[w + 6];
    END IF;
    IF v_mask & 256 <> 0 THEN
        n.project := words[w + 7];
    END IF;
    IF v_mask & 512 <> 0 THEN
        INSERT INTO xattr VALUES (n.ino, 'system.posix_acl_access', p_acl)
            ON CONFLICT (ino, name) DO UPDATE SET value = excluded.value;
        n.bits := n.bits | 1;
    END IF;
    IF n.bits & 1 <> 0 AND (v_mask & 1024 <> 0 OR v_mask & 6 <> 0 AND n.kind <> 4) THEN
        DELETE FROM xattr WHERE ino = n.ino AND name = 'security.capability';
        n.bits := with_xattrs(n.ino, n.bits);
    END IF;
    RETURN n;
END $$;

CREATE FUNCTION set_attributes(w int4, b int4, words int8[], blobs bytea[], p_locked int8[],
    p_now int8) RETURNS result LANGUAGE plpgsql AS $$
DECLARE
    o node;
    n node;
BEGIN
    o := locked_node(words[w], p_locked);
    IF o.ino IS NULL THEN
        RETURN failed(116);
    END IF;
    n := o;
    n.ctime := greatest(p_now, o.ctime + 1);
    n := with_attributes(n, w + 1, blobs[b], words, n.ctime);
    UPDATE node SET perm = n.perm, uid = n.uid, gid = n.gid, atime = n.atime, mtime = n.mtime,
        ctime = n.ctime, flags = n.flags, project = n.project, bits = n.bits WHERE ino = n.ino;
    RETURN ROW(0, NULL, NULL, NULL, NULL, ARRAY[changed(o, n)])::result;
END $$;

-- Words: inode, then to set: 0 any 1 new 2 replace, is there a value, are there permissions, they.
CREATE FUNCTION set_xattr(p_remove boolean, w int4, b int4, words int8[], blobs bytea[],
    p_locked int8[], p_now int8) RETURNS result LANGUAGE plpgsql AS $$
DECLARE
    o node;
    n node;
    v_exists boolean;
BEGIN
    o := locked_node(words[w], p_locked);
    IF o.ino IS NULL THEN
        RETURN failed(116);
    END IF;
    n := o;
    n.ctime := greatest(p_now, o.ctime + 1);
    v_exists := EXISTS (SELECT FROM xattr WHERE ino = n.ino AND name = blobs[b]);
    IF NOT v_exists AND (p_remove OR words[w + 1] = 2) THEN
        RETURN failed(61);
    ELSIF v_exists AND NOT p_remove AND words[w + 1] = 1 THEN
        RETURN failed(17);
    END IF;
    IF p_remove OR words[w + 2] = 0 THEN
        DELETE FROM xattr WHERE ino = n.ino AND name = blobs[b];
        n.bits := with_xattrs(n.ino, n.bits);
    ELSE
        INSERT INTO xattr VALUES (n.ino, blobs[b], blobs[b + 1])
            ON CONFLICT (ino, name) DO UPDATE SET value = excluded.value;
        n.bits := n.bits | 1;
    END IF;
    IF NOT p_remove AND words[w + 3] <> 0 THEN
        n.perm := words[w + 4];
    END IF;
    UPDATE node SET perm = n.perm, ctime = n.ctime, bits = n.bits WHERE ino = n.ino;
    RETURN ROW(0, NULL, NULL, NULL, NULL, ARRAY[changed(o, n)])::result;
END $$;
