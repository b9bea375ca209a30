//! Quotas are switched on and off, and the file system is revoked, while others work.

use super::{common, enforcing, hard, memory, told, truth, used, user};
use holdfast_core::types::{Caller, Errno, OpenFlags, RenameFlags, SetAttr};
use holdfast_core::{FileSystem, Node, OpenFile, QuotaGrace, QuotaKind, QuotaLimits};
use holdfast_testkit::rng::Rng;
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering::SeqCst};
use std::thread;

const READ_WRITE: OpenFlags = OpenFlags::READ_WRITE;

fn someone(numbers: &mut Rng) -> Caller {
    user(numbers.below(3) as u32 + 1, numbers.below(2) as u32 + 10)
}

/// Files of several owners in directories of a thousand; every tenth has some bytes.
fn many_files(fs: &FileSystem, count: u32) -> Vec<Node> {
    let mut numbers = Rng::new(1);
    let mut dirs = Vec::new();
    for number in 0..count {
        if number % 1000 == 0 {
            dirs.push(common(fs, format!("d{number}").as_bytes()));
        }
        let (dir, who) = (&dirs[dirs.len() - 1], someone(&mut numbers));
        let name = number.to_string();
        let file = fs.create(&who, dir, name.as_bytes(), 0o644, READ_WRITE);
        if number % 10 == 0 {
            let len = numbers.below(20_000) as usize;
            fs.write(&who, &file.unwrap(), 0, &vec![1; len]).unwrap();
        }
    }
    dirs
}

/// One thread's work: the names are its own, the owners and some of the files are shared.
struct Worker<'f> {
    fs: &'f FileSystem,
    dirs: &'f [Node],
    id: u64,
    numbers: Rng,
    open: Vec<OpenFile>,
}

impl Worker<'_> {
    fn step(&mut self) {
        let who = someone(&mut self.numbers);
        let dir = &self.dirs[self.numbers.below(self.dirs.len() as u64) as usize];
        let name = |numbers: &mut Rng| format!("w{}-{}", self.id, numbers.below(6));
        let (name, other) = (name(&mut self.numbers), name(&mut self.numbers));
        let (name, other) = (name.as_bytes(), other.as_bytes());
        let shared = self.numbers.below(1000).to_string();
        let (fs, numbers) = (self.fs, &mut self.numbers);
        // They may fail because of other threads.
        match numbers.below(11) {
            0..3 => self
                .open
                .extend(fs.create(&who, dir, name, 0o666, READ_WRITE)),
            3 => {
                let _ = fs.unlink(&who, dir, name);
            }
            4 => {
                let _ = fs.rename(&who, dir, name, dir, other, RenameFlags::empty());
            }
            5 => self.open.extend(fs.tmpfile(&who, dir, 0o600, READ_WRITE)),
            6 | 7 => {
                if let Some(file) = self.open.last() {
                    let len = numbers.below(30_000) as usize;
                    let _ = fs.write(&who, file, numbers.below(90_000), &vec![1; len]);
                }
            }
            8 => {
                let file = fs.lookup(&who, dir, shared.as_bytes());
                let to = someone(numbers);
                let set = SetAttr {
                    uid: Some(to.uid),
                    gid: Some(to.gid),
                    ..SetAttr::default()
                };
                let _ = file.and_then(|file| fs.setattr(&who, &file, &set, None));
            }
            9 => {
                let file = fs.lookup(&who, dir, shared.as_bytes());
                let file = file.and_then(|file| fs.open(&Caller::root(), &file, READ_WRITE));
                self.open.extend(file);
            }
            _ => {
                let size = Some(numbers.below(9000));
                let set = SetAttr {
                    size,
                    ..SetAttr::default()
                };
                if let Some(file) = self.open.last() {
                    let _ = fs.setattr(&who, file.node(), &set, Some(file));
                }
            }
        }
        if self.open.len() > self.numbers.below(20) as usize {
            self.open.swap_remove(0);
        }
    }
}

