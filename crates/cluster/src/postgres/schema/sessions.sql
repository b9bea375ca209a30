-- Sessions, and what any of them does for all.

-- Begins a session with slots 0 to `p_slots` - 1, and one for the sweep.
CREATE FUNCTION hf1_begin(p_host text, p_version text, p_slots int4) RETURNS int8
LANGUAGE plpgsql SECURITY DEFINER @pinned@ AS $$
DECLARE
    v_sid int8;
BEGIN
    UPDATE volume SET next_number = next_number + 1 WHERE one RETURNING next_number - 1 INTO v_sid;
    INSERT INTO session (sid, host, version, heard, looked)
        VALUES (v_sid, p_host, p_version, now_ns(),
            (pg_snapshot_xmin(pg_current_snapshot())::text)::xid8);
    INSERT INTO slot (sid, number, seq, hash, results)
        SELECT v_sid, l, 0, 0, '' FROM generate_series(0, p_slots) l;
    INSERT INTO life (number) VALUES ((random() * 9007199254740992)::int8) ON CONFLICT DO NOTHING;
    RETURN v_sid;
END $$;

-- The settings. A program that does not know the format calls nothing else.
CREATE FUNCTION hf1_settings()
RETURNS TABLE (format int4, uuid bytea, incarnation int8, bucket text, endpoint text, region text,
    notifies boolean, lease int8, inline int8, staged int8, keep int8)
LANGUAGE plpgsql SECURITY DEFINER @pinned@ AS $$
BEGIN
    RETURN QUERY SELECT v.format, uuid_send(v.uuid), v.incarnation, v.bucket, v.endpoint, v.region,
        v.notifies, v.lease, v.inline, v.staged, v.keep FROM volume v WHERE v.one;
END $$;

CREATE FUNCTION hf1_deal(p_sid int8, p_count int8) RETURNS int8
LANGUAGE plpgsql SECURITY DEFINER @pinned@ AS $$
DECLARE
    v_first int8;
BEGIN
    PERFORM 1 FROM session WHERE sid = p_sid FOR KEY SHARE;
    IF NOT FOUND THEN
        PERFORM fenced();
    END IF;
    UPDATE volume SET next_number = next_number + p_count WHERE one
        RETURNING next_number - p_count INTO v_first;
    IF p_count > 0 THEN
        INSERT INTO deal VALUES (v_first, v_first + p_count - 1, p_sid);
    END IF;
    RETURN v_first;
END $$;

-- All interest of a session ends, with its messages.
CREATE FUNCTION strike(p_sid int8) RETURNS void LANGUAGE plpgsql AS $$
BEGIN
    DELETE FROM interest WHERE sid = p_sid;
    DELETE FROM inbox WHERE sid = p_sid;
    UPDATE session SET struck = struck + 1 WHERE sid = p_sid;
END $$;

-- Row 0: `a` the time, `b` the life of the unlogged tables, `c` how often interest was struck.
-- Row 1: `a` the timeline, `b` where the inodes that are gone end, `c` are there more messages.
-- Rows 2: a message `a` of the inode or directory `b`, with content or not (`c`), or with a name.
-- Rows 3: the inode `a` is gone.
CREATE FUNCTION hf1_beat(p_sid int8, p_taken int8, p_knows int8[], p_releases int8[],
    p_looked_at int8, p_unsubscribes int8[])
RETURNS TABLE (row_kind int4, a int8, b int8, c int8, name bytea)
LANGUAGE plpgsql SECURITY DEFINER @pinned@ AS $$
#variable_conflict use_column
DECLARE
    c_most CONSTANT int8 := 1024;
    s session;
    m inbox;
    g gone;
    v_now int8 := now_ns();
    v_life int8;
    v_upto xid8;
    v_count int8 := 0;
