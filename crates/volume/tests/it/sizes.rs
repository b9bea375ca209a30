//! A file's attributes while other threads change its size: the size never exceeds the written
//! bytes.

use crate::stage::{assert_sound, formatted, opened};
use holdfast_core::{FileSystem, OpenFile};
use holdfast_types::{Caller, OpenFlags, SetAttr};
use holdfast_volume::FormatOptions;
use std::sync::Barrier;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;

const FILES: u64 = 600;
/// A file's initial length: inline, or in a block that has older bytes after it.
const SHORT: u64 = 100;
const CUT: u64 = 5000;
const FULL: u64 = 2 * 4096;
/// Offset and length of the write.
const AT: u64 = 20_000;
const LEN: usize = 8000;

fn file(fs: &FileSystem, number: u64) -> OpenFile {
    let (who, root) = (Caller::root(), fs.root());
    let flags = OpenFlags::CREATE | OpenFlags::READ_WRITE;
    let name = number.to_string();
    fs.open_at(&who, &root, name.as_bytes(), flags, 0o644)
        .unwrap()
}

fn set(fs: &FileSystem, file: &OpenFile, set: &SetAttr) {
    fs.setattr(&Caller::root(), file.node(), set, None).unwrap();
}

fn make(fs: &FileSystem, number: u64) {
    let (who, file) = (Caller::root(), file(fs, number));
    if number.is_multiple_of(2) {
        fs.write(&who, &file, 0, &[1; SHORT as usize]).unwrap();
        return;
    }
    fs.write(&who, &file, 0, &[1; FULL as usize]).unwrap();
    fs.sync().unwrap();
    let size = Some(CUT);
    let cut = SetAttr {
        size,
        ..SetAttr::default()
    };
    set(fs, &file, &cut);
}

#[test]
fn attributes_that_are_set_beside_a_write_do_not_come_before_its_bytes() {
    let device = formatted(64 << 20, &FormatOptions::default());
    let (store, fs) = opened(&device);
    (0..FILES).for_each(|number| make(&fs, number));
    fs.close().unwrap();
    store.close().unwrap();

    // What is changed now was in the trees only.
    let (store, fs) = opened(&device);
    for number in 0..FILES {
        let file = file(&fs, number);
        store.checkpoint().unwrap();
        let (start, written) = (Barrier::new(2), AtomicBool::new(false));
        thread::scope(|scope| {
            let beside = scope.spawn(|| {
                start.wait();
                for perm in (0..200).take_while(|_| !written.load(Ordering::Acquire)) {
                    let perm = Some(perm);
                    let perms = SetAttr {
                        perm,
                        ..SetAttr::default()
                    };
                    set(&fs, &file, &perms);
                }
            });
            start.wait();
            fs.write(&Caller::root(), &file, AT, &[2; LEN]).unwrap();
            written.store(true, Ordering::Release);
            beside.join().unwrap();
        });
    }
    fs.close().unwrap();
    store.close().unwrap();

    assert_sound(&device);
    let (store, fs) = opened(&device);
    for number in 0..FILES {
        let file = file(&fs, number);
        let mut expected = vec![0; AT as usize + LEN];
        let len = if number.is_multiple_of(2) { SHORT } else { CUT };
        expected[..len as usize].fill(1);
        expected[AT as usize..].fill(2);
        let mut found = vec![9; expected.len() + 1];
        let read = fs.read(&file, 0, &mut found).unwrap();
        found.truncate(read);
        let differs = found
            .iter()
            .zip(&expected)
            .position(|(one, other)| one != other);
        assert!(
            found == expected,
            "file {number} of {read} bytes differs at {differs:?}"
        );
    }
    fs.close().unwrap();
    store.close().unwrap();
}