/// Three threads work until `main` has returned; returns the files that they left open.
fn beside_workers(fs: &FileSystem, dirs: &[Node], seed: u64, main: impl FnOnce()) -> Vec<OpenFile> {
    let (done, started) = (AtomicBool::new(false), AtomicU32::new(0));
    thread::scope(|scope| {
        let workers: Vec<_> = (0..3)
            .map(|id| {
                let (done, started) = (&done, &started);
                scope.spawn(move || {
                    let mut worker = Worker {
                        fs,
                        dirs,
                        id,
                        numbers: Rng::new(seed * 3 + id),
                        open: Vec::new(),
                    };
                    started.fetch_add(1, SeqCst);
                    while !done.load(SeqCst) {
                        worker.step();
                    }
                    worker.open
                })
            })
            .collect();
        while started.load(SeqCst) < 3 {
            thread::yield_now();
        }
        main();
        done.store(true, SeqCst);
        let open = workers.into_iter().map(|worker| worker.join().unwrap());
        open.flatten().collect()
    })
}

#[test]
fn quotas_know_all_files_although_others_come_and_go_while_they_are_counted() {
    let fs = memory();
    let dirs = many_files(&fs, 100_000);
    for round in 0..4 {
        let open = beside_workers(&fs, &dirs, round, || fs.quota_on(true).unwrap());
        let told = told(&fs);
        assert_eq!(told, truth(&fs), "after round {round}");
        let inodes: u64 = (1..4).map(|id| told[&(QuotaKind::User, id)].1).sum();
        assert!(inodes > 90_000, "{inodes}");
        drop(open);
        assert_eq!(super::told(&fs), truth(&fs), "when all is closed");
        fs.quota_off();
        assert!(fs.quota_report().is_empty());
    }
}

#[test]
fn off_and_on_again_and_again_nothing_is_lost_or_counted_twice() {
    let fs = memory();
    let dirs = many_files(&fs, 2000);
    for round in 0..4 {
        let open = beside_workers(&fs, &dirs, round, || {
            for turn in 0..40 {
                fs.quota_on(true).unwrap();
                let (kind, most) = (QuotaKind::User, Some(turn % 7 * 300));
                fs.set_quota(kind, 1, &hard(most, most)).unwrap();
                thread::yield_now();
                if turn < 39 {
                    fs.quota_off();
                }
            }
        });
        assert_eq!(told(&fs), truth(&fs), "after round {round}");
        drop(open);
        assert_eq!(told(&fs), truth(&fs), "after round {round}, all closed");
        fs.quota_off();
    }
}

#[test]
fn who_switches_what_is_switched_is_told() {
    let fs = memory();
    assert!(!fs.quota_is_on());
    let gone = Err(Errno::ESRCH);
    let limits = QuotaLimits::default();
    assert_eq!(fs.set_quota(QuotaKind::User, 1, &limits), gone);
    let grace = QuotaGrace::default();
    assert_eq!(fs.set_quota_grace(QuotaKind::Group, grace), gone);
    fs.quota_off();
    let succeeded = AtomicU32::new(0);
    thread::scope(|scope| {
        for _ in 0..4 {
            scope.spawn(|| match fs.quota_on(true) {
                Ok(()) => drop(succeeded.fetch_add(1, SeqCst)),
                Err(error) => assert_eq!(error, Errno::EBUSY),
            });
        }
    });
    assert_eq!(succeeded.load(SeqCst), 1);
    assert_eq!(used(&fs, QuotaKind::User, 0), (0, 1), "the root directory");
    fs.quota_off();
    assert!(!fs.quota_is_on());
    assert_eq!(used(&fs, QuotaKind::User, 0), (0, 0));
}

#[test]
fn a_revoked_file_system_has_no_quotas_and_lets_every_file_go() {
    let fs = enforcing();
    let dirs = many_files(&fs, 1000);
    let open = beside_workers(&fs, &dirs, 9, || {
        thread::yield_now();
        fs.revoke().unwrap();
        assert!(!fs.quota_is_on());
    });
    let over = Err(Errno::EIO);
    assert_eq!(fs.quota_on(true), over);
    let limits = QuotaLimits::default();
    assert_eq!(fs.set_quota(QuotaKind::User, 1, &limits), over);
    assert!(fs.quota_report().is_empty());
    drop((open, dirs));
    let stats = fs.stats();
    assert_eq!((stats.inodes, stats.pages, stats.open_files), (1, 0, 0));
}
