//! Connections are cut, backends are ended, the server is stopped: every answered change is there
//! once.

use super::build::{
    body, chmod, directory, flush, link, make, make_unnamed, map, remove, remove_xattr, rename,
    set_xattr,
};
use super::proxy::{Proxy, Way};
use super::server::Server;
use holdfast_cluster::meta::{Answer, Meta, Request, Settings};
use holdfast_cluster::postgres::connect;
use holdfast_core::store::Version;
use holdfast_testkit::effort;
use holdfast_types::{Errno, FileType, Ino, RenameFlags};
use std::collections::BTreeMap;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::sleep;
use std::time::{Duration, Instant};

/// A session behind a proxy. Its answers are checked against each other.
struct Cut {
    meta: std::sync::Arc<dyn Meta>,
    proxy: Proxy,
    versions: BTreeMap<Ino, Version>,
    dir: Ino,
    number: u64,
}

impl Cut {
    /// Performs a request. An inode that it changes had the version that the last answer left: so
    /// each change happened once, and none beside them.
    fn perform(&mut self, request: Request) -> Answer {
        let shown = format!("{request:?}");
        let answer = self.meta.perform(request);
        let answer = answer.unwrap_or_else(|error| panic!("{error}: {shown}"));
        if let Answer::Done { touched, .. } = &answer {
            for (before, node) in touched {
                let after = Version::of(&node.record);
                let known = self.versions.insert(node.record.ino, after);
                assert_eq!(*before, known, "{shown}");
            }
        }
        answer
    }

    fn deal(&mut self) -> u64 {
        self.number += 2;
        self.number
    }

    fn file(&mut self, name: &str) -> Ino {
        let ino = self.deal();
        let request = make(self.dir, name, ino, FileType::Regular);
        self.perform(request);
        Ino(ino)
    }

    /// What goes before a request of a kind, and the request.
    fn prepare(&mut self, kind: usize, at: u64) -> Request {
        let (dir, name) = (self.dir, format!("{kind}-{at}"));
        let number = self.deal();
        match kind {
            0 => return make(dir, &name, number, FileType::Regular),
            1 => return make_unnamed(dir, number),
            _ => {}
        }
        let ino = self.file(&name);
        match kind {
            2 => link(ino, dir, &format!("{name}-link"), number),
            3 => remove(dir, &name),
            4 => {
                let to = format!("{name}-moved");
                rename((dir, &name), (dir, &to), RenameFlags::empty(), number)
            }
            5 => chmod(ino, 0o600),
            6 => set_xattr(ino),
            7 => {
                self.perform(set_xattr(ino));
                remove_xattr(ino)
            }
            8 => flush(ino, 1, body()),
            _ => flush(ino, 1, map(number)),
        }
    }
}

#[test]
fn a_change_happens_once_when_its_connection_is_cut() {
    let Some(server) = Server::start(&[]) else {
        return;
    };
    server.mkfs("holdfast", Settings::default());
    let proxy = Proxy::start(server.port);
    let meta = connect(server.config("holdfast", proxy.port)).unwrap();
    let dir = directory(&*meta, "dir");
    let number = meta.deal(1 << 20).unwrap().start;
    let dir_record = meta.load(&[dir], &[]).unwrap().remove(0).record;
    let mut cut = Cut {
        meta,
        proxy,
        versions: BTreeMap::from([(dir, Version::of(&dir_record))]),
        dir,
        number,
    };
    // All slots are connected.
    for at in 0..8 {
        let request = cut.prepare(0, 1_000_000 + at);
        cut.perform(request);
    }
    let mut cuts = 0;
    for kind in 0..10 {
        for way in [Way::ToServer, Way::ToClient] {
            let mut at = 0;
            loop {
                let request = cut.prepare(kind, 2 * at + way as u64);
                cut.proxy.cut_after(way, at);
                cut.perform(request);
                if cut.proxy.call_off(way) {
                    break;
                }
                cuts += 1;
                at += effort().of(61, 1);
            }
        }
    }
    println!("{cuts} cuts");
    assert!(cuts > 100, "{cuts}");
    assert_eq!(cut.meta.check(false), Ok(vec![]));
    let names = cut.meta.read_names(dir, 0, usize::MAX, &[]).unwrap();
    let record = cut.meta.load(&[dir], &[]).unwrap().remove(0).record;
    assert_eq!(record.size, 32 * names.len() as u64);
}

