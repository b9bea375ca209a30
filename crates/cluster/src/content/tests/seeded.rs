//! Random operations of two clients in turn, compared with a model after each.

use super::super::page::PAGE;
use super::model::Model;
use super::{Client, quick, random, settings};
use crate::memory::{Database, Fault, MemoryObjects};
use holdfast_core::store::Version;
use holdfast_types::{Errno, Fallocate, Ino};
use std::collections::BTreeSet;

struct Tried {
    ino: Ino,
    model: Model,
    /// The client that changes it now.
    at: usize,
    version: Version,
}

/// Operations on files of up to about so many bytes, with bodies up to `staged`.
fn try_all(seed: u64, steps: u64, most: u64, staged: u64) {
    let state = &mut seed.wrapping_mul(0x1234_5677);
    let (database, objects) = (Database::new(settings(staged)), MemoryObjects::new());
    let clients = [(), ()].map(|()| Client::new(&database, &objects, quick()));
    let made = ["a", "b", "c"].map(|name| {
        let ino = clients[0].make(name);
        Tried {
            ino,
            model: Model::default(),
            at: 0,
            version: Version::of(&clients[0].load(ino).record),
        }
    });
    let mut tried = made;
    for step in 0..steps {
        let here = format!("seed {seed}, step {step}");
        let file = &mut tried[(random(state) % 3) as usize];
        match random(state) % 20 {
            0 => {
                flush(&clients[file.at], file.ino);
                file.at ^= 1;
            }
            1 => flush(&clients[file.at], file.ino),
            2 => {
                // Failures are those of faults below.
                let _ = clients[file.at].files.sync_all();
            }
            3 => {
                clients[file.at].files.blocks.shrink(0, usize::MAX);
                clients[file.at].files.table.shrink(0, usize::MAX);
            }
            4 if staged < most => {
                // Some flushes that follow fail.
                objects.inject(Fault::Put((random(state) % 20) as u32));
            }
            5 => {
                database.set_unreachable(true);
                let flushed = clients[file.at].files.flush(file.ino);
                assert!(matches!(flushed, Ok(()) | Err(Errno::EIO)), "{here}");
                database.set_unreachable(false);
            }
            _ => {
                clients[file.at].load(file.ino);
                change(&clients[file.at], file, state, most, &here);
            }
        }
        compare(&clients[file.at], file, state, &here);
    }
    for file in tried {
        flush(&clients[file.at], file.ino);
        let other = &clients[file.at ^ 1];
        let (_, content) = other.meta.content(file.ino).unwrap();
        assert_eq!(super::super::map::page_count(&content), file.model.count());
        compare(other, &mut { file }, state, "at the end");
    }
    let found = clients[0].meta.check(false).unwrap();
    assert_eq!(found, Vec::<String>::new(), "seed {seed}");
    let stored: BTreeSet<u64> = objects.numbers().into_iter().collect();
    assert!(most <= staged || !stored.is_empty(), "objects are used");
}

/// Flushes a file; faults fail some attempts.
fn flush(client: &Client, ino: Ino) {
    let mut results = (0..10).map(|_| client.files.flush(ino));
    assert!(results.any(|result| result.is_ok()));
}

