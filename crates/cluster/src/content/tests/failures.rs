//! Others that change the same file, and stores that fail.

use super::super::page::PAGE;
use super::{Client, quick, settings, wait_for};
use crate::memory::{Database, Fault, MemoryObjects};
use crate::meta::{Answer, Change, Content, Request};
use crate::objects::Objects as _;
use holdfast_core::store::Changes;
use holdfast_types::{Errno, Ino, SetTime, Time};
use parking_lot::Mutex;
use std::sync::atomic::Ordering::Relaxed;
use std::sync::{Arc, Weak};
use std::time::Duration;

struct Two {
    database: Arc<Database>,
    objects: Arc<MemoryObjects>,
    one: Client,
    other: Client,
    ino: Ino,
}

fn two(staged: u64) -> Two {
    let (database, objects) = (Database::new(settings(staged)), MemoryObjects::new());
    let one = Client::new(&database, &objects, quick());
    let other = Client::new(&database, &objects, quick());
    let ino = one.make("file");
    other.files.open(&other.load(ino));
    Two {
        database,
        objects,
        one,
        other,
        ino,
    }
}

#[derive(Default)]
struct Notices(Mutex<Vec<(Ino, bool)>>, Mutex<Vec<(Ino, Errno)>>);

impl Changes for Notices {
    fn inode(&self, ino: Ino, content: bool) {
        self.0.lock().push((ino, content));
    }

    fn entry(&self, _dir: Ino, _name: &[u8]) {}

    fn all(&self) {}

    fn knows(&self, _ino: Ino) -> bool {
        true
    }

    fn lost(&self, ino: Ino, reason: Errno) {
        self.1.lock().push((ino, reason));
    }
}

fn notices(client: &Client) -> Arc<Notices> {
    let notices = Arc::new(Notices::default());
    let weak: Weak<Notices> = Arc::downgrade(&notices);
    client.files.attach(weak);
    notices
}

/// Both write their own ranges of the same pages, of a file of this size, and flush.
fn merge(staged: u64, size: u64) {
    let it = two(staged);
    let notices = notices(&it.other);
    it.one.write(it.ino, 0, &vec![1; size as usize]).unwrap();
    it.one.files.flush(it.ino).unwrap();
    it.other.load(it.ino);
    for round in 0..4 {
        let (low, high) = (round * 1000 + 10, round * 1000 + 500);
        it.one.write(it.ino, low, &[2; 400]).unwrap();
        it.other.write(it.ino, high, &[3; 400]).unwrap();
        it.one.files.flush(it.ino).unwrap();
        it.other.files.flush(it.ino).unwrap();
        let notified = || notices.0.lock().pop() == Some((it.ino, true));
        wait_for("the notice", notified);
        it.one.load(it.ino);
        for client in [&it.one, &it.other] {
            let bytes = client.read(it.ino, low - 10, 1000);
            let expected = [
                vec![1; 10],
                vec![2; 400],
                vec![1; 90],
                vec![3; 400],
                vec![1; 100],
            ];
            assert_eq!(bytes, expected.concat(), "round {round}");
        }
    }
    assert_eq!(it.one.load(it.ino).record.size, size);
    assert_eq!(it.one.meta.check(false).unwrap(), Vec::<String>::new());
}

#[test]
fn ranges_of_two_clients_are_both_kept_in_a_body() {
    merge(64 << 10, 10_000);
}

#[test]
fn ranges_of_two_clients_are_both_kept_in_objects() {
    merge(4096, 300_000);
}

