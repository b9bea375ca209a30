//! What a client leaves behind is bounded, and clients do not wait for each other.

use super::build::{body, directory, flush, make, remove};
use super::server::Server;
use holdfast_cluster::meta::{Beat, Meta, Settings};
use holdfast_cluster::postgres::connect;
use holdfast_testkit::effort;
use holdfast_types::{FileType, Ino};
use std::ops::Range;
use std::time::{Duration, Instant};

const THREADS: u64 = 8;

/// Tables, and the most rows that may be left when all files are removed.
const TABLES: [(&str, u64); 8] = [
    ("inbox", 0),
    ("interest", 0),
    ("gone", 0),
    ("sustain", 0),
    ("body", 0),
    ("slot", 5),
    ("node", 2),
    ("entry", 1),
];
/// KiB that any of them takes at most, with its dead rows.
const SIZE_MAX: u64 = 32 << 10;

/// Samples of one statement.
const SAMPLES: u32 = 100;
/// Looks many times for a client that waits for a lock of another client. To extend a table is a
/// matter of its file, and short.
const WAITS: &str = "CREATE FUNCTION waits(samples int) RETURNS text LANGUAGE plpgsql AS $$
    DECLARE
        found text;
    BEGIN
        FOR i IN 1 .. samples LOOP
            PERFORM pg_stat_clear_snapshot(), pg_sleep(0.001);
            SELECT string_agg(concat_ws(' ', l.locktype, a.application_name, b.application_name), ',')
                INTO found
                FROM pg_locks l JOIN pg_stat_activity a ON a.pid = l.pid,
                    unnest(pg_blocking_pids(l.pid)) u JOIN pg_stat_activity b ON b.pid = u
                WHERE NOT l.granted AND l.locktype <> 'extend'
                    AND a.application_name <> b.application_name;
            EXIT WHEN found IS NOT NULL;
        END LOOP;
        RETURN found;
    END $$";

/// Makes files with these numbers, with a body that is to be moved or without, and removes them, by
/// several threads.
fn churn(meta: &dyn Meta, dir: Ino, inos: &Range<u64>) {
    std::thread::scope(|scope| {
        for thread in 0..THREADS {
            scope.spawn(move || {
                for ino in inos.clone().filter(|ino| ino % THREADS == thread) {
                    let name = ino.to_string();
                    meta.perform(make(dir, &name, ino, FileType::Regular))
                        .unwrap();
                    if (ino / THREADS).is_multiple_of(4) {
                        meta.perform(flush(Ino(ino), 1, body())).unwrap();
                    }
                    meta.perform(remove(dir, &name)).unwrap();
                }
            });
        }
    });
}

#[test]
fn a_dead_reader_leaves_nothing_that_grows() {
    let Some(server) = Server::start(&["autovacuum = on", "autovacuum_naptime = 1"]) else {
        return;
    };
    server.mkfs("holdfast", Settings::default());
    let (meta, reader) = (server.session("holdfast"), server.session("holdfast"));
    let dir = directory(&*meta, "dir");
    reader.read_names(dir, 0, 10, &[dir]).unwrap();
    churn(&*meta, dir, &meta.deal(400).unwrap());
    // The reader is dead: its time passes.
    server.sql("UPDATE holdfast.session SET heard = heard - 11000000000 WHERE sid = 3");
    let waiting = server.count("SELECT count(*) FROM holdfast.inbox");
    assert!(waiting >= 800, "{waiting}");
    churn(&*meta, dir, &meta.deal(800).unwrap());
    assert_eq!(server.count("SELECT count(*) FROM holdfast.inbox"), waiting);
    server.sql("UPDATE holdfast.session SET heard = heard - 61000000000 WHERE sid = 3");
    let mut looked_at = 0;
    let mut sizes = Vec::new();
    for _ in 0..effort().of(4, 500) {
        churn(&*meta, dir, &meta.deal(effort().of(400, 2000)).unwrap());
        for _ in 0..2 {
            let beat = Beat {
                looked_at,
                ..Beat::default()
            };
            looked_at = meta.beat(&beat).unwrap().gone_upto;
        }
        while meta.sweep(1000).unwrap() > 0 {}
        sizes.push(TABLES.map(|(table, rows)| {
            let count = server.count(&format!("SELECT count(*) FROM holdfast.{table}"));
            assert!(count <= rows, "{table} has {count} rows");
            let size = format!("SELECT pg_total_relation_size('holdfast.{table}')");
            server.count(&size) >> 10
        }));
    }
    let (first, last) = (sizes[sizes.len() / 2], sizes[sizes.len() - 1]);
    for (at, (table, _)) in TABLES.iter().enumerate() {
        println!("{table}: {} KiB, then {} KiB", first[at], last[at]);
        assert!(last[at] < SIZE_MAX, "{table} has {} KiB", last[at]);
    }
    assert_eq!(meta.usage().unwrap().staged, 0);
    assert_eq!(meta.check(false), Ok(vec![]));
    assert_eq!(meta.usage().unwrap().inodes, 2);
}

#[test]
fn clients_in_different_directories_do_not_wait_for_each_other() {
    let Some(server) = Server::start(&[]) else {
        return;
    };
    server.mkfs("holdfast", Settings::default());
    let metas = ["client one", "client two"].map(|name| {
        let mut config = server.config("holdfast", server.port);
        config.connection.application_name(name);
        connect(config).unwrap()
    });
    let dirs = ["one", "two"].map(|name| directory(&*metas[0], name));
    server.sql(WAITS);
    let mut samples = 0;
    std::thread::scope(|scope| {
        let threads = [0, 1].map(|client: usize| {
            let (meta, dir) = (&*metas[client], dirs[client]);
            let inos = meta.deal(effort().of(800, 8000)).unwrap();
            scope.spawn(move || churn(meta, dir, &inos))
        });
        let begin = Instant::now();
        while !threads.iter().all(|it| it.is_finished()) {
            assert!(begin.elapsed() < Duration::from_secs(120), "it returns");
            let waiting = server.sql(&format!("SELECT waits({SAMPLES})"));
            assert_eq!(waiting, "", "a client waits for the other");
            samples += SAMPLES;
        }
    });
    println!("{samples} samples");
    assert!(samples > SAMPLES, "{samples}");
    assert_eq!(metas[0].check(false), Ok(vec![]));
}
