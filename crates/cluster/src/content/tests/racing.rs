//! Threads that write, read and flush at once.

use super::{Client, quick, random, settings, wait_for};
use crate::content::FileOptions;
use crate::memory::{Database, Fault, MemoryObjects};
use holdfast_types::Errno;
use std::io::IoSlice;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::time::{Duration, Instant};

#[test]
fn writes_during_a_flush_are_not_lost() {
    for staged in [4096, 64 << 10] {
        let (database, objects) = (Database::new(settings(staged)), MemoryObjects::new());
        let client = Client::new(&database, &objects, quick());
        let ino = client.make("file");
        let stopped = AtomicBool::new(false);
        std::thread::scope(|scope| {
            let flush = || {
                while !stopped.load(Relaxed) {
                    client.files.flush(ino).unwrap();
                    client.files.sync_all().unwrap();
                }
            };
            scope.spawn(flush);
            scope.spawn(flush);
            // Each thread has its own eighth of each page, and sees its own bytes at once.
            let writers: Vec<_> = (0..3_u64)
                .map(|thread| {
                    let client = &client;
                    scope.spawn(move || {
                        for round in 0..300_u64 {
                            let at = round % 15 * 4096 + thread * 512;
                            let data = [(round + thread) as u8; 512];
                            client.write(ino, at, &data).unwrap();
                            assert_eq!(client.read(ino, at, 512), data);
                        }
                    })
                })
                .collect();
            let results: Vec<_> = writers.into_iter().map(|it| it.join()).collect();
            stopped.store(true, Relaxed);
            assert!(results.into_iter().all(|it| it.is_ok()));
        });
        client.files.flush(ino).unwrap();
        let other = Client::new(&database, &objects, quick());
        for page in 0..15_u64 {
            for thread in 0..3 {
                let bytes = other.read(ino, page * 4096 + thread * 512, 512);
                assert_eq!(bytes, [(285 + page + thread) as u8; 512], "page {page}");
            }
        }
        assert_eq!(client.meta.check(false).unwrap(), Vec::<String>::new());
    }
}

#[test]
fn appends_of_threads_do_not_overlap() {
    let (database, objects) = (Database::new(settings(8192)), MemoryObjects::new());
    let client = Client::new(&database, &objects, quick());
    let ino = client.make("file");
    std::thread::scope(|scope| {
        for thread in 1..5_u8 {
            let client = &client;
            scope.spawn(move || {
                for round in 0..100 {
                    let data = [thread; 100];
                    client
                        .files
                        .write(ino, None, &[IoSlice::new(&data)])
                        .unwrap();
                    if round % 10 == 0 {
                        client.files.flush(ino).unwrap();
                    }
                }
            });
        }
    });
    client.files.flush(ino).unwrap();
    let bytes = client.read(ino, 0, 40_000);
    assert!(
        bytes
            .chunks(100)
            .all(|chunk| chunk.iter().all(|it| *it == chunk[0]))
    );
    for thread in 1..5 {
        assert_eq!(bytes.iter().filter(|it| **it == thread).count(), 10_000);
    }
}

#[test]
fn two_clients_write_their_own_bytes_at_once() {
    let (database, objects) = (Database::new(settings(32 << 10)), MemoryObjects::new());
    let clients = [(), ()].map(|()| Client::new(&database, &objects, quick()));
    let ino = clients[0].make("file");
    clients[1].files.open(&clients[1].load(ino));
    std::thread::scope(|scope| {
        for (client, which) in clients.iter().zip(0..) {
            scope.spawn(move || {
                let state = &mut (77 + which);
                for round in 0..200 {
                    // From bodies to objects.
                    let at = random(state) % (256 * (round + 1)) / 256 * 512 + which * 256;
                    client.write(ino, at, &[which as u8 + 1; 256]).unwrap();
                    if round % 3 == 0 {
                        client.files.flush(ino).unwrap();
                    }
                }
                client.files.flush(ino).unwrap();
            });
        }
    });
    let size = clients[0].load(ino).record.size;
    let bytes = clients[0].read(ino, 0, size as usize);
    for (chunk, which) in bytes.chunks(256).zip([1, 2].into_iter().cycle()) {
        assert!(
            [0, which]
                .iter()
                .any(|byte| chunk.iter().all(|it| it == byte))
        );
    }
    assert!(bytes.iter().filter(|it| **it > 0).count() > 20_000);
    assert_eq!(clients[0].meta.check(false).unwrap(), Vec::<String>::new());
}

#[test]
fn writers_wait_at_the_limit_and_go_on_with_the_store() {
    let (database, objects) = (Database::new(settings(4096)), MemoryObjects::new());
    let options = FileOptions {
        dirty: Some(2 << 20),
        ..quick()
    };
    let client = Client::new(&database, &objects, options);
    objects.inject(Fault::Slow(Duration::from_millis(20)));
    let ino = client.make("file");
    let mut most = 0;
    for step in 0..64 {
        client
            .write(ino, step << 18, &[step as u8; 1 << 18])
            .unwrap();
        most = most.max(client.files.dirty.bytes.load(Relaxed));
    }
    assert!(most <= (2 << 20) + (1 << 19), "{most} bytes waited");
    client.files.flush(ino).unwrap();
    let other = Client::new(&database, &objects, quick());
    for step in 0..64 {
        assert!(other.read(ino, step << 18, 1 << 18) == [step as u8; 1 << 18]);
    }
}

#[test]
fn a_file_that_fills_a_pack_goes_while_it_is_written() {
    let (database, objects) = (Database::new(settings(4096)), MemoryObjects::new());
    let options = FileOptions {
        dirty: Some(4 << 20),
        ..quick()
    };
    let client = Client::new(&database, &objects, options);
    let other = Client::new(&database, &objects, quick());
    let (ino, begun) = (client.make("file"), Instant::now());
    client.write(ino, 0, &[1; 5 << 18]).unwrap();
    wait_for("the first pack", || {
        client.write(ino, 0, &[2]).unwrap();
        other.load(ino).record.size == 5 << 18
    });
    // A file that changes without an end goes after five seconds in any case.
    let time = begun.elapsed();
    assert!(time < Duration::from_secs(4), "{time:?}");
}

#[test]
fn writers_do_not_wait_for_ever() {
    let (database, objects) = (Database::new(settings(4096)), MemoryObjects::new());
    let options = FileOptions {
        dirty: Some(1 << 20),
        ..quick()
    };
    let client = Client::new(&database, &objects, options);
    let ino = client.make("file");
    objects.inject(Fault::Put(u32::MAX));
    let mut writes = (0..10).map(|step| client.write(ino, step << 18, &[1; 1 << 18]));
    let failed = writes
        .by_ref()
        .position(|written| written == Err(Errno::EIO));
    assert!(failed.is_some_and(|failed| failed >= 4), "{failed:?}");
    objects.inject(Fault::Put(0));
    wait_for("recovery", || client.write(ino, 0, &[2; 1 << 18]).is_ok());
    client.files.flush(ino).unwrap();
}