#[test]
fn a_flush_is_refused_until_it_is_made_over_the_present_content() {
    let it = two(16 << 10);
    it.one.write(it.ino, 0, &[1; 100]).unwrap();
    it.one.files.flush(it.ino).unwrap();
    it.other.load(it.ino);
    // A map for a file that has a body, and a body for a file that has a map.
    it.other.write(it.ino, 20_000, &[2; 20_000]).unwrap();
    it.other.files.flush(it.ino).unwrap();
    assert!(matches!(
        it.one.meta.content(it.ino).unwrap().1,
        Content::Extents(_)
    ));
    it.one.write(it.ino, 50, &[3; 100]).unwrap();
    it.one.files.flush(it.ino).unwrap();
    let expected = [vec![1; 50], vec![3; 100], vec![0; 19_850], vec![2; 20_000]];
    assert!(it.one.read(it.ino, 0, 40_000) == expected.concat());
    it.other.load(it.ino);
    it.other.files.resize(it.ino, 0).unwrap();
    it.other.write(it.ino, 0, &[4; 10]).unwrap();
    it.other.files.flush(it.ino).unwrap();
    it.one.write(it.ino, 30_000, &[5; 10_000]).unwrap();
    it.one.files.flush(it.ino).unwrap();
    let expected = [vec![4; 10], vec![0; 29_990], vec![5; 10_000]];
    assert!(it.one.read(it.ino, 0, 40_000) == expected.concat());
}

#[test]
fn an_undisturbed_flush_tells_nothing_and_leaves_the_record_as_it_was() {
    let it = two(16 << 10);
    let notices = notices(&it.one);
    it.one.files.set_time(Time(5_000_000_000_000_000_000));
    for size in [10, 5000, 100_000] {
        it.one.write(it.ino, 0, &vec![1; size]).unwrap();
        let before = it.one.load(it.ino).record;
        it.one.files.flush(it.ino).unwrap();
        let node = it.one.meta.load(&[it.ino], &[]).unwrap().remove(0);
        assert_eq!(node.record, before);
    }
    // Notices come in the order of numbers.
    let last = Ino(u64::MAX);
    it.one.files.notices.add(last, None);
    wait_for("the last notice", || !notices.0.lock().is_empty());
    assert_eq!(*notices.0.lock(), [(last, true)]);
}

#[test]
fn attributes_of_a_dirty_file_go_with_its_bytes() {
    let it = two(16 << 10);
    let change = Change {
        perm: Some(0o600),
        mtime: Some(SetTime::At(Time(77))),
        ..Change::default()
    };
    assert_eq!(
        it.one.files.set_attributes(it.ino, &change),
        None,
        "it is clean"
    );
    it.one.write(it.ino, 0, &[1; 10]).unwrap();
    let done = it.one.files.set_attributes(it.ino, &change).unwrap();
    assert_eq!((done.record.perm, done.record.mtime), (0o600, Time(77)));
    let with_acl = Change {
        acl: Some(Box::new([1])),
        ..Change::default()
    };
    assert_eq!(it.one.files.set_attributes(it.ino, &with_acl), None);
    it.one.files.flush(it.ino).unwrap();
    let node = it.other.load(it.ino);
    assert_eq!(node.record, done.record);
    // Later bytes change the time again.
    it.one.write(it.ino, 0, &[2; 10]).unwrap();
    let only = Change {
        perm: Some(0o640),
        ..Change::default()
    };
    let done = it.one.files.set_attributes(it.ino, &only).unwrap();
    assert!(done.record.mtime > Time(77) && done.record.mtime < done.record.ctime);
    it.one.files.flush(it.ino).unwrap();
    assert_eq!(it.other.load(it.ino).record, done.record);
}

#[test]
fn a_put_that_fails_is_repeated() {
    let it = two(4096);
    it.one.write(it.ino, 0, &[1; 50_000]).unwrap();
    it.objects.inject(Fault::Put(7));
    it.one.files.flush(it.ino).unwrap();
    it.other.load(it.ino);
    assert!(it.other.read(it.ino, 0, 50_000) == [1; 50_000]);
}

#[test]
fn readers_that_wait_for_one_block_fail_with_it() {
    let it = two(4096);
    it.one.write(it.ino, 0, &[1; 50_000]).unwrap();
    it.one.files.flush(it.ino).unwrap();
    it.other.load(it.ino);
    it.other
        .files
        .load_content(&it.other.files.table.get_or_new(it.ino))
        .unwrap();
    it.objects.inject(Fault::Get(u32::MAX));
    it.objects.inject(Fault::Slow(Duration::from_millis(500)));
    let before = it.objects.requests();
    std::thread::scope(|scope| {
        for _ in 0..8 {
            scope.spawn(|| {
                let read = it.other.files.read(it.ino, 0, &mut [0; 4096]);
                assert_eq!(read, Err(Errno::EIO));
            });
        }
    });
    assert!(it.objects.requests() - before < 4);
}

