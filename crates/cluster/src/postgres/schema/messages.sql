-- What others are told of changes, in the transaction that changes it.

-- A session that was not heard of for ten seconds is told nothing: its next beat finds that five
-- have passed, and everything that it knew is dropped. Returns whether others are to be notified
-- at once. The times of a directory in which names changed can wait for their next beats.
CREATE FUNCTION notify_others(p_sid int8, p_told int8[], words int8[], blobs bytea[],
    results result[], p_now int8) RETURNS boolean LANGUAGE plpgsql AS $$
DECLARE
    w int4 := 1;
    b int4 := 1;
    v_op int8;
    v_result result;
    v_touched touched;
    v_dirs int8[];
    v_since int8 := p_now - 10000000000;
    v_topics int8[] := '{}';
    v_inos int8[] := '{}';
    v_content boolean[] := '{}';
    v_topic int8;
    v_told record;
    v_rings boolean := false;
BEGIN
    FOREACH v_result IN ARRAY results LOOP
        v_op := words[w];
        IF v_result.code = 0 AND v_result.touched IS NOT NULL THEN
            v_dirs := CASE WHEN v_op IN (1, 4) THEN ARRAY[words[w + 3]]
                WHEN v_op = 3 THEN ARRAY[words[w + 4]]
                WHEN v_op = 5 THEN ARRAY[words[w + 3], words[w + 4]] ELSE '{}' END;
            FOR i IN 1 .. cardinality(v_dirs) LOOP
                IF v_dirs[i] = ANY (p_told) THEN
                    INSERT INTO inbox (sid, ino, content, name)
                        SELECT x.sid, v_dirs[i], false, blobs[b + i - 1] FROM interest x
                        WHERE x.dir = v_dirs[i] AND x.sid <> p_sid
                        AND (SELECT s.heard FROM session s WHERE s.sid = x.sid) > v_since;
                    v_rings := v_rings OR FOUND;
                END IF;
            END LOOP;
            FOREACH v_touched IN ARRAY v_result.touched LOOP
                -- No session knows a new inode, and bytes that only moved are the same.
                CONTINUE WHEN v_touched.ctime IS NULL OR v_touched.ctime = (v_touched.n).ctime;
                FOREACH v_topic IN ARRAY ARRAY[v_touched.parent, (v_touched.n).parent] LOOP
                    IF v_topic = ANY (p_told) THEN
                        v_topics := array_append(v_topics, v_topic);
                        v_inos := array_append(v_inos, (v_touched.n).ino);
                        v_content := array_append(v_content, v_op = 9);
                        v_rings := v_rings OR v_op > 5 OR (v_touched.n).kind <> 4;
                    END IF;
                END LOOP;
            END LOOP;
        END IF;
        b := b + words[w + 2];
        w := w + words[w + 1];
    END LOOP;
    FOR v_told IN SELECT u.topic, u.ino, bool_or(u.content) AS content
        FROM unnest(v_topics, v_inos, v_content) u (topic, ino, content) GROUP BY 1, 2
    LOOP
        INSERT INTO inbox (sid, ino, content)
            SELECT x.sid, v_told.ino, v_told.content FROM interest x
            WHERE x.dir = v_told.topic AND x.sid <> p_sid
            AND (SELECT s.heard FROM session s WHERE s.sid = x.sid) > v_since;
    END LOOP;
    RETURN v_rings;
END $$;

-- Begins a question of a session that lives. Topics are registered under their locks, so that a
-- change is either in the answer or sees the interest.
CREATE FUNCTION begin_question(p_sid int8, p_topics int8[]) RETURNS void LANGUAGE plpgsql AS $$
DECLARE
    v_topic int8;
    v_base int8;
BEGIN
    PERFORM 1 FROM session WHERE sid = p_sid;
    IF NOT FOUND THEN
        PERFORM fenced();
    END IF;
    IF cardinality(p_topics) > 0 THEN
        SELECT lock_base INTO v_base FROM volume WHERE one AND notifies;
        FOR v_topic IN SELECT DISTINCT u FROM unnest(p_topics) u ORDER BY 1 LOOP
            EXIT WHEN v_base IS NULL;
            PERFORM 1 FROM interest WHERE dir = v_topic AND sid = p_sid;
            CONTINUE WHEN FOUND;
            PERFORM pg_advisory_xact_lock(v_base # v_topic);
            INSERT INTO interest VALUES (v_topic, p_sid) ON CONFLICT DO NOTHING;
        END LOOP;
    END IF;
END $$;
