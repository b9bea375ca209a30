//! Files of one mount in both modes: small ones cached, large ones passed through, and files that
//! change their size.

use super::Mount;
use holdfast::engine::store::Coherence;
use holdfast_fuse::{Config, Passthrough, TransportChoice};
use holdfast_hostdir::Options;
use holdfast_testkit::mount::config;
use std::fs::{self, File, OpenOptions};
use std::os::unix::fs::FileExt as _;

const LARGE: usize = 2 << 20;
const BOTH: [TransportChoice; 2] = [TransportChoice::Dev, TransportChoice::Uring];

fn byte(file: &File, at: u64) -> u8 {
    let mut byte = [0];
    file.read_exact_at(&mut byte, at).unwrap();
    byte[0]
}

#[test]
fn only_large_files_are_passed_through_where_it_has_to_pay() {
    for transport in BOTH {
        let Some(mount) = Mount::new(transport, Passthrough::Auto) else {
            continue;
        };
        fs::write(mount.below("large"), vec![1; LARGE]).unwrap();
        fs::write(mount.below("small"), vec![2; 10_000]).unwrap();
        assert_eq!(fs::read(mount.at("large")).unwrap(), vec![1; LARGE]);
        assert_eq!(mount.transfers(), 0);
        assert_eq!(fs::read(mount.at("small")).unwrap(), vec![2; 10_000]);
        let transfers = mount.transfers();
        assert!(transfers > 0);
        // The kernel caches small files.
        assert_eq!(fs::read(mount.at("small")).unwrap(), vec![2; 10_000]);
        assert_eq!(mount.transfers(), transfers);
        mount.end();
    }
}

#[test]
fn a_file_that_grows_or_shrinks_while_it_is_open_stays_in_its_mode_and_in_sight() {
    for transport in BOTH {
        let Some(mount) = Mount::new(transport, Passthrough::Auto) else {
            continue;
        };
        let path = mount.at("file");
        let write = || OpenOptions::new().write(true).open(&path).unwrap();
        fs::write(&path, vec![1; 10_000]).unwrap();
        // Small when opened: all opens are cached, also after it has grown.
        let small = File::open(&path).unwrap();
        let writer = write();
        writer.write_all_at(&vec![3; LARGE], 0).unwrap();
        let grown = File::open(&path).unwrap();
        assert_eq!((byte(&small, 9_000), byte(&grown, 1 << 20)), (3, 3));
        drop((small, writer));
        assert_eq!(byte(&grown, 1_500_000), 3);
        drop(grown);
        mount.wait_for_release();
        // Large when opened: all opens are passed through, also after it has shrunk.
        let before = mount.transfers();
        let large = write();
        assert_eq!(fs::read(&path).unwrap(), vec![3; LARGE]);
        large.write_all_at(&[4; 100], 0).unwrap();
        large.set_len(100).unwrap();
        assert_eq!(fs::read(&path).unwrap(), [4; 100]);
        large.write_all_at(&[5; 10], 90).unwrap();
        assert_eq!(fs::read(&path).unwrap()[90], 5);
        assert_eq!(mount.transfers(), before);
        drop(large);
        mount.wait_for_release();
        // Then cached again, with the data written by passthrough; earlier pages are dropped.
        let served = File::open(&path).unwrap();
        assert_eq!((byte(&served, 50), byte(&served, 95)), (4, 5));
        assert_eq!(fs::metadata(&path).unwrap().len(), 100);
        assert!(mount.transfers() > before);
        drop(served);
        mount.end();
    }
}

#[test]
fn the_mode_follows_its_opens_whatever_their_order_is() {
    for transport in BOTH {
        let Some(mount) = Mount::new(transport, Passthrough::Auto) else {
            continue;
        };
        let path = mount.at("file");
        for round in 0..200_usize {
            // Small and large by turns, with an open file across each change.
            let len = if round % 2 == 0 { LARGE } else { 100 };
            let over = File::open(&path).ok();
            fs::write(&path, vec![round as u8; len]).unwrap();
            let read = fs::read(&path).unwrap();
            assert_eq!((read.len(), read[len - 1]), (len, round as u8));
            if let Some(over) = over {
                assert_eq!(byte(&over, 50), round as u8);
            }
        }
        mount.end();
    }
}

#[test]
fn many_threads_open_and_close_one_file_in_any_order() {
    for transport in BOTH {
        let Some(mount) = Mount::new(transport, Passthrough::Auto) else {
            continue;
        };
        let path = mount.at("file");
        fs::write(&path, vec![9; LARGE]).unwrap();
        std::thread::scope(|scope| {
            for thread in 0..6_u64 {
                let path = &path;
                scope.spawn(move || {
                    for round in 0..300_u64 {
                        let mut options = OpenOptions::new();
                        let writes = (thread + round) % 3 == 0;
                        let file = options.read(true).write(writes).open(path).unwrap();
                        if writes {
                            let len = if round % 6 == 0 { 1000 } else { LARGE as u64 };
                            file.write_all_at(&[9; 10], thread * 100).unwrap();
                            file.set_len(len).unwrap();
                        }
                        assert_eq!(byte(&file, thread * 100), 9);
                    }
                });
            }
        });
        assert!(fs::metadata(&path).unwrap().len() >= 1000);
        mount.end();
    }
}

#[test]
fn what_nobody_else_changes_is_not_written_past_its_caches() {
    let Some(base) = config(TransportChoice::Dev) else {
        return;
    };
    let config = Config {
        passthrough: Passthrough::All,
        ..base
    };
    let options = Options {
        coherence: Coherence::Exclusive,
        ..Options::default()
    };
    let mount = Mount::with(tempfile::tempdir().unwrap(), options, &config);
    fs::write(mount.at("file"), vec![1; LARGE]).unwrap();
    assert_eq!(fs::metadata(mount.at("file")).unwrap().len(), LARGE as u64);
    assert!(mount.transfers() > 0, "it is served");
    mount.end();
}