#[test]
fn bytes_that_cannot_be_stored_wait_and_the_map_stays() {
    let it = two(4096);
    it.one.write(it.ino, 0, &[1; 50_000]).unwrap();
    it.one.files.flush(it.ino).unwrap();
    it.one.write(it.ino, 100, &[2; 50_000]).unwrap();
    it.objects.inject(Fault::Put(8));
    assert_eq!(it.one.files.flush(it.ino), Err(Errno::EIO));
    it.one.write(it.ino, 0, &[3; 10]).unwrap();
    it.other.load(it.ino);
    assert!(it.other.read(it.ino, 0, 50_000) == [1; 50_000]);
    let expected = [vec![3; 10], vec![1; 90], vec![2; 50_000]].concat();
    assert!(it.one.read(it.ino, 0, 50_100) == expected);
    it.one.files.sync_all().unwrap();
    it.other.load(it.ino);
    assert!(it.other.read(it.ino, 0, 50_100) == expected);
}

#[test]
fn what_an_unreachable_database_did_not_take_waits() {
    let it = two(4096);
    let written = it.one.write(it.ino, 0, &[1; 9000]).unwrap();
    it.database.set_unreachable(true);
    assert_eq!(it.one.files.flush(it.ino), Err(Errno::EIO));
    let more = it.one.write(it.ino, 9000, &[2; 10]).unwrap();
    assert_eq!(more.before.ctime, written.record.ctime);
    it.database.set_unreachable(false);
    it.one.files.flush(it.ino).unwrap();
    assert_eq!(it.other.load(it.ino).record.size, 9010);
    assert_eq!(it.other.read(it.ino, 8990, 20), [[1; 10], [2; 10]].concat());
}

#[test]
fn what_waits_goes_by_itself_and_failures_are_tried_later() {
    let it = two(4096);
    it.objects.inject(Fault::Put(8));
    it.one.write(it.ino, 0, &[1; 9000]).unwrap();
    wait_for("writeback", || it.other.load(it.ino).record.size == 9000);
    assert!(it.other.read(it.ino, 0, 9000) == [1; 9000]);
    wait_for("the account", || {
        it.one.files.dirty.bytes.load(Relaxed) == 0
    });
    assert!(it.one.files.dirty.files().is_empty());
}

#[test]
fn what_waits_of_a_file_that_has_gone_is_lost() {
    let it = two(4096);
    let notices = notices(&it.one);
    it.one.write(it.ino, 0, &[1; 9000]).unwrap();
    let remove = Request::Remove {
        dir: Ino::ROOT,
        name: (*b"file").into(),
        directory: false,
    };
    assert!(matches!(
        it.other.meta.perform(remove),
        Ok(Answer::Done { .. })
    ));
    it.one.meta.end().unwrap();
    assert_eq!(it.one.files.flush(it.ino), Err(Errno::ESTALE));
    wait_for("the notice", || {
        *notices.1.lock() == [(it.ino, Errno::ESTALE)]
    });
    assert_eq!(it.one.files.flush(it.ino), Ok(()));
    assert_eq!(it.one.files.dirty.bytes.load(Relaxed), 0);
    assert_eq!(it.objects.numbers(), Vec::<u64>::new(), "nothing maps it");
}

