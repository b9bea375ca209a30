//! Pages that are replaced, cut and removed.

use super::{CROWD, File, PAIR, beside, frame, model, spawn};

#[test]
fn a_read_beside_an_overwrite_sees_one_of_both() {
    model(PAIR, b"aaaa", &[b"aaaa", b"abba"], |file| {
        beside(
            file,
            |file| {
                file.change(4, |pages| pages.put(0, frame(b"abba")));
            },
            File::read,
        )
    });
}

#[test]
fn a_read_beside_a_write_across_the_end_sees_it_whole_or_not() {
    model(PAIR, b"aa", &[b"aa", b"abbb"], |file| {
        beside(
            file,
            |file| {
                file.change(4, |pages| {
                    pages.begin();
                    pages.put(0, frame(b"abbb"));
                });
            },
            File::read,
        )
    });
}

#[test]
fn a_read_beside_truncation_and_growth_sees_bytes_and_size_of_one_state() {
    model(PAIR, b"abcd", &[b"abcd", b"ab", b"ab\0\0"], |file| {
        beside(
            file,
            |file| {
                file.change(2, |pages| {
                    pages.begin();
                    pages.put(0, frame(b"ab"));
                });
                file.change(4, |_| ());
            },
            File::read,
        )
    });
}

#[test]
fn a_read_beside_a_punch_sees_the_page_or_the_hole() {
    model(PAIR, b"abcd", &[b"abcd", b"\0\0\0\0"], |file| {
        beside(
            file,
            |file| file.change(4, |pages| pages.remove(0..1)),
            File::read,
        )
    });
}

#[test]
fn a_read_beside_truncation_to_nothing_and_a_new_write_sees_one_state() {
    model(PAIR, b"ab", &[b"ab", b"", b"xyz"], |file| {
        beside(
            file,
            |file| {
                file.change(0, |pages| pages.clear());
                file.change(3, |pages| pages.put(0, frame(b"xyz")));
            },
            File::read,
        )
    });
}

#[test]
fn memory_that_goes_to_another_file_is_not_read_in_this_one() {
    // A whole frame: when it is freed, the next one reuses it.
    model(PAIR, b"", &[b"", b"a", b"b"], |file| {
        let whole = |byte: u8| {
            let mut frame = super::Frame::with_capacity(super::frame::FRAME_SIZE);
            frame.push(&[byte]);
            frame
        };
        file.change(1, |pages| pages.put(0, whole(b'a')));
        let writer = spawn(file, move |file| {
            file.change(1, |pages| pages.put(0, whole(b'b')));
            let other = super::File::of(b"");
            other.change(1, |pages| pages.put(0, whole(b'x')));
        });
        let read = file.read();
        writer.join().unwrap();
        if read.is_none() {
            Some(Vec::new())
        } else {
            read
        }
    });
}

#[test]
fn two_writers_and_a_reader_agree() {
    model(CROWD, b"aa", &[b"aa", b"bb", b"cc"], |file| {
        let first = spawn(file, |file| {
            file.change(2, |pages| pages.put(0, frame(b"bb")));
        });
        let second = spawn(file, |file| {
            file.change(2, |pages| {
                pages.begin();
                pages.put(0, frame(b"cc"));
            });
        });
        let read = file.read();
        first.join().unwrap();
        second.join().unwrap();
        read
    });
}
