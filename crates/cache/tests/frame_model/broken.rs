//! Frames that are filled by sectors, in any order.

use super::frame::{FRAME_SIZE, Frame, Stored};
use super::{CROWD, File, PAIR, model, spawn};

const SECTOR: usize = 512;
const SIZE: usize = 2 * SECTOR;

/// A page with only the second sector filled.
fn broken(file: &File) {
    file.change(SIZE, |pages| {
        let mut frame = Frame::with_capacity(FRAME_SIZE);
        frame.put(SECTOR, &[2; SECTOR]);
        pages.put(0, frame);
    });
}

/// The first byte of each sector.
fn firsts(read: Option<Vec<u8>>) -> Option<Vec<u8>> {
    read.map(|read| read.into_iter().step_by(SECTOR).collect())
}

#[test]
fn a_read_beside_the_filling_of_a_gap_sees_the_whole_or_tries_again() {
    model(PAIR, b"", &[&[1, 2]], |file| {
        broken(file);
        let writer = spawn(file, |file| {
            file.change(SIZE, |pages| assert!(pages.extend(0, 0, &[1; SECTOR])));
        });
        let read = file.read();
        writer.join().unwrap();
        firsts(read)
    });
}

#[test]
fn a_read_beside_the_mending_of_a_frame_sees_its_gaps_as_zeros() {
    model(PAIR, b"", &[&[0, 2]], |file| {
        broken(file);
        let mender = spawn(file, |file| {
            let pages = file.pages.lock();
            assert_eq!(pages.get(0).map(|page| page.bytes().len()), Some(SIZE));
        });
        let read = file.read();
        mender.join().unwrap();
        firsts(read)
    });
}

#[test]
fn what_is_kept_of_a_broken_frame_stays_while_it_is_mended_and_filled() {
    model(CROWD, b"", &[&[0, 2]], |file| {
        broken(file);
        let kept = file
            .pages
            .lock()
            .show(0)
            .and_then(Stored::share)
            .expect("large enough");
        let mender = spawn(file, |file| {
            let pages = file.pages.lock();
            let _ = pages.get(0);
        });
        let writer = spawn(file, |file| {
            file.change(SIZE, |pages| {
                // A frame that was mended before has no room.
                let _ = pages.extend(0, 0, &[1; SECTOR]);
                pages.clear();
            });
        });
        let read = kept.to_vec();
        drop(kept);
        mender.join().unwrap();
        writer.join().unwrap();
        firsts(Some(read))
    });
}