/// Four writers in directories of their own, until `end` returns. Returns the number of files.
fn write_during(server: &Server, end: impl FnOnce()) -> u64 {
    let stop = AtomicBool::new(false);
    let metas = [0, 1, 2, 3].map(|_| server.session("holdfast"));
    let write = |writer: usize| {
        let meta = &metas[writer];
        let dir = directory(&**meta, &format!("writer {writer}"));
        let mut made = Vec::new();
        while !stop.load(Ordering::SeqCst) {
            let ino = meta.deal(1).unwrap().start;
            let name = made.len().to_string();
            let answer = meta.perform(make(dir, &name, ino, FileType::Regular));
            assert!(answer.is_ok(), "{answer:?} for {name}");
            made.push(Ino(ino));
            if made.len().is_multiple_of(3) {
                let answer = meta.perform(remove(dir, &name));
                assert!(answer.is_ok(), "{answer:?} for the removal of {name}");
            }
        }
        let names = meta.read_names(dir, 0, usize::MAX, &[]).unwrap();
        let found: Vec<Ino> = names.iter().map(|it| it.ino).collect();
        let left = (1..).zip(&made).filter(|(place, _)| place % 3 != 0);
        let left: Vec<Ino> = left.map(|(_, ino)| *ino).collect();
        let sorted = |mut inos: Vec<Ino>| {
            inos.sort_unstable();
            inos
        };
        assert_eq!(sorted(found), sorted(left));
        made.len() as u64
    };
    std::thread::scope(|scope| {
        let writers = [0, 1, 2, 3].map(|writer| scope.spawn(move || write(writer)));
        end();
        stop.store(true, Ordering::SeqCst);
        writers.into_iter().map(|it| it.join().unwrap()).sum()
    })
}

#[test]
fn changes_happen_once_while_backends_are_terminated() {
    let Some(server) = Server::start(&[]) else {
        return;
    };
    server.mkfs("holdfast", Settings::default());
    let mut terminated = 0;
    let made = write_during(&server, || {
        let begin = Instant::now();
        while begin.elapsed() < Duration::from_secs(effort().of(4, 60)) {
            terminated += server.count(
                "SELECT count(pg_terminate_backend(pid)) FROM (SELECT pid FROM pg_stat_activity \
                 WHERE application_name = 'holdfast' ORDER BY random() LIMIT 3) x",
            );
            std::thread::sleep(Duration::from_millis(20));
        }
    });
    println!("{made} files, {terminated} backends terminated");
    assert!(terminated > 50 && made > 50, "{terminated}, {made}");
    assert_eq!(server.session("holdfast").check(false), Ok(vec![]));
}

#[test]
fn calls_wait_for_a_server_that_restarts() {
    let Some(server) = Server::start(&[]) else {
        return;
    };
    server.mkfs("holdfast", Settings::default());
    let made = write_during(&server, || {
        for mode in ["fast", "immediate"] {
            std::thread::sleep(Duration::from_millis(300));
            server.stop(mode);
            std::thread::sleep(Duration::from_millis(500));
            server.restart();
        }
        std::thread::sleep(Duration::from_millis(500));
    });
    assert!(made > 0);
    assert_eq!(server.session("holdfast").check(false), Ok(vec![]));
}

#[test]
fn calls_fail_when_the_server_stays_away() {
    let Some(server) = Server::start(&[]) else {
        return;
    };
    server.mkfs("holdfast", Settings::default());
    let mut config = server.config("holdfast", server.port);
    config.retry = Duration::from_secs(1);
    let meta = connect(config).unwrap();
    let dir = directory(&*meta, "dir");
    server.stop("immediate");
    let begin = Instant::now();
    assert_eq!(meta.load(&[dir], &[]), Err(Errno::EIO));
    assert_eq!(meta.perform(chmod(dir, 0o700)), Err(Errno::EIO));
    let waited = begin.elapsed();
    assert!(
        waited >= Duration::from_secs(2) && waited < Duration::from_secs(10),
        "{waited:?}"
    );
    // More than one of them waits to be sent.
    assert_eq!(meta.perform(chmod(dir, 0o701)), Err(Errno::EIO));
    server.restart();
    // The connections may wait for longer than a call before they try once more.
    assert!((0..10).any(|_| meta.perform(chmod(dir, 0o711)).is_ok()));
    for _ in 0..20 {
        // What failed before may be performed, but no more after a later change.
        assert_eq!(meta.load(&[dir], &[]).unwrap()[0].record.perm, 0o711);
        sleep(Duration::from_millis(100));
    }
}
