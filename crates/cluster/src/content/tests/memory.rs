//! What the content of files takes of memory.

use super::{Client, quick, settings};
use crate::content::FileOptions;
use crate::memory::{Database, Fault, MemoryObjects};
use holdfast_core::Memory;
use holdfast_core::budget::{Class, Member as _};
use holdfast_types::Ino;
use std::sync::atomic::Ordering::Relaxed;

#[test]
fn clean_content_keeps_to_its_part_of_the_budget() {
    let (database, objects) = (Database::new(settings(64 << 10)), MemoryObjects::new());
    let client = Client::new(&database, &objects, quick());
    let memory = Memory::separate(8 << 20);
    client.files.join(&memory);
    let large = client.make("large");
    client.write(large, 0, &vec![1; 24 << 20]).unwrap();
    assert!(
        client.files.usage().of(Class::Dirty) < 3 << 20,
        "an eighth, and a step"
    );
    client.files.flush(large).unwrap();
    let files: Vec<Ino> = (0..300)
        .map(|file| client.make(&format!("f{file}")))
        .collect();
    for ino in &files {
        client.write(*ino, 0, &[2; 60_000]).unwrap();
        client.files.flush(*ino).unwrap();
        client.files.close(*ino);
    }
    let mut most = 0;
    for ino in &files {
        assert!(client.read(*ino, 0, 60_000) == [2; 60_000]);
        assert!(client.read(large, 11 << 20, 1 << 20) == [1; 1 << 20]);
        most = most.max(client.files.usage().total());
    }
    assert!(most <= 8 << 20, "{most} bytes");
    assert_eq!(client.files.usage().of(Class::Dirty), 0);
    memory.set(Some(4 << 20));
    memory.shrinkers().shrink();
    let left = client.files.usage().total();
    assert!(left <= 4 << 20, "{left} bytes");
}

#[test]
fn nothing_is_counted_when_nothing_is_left() {
    let (database, objects) = (Database::new(settings(4096)), MemoryObjects::new());
    let client = Client::new(&database, &objects, quick());
    let files: Vec<Ino> = (0..20)
        .map(|file| client.make(&format!("f{file}")))
        .collect();
    for ino in &files {
        client.write(*ino, 0, &[2; 60_000]).unwrap();
    }
    client.files.sync_all().unwrap();
    for ino in &files {
        client.read(*ino, 0, 60_000);
        client.files.close(*ino);
        client.files.forget(*ino);
    }
    client.files.blocks.shrink(0, usize::MAX);
    assert_eq!(client.files.usage().total(), 0);
    assert_eq!(client.files.table.len(), 0);
}

#[test]
fn what_waits_of_a_file_without_names_goes_with_it() {
    let (database, objects) = (Database::new(settings(4096)), MemoryObjects::new());
    let client = Client::new(&database, &objects, quick());
    let ino = client.make("file");
    client.write(ino, 0, &[2; 60_000]).unwrap();
    let remove = crate::meta::Request::Remove {
        dir: Ino::ROOT,
        name: (*b"file").into(),
        directory: false,
    };
    client.meta.perform(remove).unwrap();
    client.load(ino);
    client.files.close(ino);
    client.files.forget(ino);
    assert_eq!(client.files.usage().total(), 0);
    client.files.sync_all().unwrap();
    assert_eq!(objects.numbers(), Vec::<u64>::new());
}

#[test]
fn blocks_come_from_disk_the_next_time() {
    let (database, objects) = (Database::new(settings(4096)), MemoryObjects::new());
    let dir = tempfile::tempdir().unwrap();
    let options = || FileOptions {
        cache: Some(dir.path().into()),
        ..quick()
    };
    let client = Client::new(&database, &objects, options());
    let ino = client.make("file");
    let bytes: Vec<u8> = (0..2_000_000_u32).map(|it| (it / 1000) as u8).collect();
    client.write(ino, 0, &bytes).unwrap();
    client.files.flush(ino).unwrap();
    assert!(client.read(ino, 0, bytes.len()) == bytes);
    let kept = || {
        let fs = std::fs::read_dir(dir.path()).unwrap().next().unwrap();
        let files = std::fs::read_dir(fs.unwrap().path()).unwrap();
        files
            .filter(|file| file.as_ref().unwrap().path().extension().is_none())
            .count()
    };
    super::wait_for("the disk", || kept() == 8);
    let other = Client::new(&database, &objects, options());
    let requests = objects.requests();
    assert!(other.read(ino, 0, bytes.len()) == bytes);
    assert_eq!(objects.requests(), requests);
}

#[test]
fn sequential_readers_find_what_they_need() {
    let (database, objects) = (Database::new(settings(4096)), MemoryObjects::new());
    let client = Client::new(&database, &objects, quick());
    let ino = client.make("file");
    for step in 0..24_u64 {
        client
            .write(ino, step << 20, &vec![step as u8; 1 << 20])
            .unwrap();
    }
    client.files.flush(ino).unwrap();
    objects.inject(Fault::Slow(std::time::Duration::from_millis(2)));
    let requests = objects.requests();
    for step in 0..96_u64 {
        assert!(client.read(ino, step << 18, 1 << 18) == [(step / 4) as u8; 1 << 18]);
        assert!(client.files.blocks.bytes.load(Relaxed) <= client.files.limits.blocks());
    }
    let requests = objects.requests() - requests;
    assert!(requests < 40, "{requests} requests for 96 blocks");
}