BEGIN
    SELECT * INTO s FROM session WHERE sid = p_sid FOR NO KEY UPDATE;
    IF NOT FOUND THEN
        PERFORM fenced();
    END IF;
    IF v_now - s.heard > 5000000000 THEN
        PERFORM strike(p_sid);
        s.struck := s.struck + 1;
    ELSE
        IF p_taken >= s.sent AND s.sent_in IS NOT NULL THEN
            DELETE FROM inbox WHERE sid = p_sid AND id <= s.sent_id
                AND pg_visible_in_snapshot(xid, s.sent_in);
        END IF;
        FOR i IN 1 .. cardinality(p_unsubscribes) LOOP
            DELETE FROM interest WHERE dir = p_unsubscribes[i] AND sid = p_sid;
        END LOOP;
    END IF;
    FOR i IN 1 .. cardinality(p_releases) LOOP
        DELETE FROM sustain WHERE ino = p_releases[i] AND sid = p_sid;
    END LOOP;
    FOR i IN 1 .. cardinality(p_knows) LOOP
        INSERT INTO sustain SELECT ino, p_sid FROM node WHERE ino = p_knows[i] AND nlink = 0
            ON CONFLICT DO NOTHING;
    END LOOP;

    SELECT number INTO v_life FROM life WHERE one;
    IF v_life IS NULL THEN
        INSERT INTO life (number) VALUES ((random() * 9007199254740992)::int8)
            ON CONFLICT DO NOTHING;
        SELECT number INTO v_life FROM life WHERE one;
    END IF;
    s.sent_in := pg_current_snapshot();
    FOR m IN SELECT * FROM inbox WHERE sid = p_sid AND pg_visible_in_snapshot(xid, s.sent_in)
        ORDER BY sid, id LIMIT c_most + 1
    LOOP
        v_count := v_count + 1;
        EXIT WHEN v_count > c_most;
        s.sent := s.sent + 1;
        s.sent_id := m.id;
        RETURN QUERY SELECT 2, s.sent, m.ino, CASE WHEN m.content THEN 1 ELSE 0 END::int8, m.name;
    END LOOP;
    IF v_count > c_most THEN
        PERFORM 1 FROM inbox WHERE sid = p_sid ORDER BY sid, id OFFSET 65536 LIMIT 1;
        IF FOUND THEN
            PERFORM strike(p_sid);
            s.struck := s.struck + 1;
        END IF;
    END IF;

    -- Transactions before this one have ended, so that nothing appears behind it later.
    s.looked := greatest(s.looked, p_looked_at::text::xid8);
    v_upto := (pg_snapshot_xmin(pg_current_snapshot())::text)::xid8;
    FOR g IN SELECT * FROM gone WHERE xid >= s.looked AND xid < v_upto ORDER BY xid LIMIT 4096 LOOP
        -- It says by itself when it uses no more what it is known to use.
        PERFORM 1 FROM sustain WHERE ino = g.ino AND sid = p_sid;
        IF NOT FOUND THEN
            RETURN QUERY SELECT 3, g.ino, 0::int8, 0::int8, NULL::bytea;
        END IF;
    END LOOP;
    PERFORM 1 FROM gone WHERE xid >= s.looked AND xid < v_upto ORDER BY xid OFFSET 4096 LIMIT 1;
    IF FOUND THEN
        -- The last transaction may be cut: it is asked for once more.
        v_upto := g.xid;
    END IF;
    UPDATE session SET heard = v_now, looked = s.looked, sent = s.sent, sent_id = s.sent_id,
        sent_in = s.sent_in WHERE sid = p_sid;
    RETURN QUERY SELECT 0, v_now, v_life, s.struck, NULL::bytea;
    RETURN QUERY SELECT 1,
        ('x' || substr(pg_walfile_name(pg_current_wal_lsn()), 1, 8))::bit(32)::int8,
        v_upto::text::int8, CASE WHEN v_count > c_most THEN 1 ELSE 0 END::int8, NULL::bytea;
END $$;

-- Notifications of a session come to the connection that calls this last. With `p_rings`, those of
-- all sessions with messages that wait are sent. They only save the wait for the next beat.
CREATE FUNCTION hf1_ring(p_sid int8, p_rings boolean) RETURNS void
LANGUAGE plpgsql SECURITY DEFINER @pinned@ AS $$
DECLARE
    v_channel text;
BEGIN
    PERFORM begin_question(p_sid, '{}');
    SELECT 'hf1_' || lock_base || '_' INTO v_channel FROM volume WHERE one;
    EXECUTE format('LISTEN %I', v_channel || p_sid);
    IF p_rings THEN
        PERFORM pg_notify(v_channel || s.sid, '') FROM session s WHERE s.sid <> p_sid
            AND EXISTS (SELECT FROM inbox i WHERE i.sid = s.sid);
    END IF;