#[test]
fn a_map_that_leads_to_nothing_is_loaded_once_more() {
    let it = two(4096);
    it.one.write(it.ino, 0, &[1; 50_000]).unwrap();
    it.one.files.flush(it.ino).unwrap();
    it.other.load(it.ino);
    assert!(it.other.files.next_space(it.ino, 0).unwrap().is_some());
    it.one.write(it.ino, 0, &[2; 50_000]).unwrap();
    it.one.files.flush(it.ino).unwrap();
    let objects = it.objects.numbers();
    it.objects.delete(&objects[..1]).unwrap();
    assert!(it.other.read(it.ino, 0, 50_000) == [2; 50_000]);
    it.other.files.blocks.shrink(0, usize::MAX);
    it.objects.delete(&objects).unwrap();
    let mut buf = [0; 10];
    assert_eq!(it.other.files.read(it.ino, 0, &mut buf), Err(Errno::EIO));
    // A partial page cannot be completed, and waits.
    it.other.write(it.ino, 5, &[3; 10]).unwrap();
    assert_eq!(it.other.files.flush(it.ino), Err(Errno::EIO));
    it.other.write(it.ino, 0, &[3; 53_248]).unwrap();
    it.other.files.flush(it.ino).unwrap();
    assert!(it.other.read(it.ino, 0, 50_000) == [3; 50_000]);
}

#[test]
fn an_older_answer_restores_no_older_content() {
    let it = two(16 << 10);
    it.one.write(it.ino, 0, &[1; 10]).unwrap();
    it.one.files.flush(it.ino).unwrap();
    let mut old = it.one.meta.load(&[it.ino], &[]).unwrap().remove(0);
    it.one.write(it.ino, 0, &[2; 20]).unwrap();
    it.one.files.flush(it.ino).unwrap();
    it.one.files.seen(&old);
    it.one.files.lay_over(&mut old.record);
    assert_eq!(old.record.size, 20);
    assert!(it.one.read(it.ino, 0, 20) == [2; 20]);
}

#[test]
fn files_that_go_together_share_a_pack() {
    let it = two(4096);
    let files: Vec<Ino> = (0..40)
        .map(|file| it.one.make(&format!("f{file}")))
        .collect();
    for (ino, byte) in files.iter().zip(0..) {
        it.one.write(*ino, 0, &[byte; 3 * PAGE as usize]).unwrap();
    }
    it.one.files.sync_all().unwrap();
    assert_eq!(it.objects.numbers().len(), 1);
    for (ino, byte) in files.iter().zip(0..) {
        assert_eq!(
            it.other.read(*ino, 0, 3 * PAGE as usize),
            [byte; 3 * PAGE as usize]
        );
    }
    assert_eq!(it.one.meta.check(false).unwrap(), Vec::<String>::new());
    let requests = it.objects.requests();
    assert!(requests <= 1 + 2, "neighbours come along: {requests}");
}

#[test]
fn a_receiver_of_notices_delays_no_flush() {
    let it = two(16 << 10);
    let notices = notices(&it.other);
    it.one.write(it.ino, 0, &[1; 10]).unwrap();
    it.other.write(it.ino, 10, &[2; 10]).unwrap();
    it.one.files.flush(it.ino).unwrap();
    // The receiver waits for this lock, as the core may wait for that of the file.
    let locked = notices.0.lock();
    it.other.files.flush(it.ino).unwrap();
    it.other.write(it.ino, 20, &[3; 10]).unwrap();
    it.other.files.flush(it.ino).unwrap();
    drop(locked);
    wait_for("the notice", || notices.0.lock().contains(&(it.ino, true)));
    let expected = [[1; 10], [2; 10], [3; 10]].concat();
    assert_eq!(it.other.read(it.ino, 0, 30), expected);
}

#[test]
fn a_read_beyond_the_largest_file_finds_nothing() {
    let it = two(4096);
    it.one.write(it.ino, (1 << 63) - 10, &[1; 20]).unwrap();
    assert_eq!(it.one.load(it.ino).record.size, (1 << 63) - 1);
    it.one.files.flush(it.ino).unwrap();
    let expected = [vec![0; 5], vec![1; 9], vec![0; 86]].concat();
    assert_eq!(it.one.read(it.ino, (1 << 63) - 15, 100), expected);
    assert_eq!(it.one.read(it.ino, u64::MAX - 50, 100), [0; 100]);
    let run = it.one.files.next_space(it.ino, 5).unwrap().unwrap();
    assert_eq!(run.start, (1 << 63) - 4096);
    assert_eq!(it.one.files.next_space(it.ino, u64::MAX), Ok(None));
    assert_eq!(it.one.write(it.ino, (1 << 63) - 1, &[1]), Err(Errno::EFBIG));
}