fn change(client: &Client, file: &mut Tried, state: &mut u64, most: u64, here: &str) {
    let (ino, size, files) = (file.ino, file.model.size, &client.files);
    let (offset, len) = (random(state) % most, random(state) % (most / 3) + 1);
    let (page, count) = (offset / PAGE, len.div_ceil(PAGE));
    let written = match random(state) % 12 {
        0 => {
            file.model.resize(offset);
            files.resize(ino, offset)
        }
        1 => {
            file.model.resize(0);
            files.resize(ino, 0)
        }
        2 => {
            file.model.punch(offset, len);
            let mode = Fallocate::PUNCH_HOLE | Fallocate::KEEP_SIZE;
            files.allocate(ino, mode, offset, len)
        }
        3 => {
            file.model.zero(offset, len);
            file.model.size = size.max(offset + len);
            files.allocate(ino, Fallocate::ZERO_RANGE, offset, len)
        }
        4 => {
            file.model.allocate(offset, len);
            file.model.size = size.max(offset + len);
            files.allocate(ino, Fallocate::empty(), offset, len)
        }
        5 => {
            file.model.allocate(offset, len);
            files.allocate(ino, Fallocate::KEEP_SIZE, offset, len)
        }
        6 if (page + count) * PAGE < size => {
            flush(client, ino);
            file.model.collapse(page, count);
            files.allocate(ino, Fallocate::COLLAPSE_RANGE, page * PAGE, count * PAGE)
        }
        7 if page * PAGE < size && size < 2 * most => {
            flush(client, ino);
            file.model.insert(page, count);
            files.allocate(ino, Fallocate::INSERT_RANGE, page * PAGE, count * PAGE)
        }
        kind => {
            let data: Vec<u8> = (0..len).map(|_| random(state) as u8 | 1).collect();
            let appends = kind == 8;
            let offset = if appends { size } else { offset };
            file.model.write(offset, &data);
            let bufs = data.split_at(data.len() / 2);
            let bufs = [bufs.0, bufs.1].map(std::io::IoSlice::new);
            let written = files.write(ino, (!appends).then_some(offset), &bufs);
            let wrote = written.as_ref().map(|it| (it.start, it.count));
            assert_eq!(wrote, Ok((offset, len)), "{here}");
            written
        }
    };
    let written = written.unwrap_or_else(|error| panic!("{here}: {error}"));
    assert_eq!(
        written.before, file.version,
        "{here}: no other change was seen"
    );
    file.version = Version::of(&written.record);
    assert!(file.version.ctime > written.before.ctime, "{here}");
    let pages = written.record.space.pages(written.record.size);
    assert_eq!(written.record.size, file.model.size, "{here}");
    assert_eq!(pages, Some(file.model.count()), "{here}");
}

fn compare(client: &Client, file: &mut Tried, state: &mut u64, here: &str) {
    let record = client.load(file.ino).record;
    assert_eq!(record.size, file.model.size, "{here}");
    assert_eq!(
        record.space.pages(record.size),
        Some(file.model.count()),
        "{here}"
    );
    let behind = file
        .model
        .runs()
        .last()
        .is_some_and(|run| run.1 > record.size.next_multiple_of(PAGE));
    assert!(record.xattrs || !behind, "{here}: space behind the end");
    file.version = Version::of(&record);
    let end = record.size as usize;
    let (from, len) = match random(state) % 3 {
        0 => (0, end),
        _ => {
            let from = random(state) % (record.size + 1);
            (from, (random(state) % (record.size + 1 - from)) as usize)
        }
    };
    let (read, expected) = (client.read(file.ino, from, len), file.model.read(from, len));
    if let Some(at) = (0..len).find(|at| read[*at] != expected[*at]) {
        panic!(
            "{here}: byte {} is {}, not {}",
            from as usize + at,
            read[at],
            expected[at]
        );
    }
    let (mut at, mut runs) = (0, Vec::new());
    while let Some(run) = client.files.next_space(file.ino, at).unwrap() {
        runs.push((run.start, run.start + run.len));
        at = run.start + run.len;
    }
    assert_eq!(runs, file.model.runs(), "{here}");
}

#[test]
fn two_clients_in_turn_see_what_a_model_says_of_small_files() {
    (0..30).for_each(|seed| try_all(seed, 200, 24 << 10, 64 << 10));
}

#[test]
fn two_clients_in_turn_see_what_a_model_says_of_files_that_outgrow_bodies() {
    (100..120).for_each(|seed| try_all(seed, 200, 80 << 10, 48 << 10));
}

#[test]
fn two_clients_in_turn_see_what_a_model_says_of_large_files() {
    (200..206).for_each(|seed| try_all(seed, 150, 1 << 20, 16 << 10));
}

#[test]
fn two_clients_in_turn_see_what_a_model_says_without_staged_bodies() {
    (300..310).for_each(|seed| try_all(seed, 150, 40 << 10, 0));
}