END $$;

-- Ends a session. To delete its slots waits for what is performed for it at the moment.
CREATE FUNCTION end_session(p_sid int8) RETURNS boolean LANGUAGE plpgsql AS $$
DECLARE
    l slot;
    v_slot int4;
BEGIN
    PERFORM 1 FROM session WHERE sid = p_sid FOR UPDATE;
    IF NOT FOUND THEN
        RETURN false;
    END IF;
    FOR v_slot IN SELECT number FROM slot WHERE sid = p_sid ORDER BY sid, number LOOP
        DELETE FROM slot WHERE sid = p_sid AND number = v_slot RETURNING * INTO l;
        CONTINUE WHEN NOT FOUND;
        UPDATE volume SET inodes = inodes + l.inodes, pages = pages + l.pages,
            staged_bytes = staged_bytes + l.staged_bytes, objects = objects + l.objects,
            object_bytes = object_bytes + l.object_bytes, live_bytes = live_bytes + l.live_bytes
            WHERE one;
    END LOOP;
    DELETE FROM sustain WHERE sid = p_sid;
    DELETE FROM interest WHERE sid = p_sid;
    DELETE FROM inbox WHERE sid = p_sid;
    DELETE FROM deal WHERE sid = p_sid;
    DELETE FROM session WHERE sid = p_sid;
    RETURN true;
END $$;

CREATE FUNCTION hf1_end(p_sid int8) RETURNS boolean LANGUAGE plpgsql SECURITY DEFINER @pinned@ AS $$
BEGIN
    RETURN end_session(p_sid);
END $$;

CREATE FUNCTION hf1_clients(p_sid int8)
RETURNS TABLE (sid int8, host text, version text, silent int8, waiting int8)
LANGUAGE plpgsql SECURITY DEFINER @free@ AS $$
BEGIN
    PERFORM begin_question(p_sid, '{}');
    RETURN QUERY SELECT s.sid, s.host, s.version, greatest(now_ns() - s.heard, 0),
        (SELECT count(*) FROM inbox i WHERE i.sid = s.sid) FROM session s ORDER BY s.sid;
END $$;

-- Ends silent sessions, and frees inodes that no session uses. Returns their number.
CREATE FUNCTION hf1_sweep(p_sid int8, p_slot int4, p_max int8) RETURNS int8
LANGUAGE plpgsql SECURITY DEFINER @pinned@ AS $$
DECLARE
    v_now int8 := now_ns();
    v_sid int8;
    v_ino int8;
    v_looked xid8;
    v_inodes int8 := 0;
    v_pages int8 := 0;
    v_staged int8 := 0;
    v_ids int8[] := '{}';
    v_live int8[] := '{}';
    v_sum int8 := 0;
    n node;
    b body;
    x extent;
