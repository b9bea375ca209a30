//! Calls that do not wait for an answer, and what is left when the disk is full.

use super::build::{chmod, directory};
use super::server::Server;
use holdfast_cluster::meta::{Beat, Settings};
use holdfast_cluster::postgres::connect;
use holdfast_core::interrupt::{Interrupted, during};
use holdfast_types::Errno;
use std::time::{Duration, Instant};

#[test]
fn a_change_whose_caller_left_makes_the_client_forget_what_it_knew() {
    let Some(server) = Server::start(&[]) else {
        return;
    };
    server.mkfs("holdfast", Settings::default());
    let mut config = server.config("holdfast", server.port);
    config.retry = Duration::from_secs(2);
    let meta = connect(config).unwrap();
    let dir = directory(&*meta, "dir");
    let epoch = || meta.beat(&Beat::default()).unwrap().epoch;
    for (caller, answer) in [(true, Errno::EINTR), (false, Errno::EIO)] {
        let before = epoch();
        let held = server.hold("LOCK TABLE holdfast.node IN SHARE MODE");
        let begun = Instant::now();
        let caller = Interrupted::new(move || caller);
        let answered = during(Some(caller), || meta.perform(chmod(dir, 0o700)));
        assert_eq!(answered, Err(answer));
        let left = begun.elapsed() < Duration::from_secs(1);
        assert_eq!(left, answer == Errno::EINTR, "{:?}", begun.elapsed());
        assert_eq!(epoch(), before, "it was not performed yet");
        drop(held);
        let until = Instant::now() + Duration::from_secs(10);
        while epoch() == before {
            assert!(Instant::now() < until);
            std::thread::sleep(Duration::from_millis(10));
        }
    }
    assert_eq!(meta.load(&[dir], &[]).unwrap()[0].record.perm, 0o700);
}

#[test]
fn removals_and_sessions_find_space_that_was_kept_for_them() {
    let Some(server) = Server::start(&[]) else {
        return;
    };
    server.mkfs("holdfast", Settings::default());
    let size = || {
        server.sql(
            "SELECT oid::regclass, pg_total_relation_size(oid) FROM pg_class
             WHERE oid IN ('holdfast.gone'::regclass, 'holdfast.session'::regclass,
                 'holdfast.slot'::regclass) ORDER BY 1",
        )
    };
    let before = size();
    let gone = "INSERT INTO holdfast.gone SELECT i, '1000000' FROM generate_series(1, 2048) i";
    server.sql(gone);
    for _ in 0..8 {
        drop(server.session("holdfast"));
    }
    assert_eq!(size(), before);
}
