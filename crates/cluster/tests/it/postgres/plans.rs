//! Every statement of the functions uses an index, on tables that were never analysed.

use super::build::{
    body, chmod, directory, extent, flush, link, make, make_unnamed, map, remove, remove_xattr,
    rename, set_xattr,
};
use super::server::Server;
use holdfast_cluster::meta::{Beat, Content, Edit, Meta, Settings};
use holdfast_types::{FileType, Ino, RenameFlags};
use std::fs;

/// Everything that mounts call while others work. What is asked for seldom, and reads the small
/// tables of sessions and objects whole, is not among it.
fn call_all(meta: &dyn Meta, round: u64) {
    let dir = directory(meta, &format!("dir {round}"));
    let other = directory(meta, &format!("other {round}"));
    let n = meta.deal(100).unwrap().start;
    let (ino, object) = (Ino(n + 10), n + 20);
    change_all(meta, [dir, other], &format!("other {round}"), n);
    let extents = Content::Extents(vec![extent(0, object), extent(16384, object)]);
    let replace = Edit::Replace {
        content: extents,
        objects: vec![(object, 9000)],
    };
    for (generation, edit) in (1..).zip([body(), replace, map(object)]) {
        meta.perform(flush(ino, generation, edit)).unwrap();
    }
    meta.content(ino).unwrap();
    meta.load_rests(&[ino]).unwrap();
    meta.perform(remove(dir, "d")).unwrap();

    meta.look_up(dir, &[b"c", b"nothing"], &[dir]).unwrap();
    meta.load(&[dir, ino], &[dir, other]).unwrap();
    meta.read_names(dir, 0, 100, &[]).unwrap();
    for inodes in [false, true] {
        meta.read_directories(&[dir, other], 100, inodes, &[dir])
            .unwrap();
    }
    meta.walk(dir, 10).unwrap();
    meta.staged(10).unwrap();
    meta.deletable(&[object, n + 50], 10).unwrap();
    meta.deleted(&[object]).unwrap();
    let beat = meta.beat(&Beat::default()).unwrap();
    let beat = Beat {
        looked_at: beat.gone_upto,
        taken: u64::MAX,
        knows: vec![ino],
        releases: vec![ino],
        unsubscribes: vec![dir],
    };
    meta.beat(&beat).unwrap();
    meta.sweep(100).unwrap();
}

/// All requests but flushes. A file `d` without extended attributes is left, number `n + 10`.
fn change_all(meta: &dyn Meta, [dir, other]: [Ino; 2], other_name: &str, n: u64) {
    let perform = |request| drop(meta.perform(request).unwrap());
    for (at, name) in (0..).zip(["a", "b", "c"]) {
        perform(make(dir, name, n + at, FileType::Regular));
    }
    perform(make_unnamed(dir, n + 10));
    perform(link(Ino(n + 10), dir, "d", n + 11));
    for (at, flags, from, to) in [
        (30, RenameFlags::empty(), (dir, "a"), (other, "a")),
        (32, RenameFlags::EXCHANGE, (dir, "b"), (other, "a")),
        (34, RenameFlags::empty(), (dir, "b"), (dir, "c")),
        (
            36,
            RenameFlags::empty(),
            (Ino::ROOT, other_name),
            (dir, "sub"),
        ),
    ] {
        perform(rename(from, to, flags, n + at));
    }
    let ino = Ino(n + 10);
    for request in [chmod(ino, 0o600), set_xattr(ino), remove_xattr(ino)] {
        perform(request);
    }
}

#[test]
fn statements_use_indexes_on_tables_of_any_size() {
    let Some(server) = Server::start(&[
        "shared_preload_libraries = auto_explain",
        "auto_explain.log_min_duration = 0",
        "auto_explain.log_nested_statements = on",
        "auto_explain.log_analyze = on",
        "auto_explain.log_timing = off",
    ]) else {
        return;
    };
    server.mkfs("holdfast", Settings::default());
    let length = |path| fs::metadata(path).unwrap().len() as usize;
    let made = length(server.log());
    let (meta, other) = (server.session("holdfast"), server.session("holdfast"));
    // Plans are made while tables are empty, and kept.
    other.load(&[Ino::ROOT], &[Ino::ROOT]).unwrap();
    call_all(&*meta, 0);
    let before = length(server.log());
    server.sql(
        "SET search_path = holdfast; SET auto_explain.log_min_duration = -1;
         INSERT INTO node SELECT 1000000 + i, 0, 5, 0, 0, 0, 0, 1, 0, 0, 1, 0, 0, 0, 0, 8, 420, 1
             FROM generate_series(1, 50000) i;
         INSERT INTO entry SELECT 1000000 + i % 100, 1000000 + i, 1000000 + i, 8, i::text::bytea
             FROM generate_series(1, 50000) i;
         INSERT INTO xattr SELECT 1000000 + i, 'user.x', '1' FROM generate_series(1, 50000) i;
         INSERT INTO body SELECT 1000000 + i, 1, NULL, '12345' FROM generate_series(1, 50000) i;
         INSERT INTO extent SELECT 2000000 + i, 0, 5, 3000000 + i, 0 FROM generate_series(1, 50000) i;
         INSERT INTO object SELECT 3000000 + i, 5, 5, false, 0 FROM generate_series(1, 50000) i;
         INSERT INTO target SELECT 1000000 + i, '1' FROM generate_series(1, 50000) i;
         INSERT INTO sustain SELECT 1000000 + i, 1 FROM generate_series(1, 50000) i;
         INSERT INTO interest SELECT 1000000 + i, 1 FROM generate_series(1, 50000) i;
         INSERT INTO deal SELECT 4000000 + i, 4000000 + i, 1 FROM generate_series(1, 50000) i",
    );
    let large = length(server.log());
    other.load(&[Ino::ROOT], &[Ino::ROOT]).unwrap();
    call_all(&*meta, 1);
    let log = fs::read(server.log()).unwrap();
    // Tables of sessions are small. `volume` has one row.
    for (text, size) in [(&log[made..before], "empty"), (&log[large..], "large")] {
        let text = String::from_utf8_lossy(text);
        assert!(text.contains("Index Scan"), "statements are explained");
        let mut query = "";
        for line in text.lines() {
            if line.trim_start().starts_with("Query Text:") {
                query = line;
            }
            let of = ["session", "slot", "life", "volume"];
            let small = of
                .iter()
                .any(|table| line.contains(&format!("Seq Scan on {table}")));
            assert!(
                !line.contains("Seq Scan") || small,
                "{size}: {query}\n{line}"
            );
            let removed = line.trim().strip_prefix("Rows Removed by Filter: ");
            let removed = removed.map_or(0, |it| it.parse::<u64>().unwrap());
            assert!(removed < 1000, "{size}: {query}\n{line}");
            let rows = line.split("actual rows=").nth(1);
            let rows = rows.and_then(|it| it.split(' ').next()?.parse::<u64>().ok());
            assert!(rows.unwrap_or(0) < 10_000, "{size}: {query}\n{line}");
        }
    }
}
