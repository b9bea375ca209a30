//! Frames with owners beside their map.

use super::frame::{FRAME_SIZE, Frame, Shared};
use super::{CROWD, File, PAIR, model, spawn};

fn whole(bytes: &[u8]) -> Frame {
    let mut frame = Frame::with_capacity(FRAME_SIZE);
    frame.push(bytes);
    frame
}

fn keep(file: &File) -> Option<Shared> {
    let pages = file.pages.lock();
    pages.get(0)?.share()
}

#[test]
fn what_is_kept_stays_as_it_was_whatever_becomes_of_the_frame() {
    model(PAIR, b"", &[b"ab"], |file| {
        file.change(2, |pages| pages.put(0, whole(b"ab")));
        let kept = keep(file).expect("a whole frame");
        let writer = spawn(file, |file| {
            file.change(3, |pages| assert!(pages.extend(0, 2, b"c")));
            file.change(2, |pages| pages.put(0, whole(b"xy")));
        });
        let read = kept.to_vec();
        drop(kept);
        writer.join().unwrap();
        Some(read)
    });
}

#[test]
fn the_last_of_three_owners_frees_and_nobody_before() {
    model(CROWD, b"", &[b"ab"], |file| {
        file.change(2, |pages| pages.put(0, whole(b"ab")));
        let kept = keep(file).expect("a whole frame");
        let other = kept.clone();
        let reader = spawn(file, move |_| {
            let read = other.to_vec();
            drop(other);
            read
        });
        let writer = spawn(file, |file| file.change(0, |pages| pages.clear()));
        let read = kept.to_vec();
        drop(kept);
        writer.join().unwrap();
        assert_eq!(reader.join().unwrap(), read);
        Some(read)
    });
}
