//! Bytes filled in place, after those that readers know.

use super::{CROWD, File, PAIR, beside, model, spawn};

#[test]
fn a_read_beside_an_append_sees_it_whole_or_not() {
    model(PAIR, b"ab", &[b"ab", b"abcd"], |file| {
        beside(
            file,
            |file| {
                file.change(4, |pages| assert!(pages.extend(0, 2, b"cd")));
            },
            File::read,
        )
    });
}

#[test]
fn a_read_beside_two_appends_sees_one_state_after_the_other() {
    model(PAIR, b"a", &[b"a", b"ab", b"abc"], |file| {
        beside(
            file,
            |file| {
                file.change(2, |pages| assert!(pages.extend(0, 1, b"b")));
                file.change(3, |pages| assert!(pages.extend(0, 2, b"c")));
            },
            File::read,
        )
    });
}

#[test]
fn a_read_beside_growth_and_a_write_into_it_sees_no_later_one_without_the_earlier() {
    // First the size alone, then bytes after the filled ones but before the end.
    model(PAIR, b"a", &[b"a", b"a\0\0", b"ax\0"], |file| {
        beside(
            file,
            |file| {
                file.change(3, |_| ());
                file.change(3, |pages| assert!(pages.extend(0, 1, b"x")));
            },
            File::read,
        )
    });
}

#[test]
fn two_writers_append_one_after_the_other() {
    model(CROWD, b"a", &[b"a", b"ab", b"abb"], |file| {
        let append = |file: &super::File| {
            let mut pages = file.pages.lock();
            let size = file.size.load(std::sync::atomic::Ordering::Relaxed);
            assert!(pages.extend(0, size as usize, b"b"));
            file.size
                .store(size + 1, std::sync::atomic::Ordering::Relaxed);
        };
        let (first, second) = (spawn(file, append), spawn(file, append));
        let read = file.read();
        first.join().unwrap();
        second.join().unwrap();
        read
    });
}
