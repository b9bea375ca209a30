//! Many threads of several clients in the same few directories: no deadlock, and every invariant
//! holds afterwards.

use super::build::{body, chmod, directory, flush, link, make, map, remove, rename};
use super::server::Server;
use holdfast_cluster::meta::{Beat, Meta, Request, Settings};
use holdfast_testkit::rng::Rng;
use holdfast_testkit::{effort, seed};
use holdfast_types::{Errno, FileType, Ino, RenameFlags};
use std::collections::HashMap;
use std::fs;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

const NAMES: [&str; 4] = ["a", "b", "c", "d"];
const CLIENTS: usize = 3;
const THREADS: u64 = 8;

/// Any request in one of these directories, or one that such a request made.
fn any(
    random: &mut Rng,
    meta: &dyn Meta,
    dirs: &[Ino],
    numbers: &mut std::ops::Range<u64>,
) -> Request {
    let mut number = || numbers.next().expect("enough numbers");
    let places: Vec<(Ino, &str)> = (0..2)
        .map(|_| (*random.pick(dirs), *random.pick(&NAMES)))
        .collect();
    let (from, to) = (places[0], places[1]);
    let kind = *random.pick(&[FileType::Regular, FileType::Directory]);
    // What the name led to a moment ago.
    let inode = |place: (Ino, &str)| {
        let found = meta
            .look_up(place.0, &[place.1.as_bytes()], &[place.0])
            .ok()?;
        found.into_iter().next()??.node
    };
    match random.below(9) {
        0..=2 => make(from.0, from.1, number(), kind),
        3 => remove(from.0, from.1),
        4 => Request::Remove {
            dir: from.0,
            name: from.1.as_bytes().into(),
            directory: true,
        },
        5 => {
            let flags = [
                RenameFlags::empty(),
                RenameFlags::NOREPLACE,
                RenameFlags::EXCHANGE,
            ];
            let cookie = number();
            number();
            rename(from, to, *random.pick(&flags), cookie)
        }
        6 => match inode(from) {
            Some(node) => link(node.record.ino, to.0, to.1, number()),
            None => make(from.0, from.1, number(), kind),
        },
        7 => match inode(from) {
            Some(node) if node.record.kind == FileType::Regular => {
                let edit = match random.one_in(2) {
                    true => body(),
                    false => map(number()),
                };
                flush(node.record.ino, node.generation, edit)
            }
            _ => make(from.0, from.1, number(), FileType::Regular),
        },
        _ => match inode(from) {
            Some(node) => chmod(node.record.ino, 0o755),
            None => chmod(from.0, 0o755),
        },
    }
}

#[test]
fn threads_in_the_same_directories_neither_deadlock_nor_damage_anything() {
    let Some(server) = Server::start(&["deadlock_timeout = 100ms"]) else {
        return;
    };
    server.mkfs("holdfast", Settings::default());
    let metas = [(); CLIENTS].map(|()| server.session("holdfast"));
    let mut dirs: Vec<Ino> = ["one", "two"]
        .map(|name| directory(&*metas[0], name))
        .into();
    for at in 0..2 {
        let ino = metas[0].deal(1).unwrap().start;
        let request = make(dirs[at], "a", ino, FileType::Directory);
        metas[0].perform(request).unwrap();
        dirs.push(Ino(ino));
    }
    let (first, stop) = (seed(1), AtomicBool::new(false));
    let work = |meta: &dyn Meta, number: u64| {
        let mut random = Rng::new(first + number);
        let mut numbers = meta.deal(1 << 20).unwrap();
        let mut answers = HashMap::<Option<Errno>, u64>::new();
        while !stop.load(Ordering::SeqCst) {
            let request = any(&mut random, meta, &dirs, &mut numbers);
            let shown = format!("{request:?}");
            let error = meta.perform(request).err();
            let damaged = [Errno::EIO, Errno::ESTALE].map(Some).contains(&error);
            assert!(!damaged, "{error:?}: {shown}");
            *answers.entry(error).or_default() += 1;
        }
        answers
    };
    std::thread::scope(|scope| {
        let threads = (0..CLIENTS as u64 * THREADS).map(|number| {
            let (meta, work) = (&*metas[number as usize % CLIENTS], &work);
            scope.spawn(move || work(meta, number))
        });
        let threads: Vec<_> = threads.collect();
        let begin = Instant::now();
        while begin.elapsed() < Duration::from_secs(effort().of(4, 120)) {
            for meta in &metas {
                meta.beat(&Beat::default()).unwrap();
            }
            std::thread::sleep(Duration::from_millis(100));
        }
        stop.store(true, Ordering::SeqCst);
        let mut sum = HashMap::<Option<Errno>, u64>::new();
        for thread in threads {
            for (error, count) in thread.join().unwrap() {
                *sum.entry(error).or_default() += count;
            }
        }
        println!("{sum:?}");
        assert!(sum[&None] > 100, "{sum:?}");
    });
    assert_eq!(metas[0].check(false), Ok(vec![]));
    let log = fs::read_to_string(server.log()).unwrap();
    let errors: Vec<&str> = log.lines().filter(|line| line.contains("ERROR")).collect();
    // An inode that got another parent between two statements of a batch: it is sent once more.
    let others: Vec<&&str> = errors
        .iter()
        .filter(|line| !line.contains("moved meanwhile"))
        .collect();
    assert!(others.is_empty(), "{others:#?}");
    println!("{} batches were repeated", errors.len());
}