BEGIN
    FOR v_sid IN SELECT sid FROM session WHERE heard < v_now - 60000000000 AND sid <> p_sid LOOP
        PERFORM end_session(v_sid);
    END LOOP;
    FOR v_sid IN SELECT s.sid FROM session s WHERE EXISTS
        (SELECT FROM interest i WHERE i.sid = s.sid OFFSET 70000 LIMIT 1)
    LOOP
        PERFORM strike(v_sid);
    END LOOP;
    PERFORM 1 FROM slot WHERE sid = p_sid AND number = p_slot FOR UPDATE;
    IF NOT FOUND THEN
        PERFORM fenced();
    END IF;
    SELECT looked INTO v_looked FROM session ORDER BY looked LIMIT 1;
    FOR v_ino IN SELECT ino FROM gone g WHERE xid < v_looked
        AND NOT EXISTS (SELECT FROM sustain s WHERE s.ino = g.ino)
        ORDER BY xid LIMIT p_max FOR UPDATE SKIP LOCKED
    LOOP
        SELECT * INTO n FROM node WHERE ino = v_ino FOR UPDATE SKIP LOCKED;
        CONTINUE WHEN NOT FOUND OR n.nlink > 0;
        v_inodes := v_inodes + 1;
        v_pages := v_pages + n.pages;
        IF n.bits & 1 <> 0 THEN
            DELETE FROM xattr WHERE ino = v_ino;
        END IF;
        IF n.kind = 10 THEN
            DELETE FROM target WHERE ino = v_ino;
        END IF;
        IF n.bits & 2 <> 0 THEN
            DELETE FROM body WHERE ino = v_ino RETURNING * INTO b;
            IF b.staged_at IS NOT NULL THEN
                v_staged := v_staged + length(b.data);
            END IF;
        END IF;
        IF n.bits & 4 <> 0 THEN
            FOR x IN DELETE FROM extent WHERE ino = v_ino RETURNING * LOOP
                CONTINUE WHEN x.object = 0;
                v_ids := array_append(v_ids, x.object);
                v_live := array_append(v_live, -x.len);
            END LOOP;
        END IF;
        DELETE FROM node WHERE ino = v_ino;
        DELETE FROM gone WHERE ino = v_ino;
    END LOOP;
    IF cardinality(v_ids) > 0 THEN
        SELECT live INTO v_sum
            FROM account_objects(v_ids, v_live,
                array_fill(NULL::int8, ARRAY[cardinality(v_ids)]), v_now);
    END IF;
    UPDATE slot SET inodes = inodes - v_inodes, pages = pages - v_pages,
        staged_bytes = staged_bytes - v_staged, live_bytes = live_bytes + v_sum
        WHERE sid = p_sid AND number = p_slot;
    RETURN v_inodes;
END $$;

-- Objects that may be deleted. Those of a row are doomed first: no extent maps them any more.
CREATE FUNCTION hf1_deletable(p_sid int8, p_listed int8[], p_max int8) RETURNS int8[]
LANGUAGE plpgsql SECURITY DEFINER @pinned@ AS $$
DECLARE
    v_ids int8[];
    v_id int8;
    v_until int8;
    v_deletable int8[] := '{}';
BEGIN
    PERFORM begin_question(p_sid, '{}');
    SELECT now_ns() - keep INTO v_until FROM volume WHERE one;
    v_ids := ARRAY(SELECT id FROM object WHERE live = 0 AND since < v_until
        ORDER BY since LIMIT p_max);
    FOR v_id IN SELECT u FROM unnest(v_ids) u ORDER BY 1 LOOP
        UPDATE object SET doomed = true WHERE id = v_id AND live = 0;
        IF FOUND THEN
            v_deletable := array_append(v_deletable, v_id);
        END IF;
    END LOOP;
    FOREACH v_id IN ARRAY p_listed LOOP
        EXIT WHEN cardinality(v_deletable) >= p_max;
        PERFORM 1 FROM volume WHERE one AND next_number > v_id;
        CONTINUE WHEN NOT FOUND;
        PERFORM 1 FROM deal WHERE first <= v_id AND last >= v_id;
        CONTINUE WHEN FOUND;
        PERFORM 1 FROM object WHERE id = v_id;
        CONTINUE WHEN FOUND;
        v_deletable := array_append(v_deletable, v_id);
    END LOOP;
    RETURN v_deletable;
END $$;

-- Objects that were doomed are deleted.
CREATE FUNCTION hf1_deleted(p_sid int8, p_slot int4, p_objects int8[]) RETURNS void
LANGUAGE plpgsql SECURITY DEFINER @pinned@ AS $$
DECLARE
    v_id int8;
    v_size int8;
    v_objects int8 := 0;
    v_bytes int8 := 0;
BEGIN
    PERFORM 1 FROM slot WHERE sid = p_sid AND number = p_slot FOR UPDATE;
    IF NOT FOUND THEN
        PERFORM fenced();
    END IF;
    FOR v_id IN SELECT u FROM unnest(p_objects) u ORDER BY 1 LOOP
        DELETE FROM object WHERE id = v_id AND doomed AND live = 0 RETURNING size INTO v_size;
        IF FOUND THEN
            v_objects := v_objects + 1;
            v_bytes := v_bytes + v_size;
        END IF;
    END LOOP;
    UPDATE slot SET objects = objects - v_objects, object_bytes = object_bytes - v_bytes
        WHERE sid = p_sid AND number = p_slot;
END $$;
