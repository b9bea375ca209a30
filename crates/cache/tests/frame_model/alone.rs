//! A frame that is alone, copied without a snapshot.

use super::{PAIR, frame, model, spawn};

#[test]
fn a_copy_beside_an_end_and_a_new_beginning_is_of_one_of_them() {
    model(PAIR, b"ab", &[b"ab", b"cd"], |file| {
        let other = spawn(file, |file| {
            file.change(0, |pages| pages.remove(0..1));
            file.change(2, |pages| pages.put(0, frame(b"cd")));
        });
        let copied = file.copy(2);
        other.join().expect("no panic");
        copied
    });
}

#[test]
fn a_copy_beside_an_append_has_it_with_its_size_only() {
    model(PAIR, b"a", &[b"ab"], |file| {
        let other = spawn(file, |file| {
            file.change(2, |pages| assert!(pages.extend(0, 1, b"b")));
        });
        let copied = file.copy(2);
        other.join().expect("no panic");
        copied
    });
}

#[test]
fn a_copy_beside_a_cut_and_growth_has_no_bytes_of_the_former_end() {
    model(PAIR, b"ab", &[b"ab", b"a\0"], |file| {
        let other = spawn(file, |file| {
            file.change(1, |pages| {
                pages.begin();
                pages.put(0, frame(b"a"));
            });
            file.change(2, |pages| assert!(pages.extend(0, 2, b"")));
        });
        let copied = file.copy(2);
        other.join().expect("no panic");
        copied
    });
}

#[test]
fn a_copy_beside_other_frames_that_come_and_go_is_of_the_frame() {
    model(PAIR, b"ab", &[b"ab"], |file| {
        let other = spawn(file, |file| {
            file.change(2, |pages| pages.put(3, frame(b"x")));
            file.change(2, |pages| {
                pages.remove(1..9);
                pages.normalise();
            });
        });
        let copied = file.copy(2);
        other.join().expect("no panic");
        copied
    });
}
