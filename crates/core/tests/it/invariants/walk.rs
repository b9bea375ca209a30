//! I1, I2, I6, R-I1, R-I2, R-I3, R-I4, R-I5, R-I6: walks over all inodes.

use super::stage::{NOTHING, Stage, in_threads, race};
use holdfast_core::types::{Errno, FileType, Ino};
use holdfast_core::{InodeWalk, Visit};
use holdfast_sync::epoch;
use parking_lot::Mutex;
use std::collections::BTreeMap;
use std::panic::{AssertUnwindSafe, catch_unwind};

/// The inodes that one walk visits, in order.
fn walked(stage: &Stage, walk: &mut InodeWalk) -> Vec<Ino> {
    let mut seen = Vec::new();
    let walked = stage.fs.walk_inodes(walk, |node| {
        seen.push(node.ino());
        Ok(Visit::Continue)
    });
    assert_eq!(walked, Ok(()));
    assert!(walk.is_done());
    seen
}

fn all(stage: &Stage) -> Vec<Ino> {
    walked(stage, &mut InodeWalk::new())
}

/// Files on several leaves of the index, some of them removed again.
fn scattered(stage: &Stage) {
    for number in 0..500 {
        drop(stage.open(&format!("f{number}")));
    }
    for number in (0..500).filter(|number| number % 3 == 0) {
        stage.unlink(&format!("f{number}"));
    }
}

/// I1.
#[test]
fn a_walk_meets_each_lasting_inode_exactly_once_while_others_come_and_go() {
    for stage in Stage::each() {
        let dir = stage.mkdir("d");
        let lasting: Vec<_> = (0..300)
            .map(|number| {
                // Others in between, so that the lasting files are not adjacent.
                drop(stage.open_in(&dir, &format!("gone{number}")));
                stage.open(&format!("f{number}"))
            })
            .collect();
        race(4, |thread| match thread {
            0 => {
                let name = |number: u32| format!("gone{number}").into_bytes();
                for number in 0..300 {
                    let _ = stage.fs.unlink(&stage.who, &dir, &name(number));
                }
                for number in 0..300 {
                    drop(stage.open_in(&dir, &format!("gone{number}")));
                }
            }
            1 => drop(stage.fs.drop_caches().unwrap()),
            _ => {
                let mut met = BTreeMap::<Ino, u32>::new();
                for mut walk in stage.fs.inode_walks(thread) {
                    for ino in walked(&stage, &mut walk) {
                        *met.entry(ino).or_default() += 1;
                    }
                }
                assert!(met.values().all(|times| *times == 1), "twice");
                for file in &lasting {
                    assert!(met.contains_key(&file.node().ino()), "not met");
                }
            }
        });
    }
}

/// I2, R-I3, R-I5: however a walk ends, it drops every reference. (If the last other
/// reference to a file is dropped meanwhile, the walk frees it.)
#[test]
fn every_way_out_of_a_walk_gives_back_every_use() {
    type Exit = fn() -> holdfast_core::types::Result<Visit>;
    let exits: [Exit; 4] = [
        || Ok(Visit::Continue),
        || Ok(Visit::Stop),
        || Err(Errno::EINTR),
        || panic!("of the visitor, as the test wants"),
    ];
    for (exit, close_at) in exits.into_iter().flat_map(|exit| [(exit, 0), (exit, 20)]) {
        for stage in Stage::each() {
            let files: Vec<_> = (0..50).map(|_| stage.unnamed()).collect();
            let at = files[close_at].node().ino();
            let files = Mutex::new(files);
            let ended = catch_unwind(AssertUnwindSafe(|| {
                stage.fs.walk_inodes(&mut InodeWalk::new(), |node| {
                    if node.ino() != at {
                        return Ok(Visit::Continue);
                    }
                    files.lock().clear();
                    exit()
                })
            }));
            drop(ended);
            assert_eq!(stage.held(), NOTHING);
        }
    }
}

/// I2, R-I2: a walk continues where it stopped, and not from the beginning.
#[test]
fn a_walk_that_ended_early_goes_on_behind_where_it_stood() {
    for verdict in [Ok(Visit::Stop), Err(Errno::EIO)] {
        for stage in Stage::each() {
            scattered(&stage);
            let expected = all(&stage);
            let (mut walk, mut met) = (InodeWalk::new(), Vec::new());
            while !walk.is_done() {
                let before = met.len();
                let ended = stage.fs.walk_inodes(&mut walk, |node| {
                    met.push(node.ino());
                    verdict
                });
                assert!(met.len() <= before + 1, "R-I4: it ended with the visit");
                if met.len() > before {
                    assert_eq!(ended, verdict.map(drop));
                }
            }
            assert_eq!(met, expected);
        }
    }
}

/// R-I6: numbers are not reused, so a cursor never moves back.
#[test]
fn inodes_that_go_and_come_under_a_walk_do_not_move_it() {
    for stage in Stage::each() {
        for number in 0..200 {
            drop(stage.open(&format!("f{number}")));
        }
        let mut next = 0;
        let mut met = Vec::new();
        let walk = stage.fs.walk_inodes(&mut InodeWalk::new(), |node| {
            met.push(node.ino());
            // This one, some of the walk's current batch, and some later ones.
            for _ in 0..2 {
                if next < 200 {
                    stage.unlink(&format!("f{next}"));
                    drop(stage.open(&format!("new{next}")));
                    next += 1;
                }
            }
            Ok(Visit::Continue)
        });
        assert_eq!(walk, Ok(()));
        assert!(met.is_sorted_by(|a, b| a < b), "rising, hence ending");
        assert_eq!(next, 200);
        assert_eq!(stage.fs.stats().inodes, 201);
    }
}

/// R-I1: no lock is held while the visitor runs, so it may block.
#[test]
fn a_visitor_may_wait_for_a_grace_period_and_call_anything() {
    for stage in Stage::each() {
        let kept: Vec<_> = (0..70).map(|n| stage.open(&format!("f{n}"))).collect();
        let mut visits = 0;
        let mut walk = InodeWalk::new();
        let walked = stage.fs.walk_inodes(&mut walk, |node| {
            visits += 1;
            // Panics under a guard of this thread, and never returns under one of another thread.
            epoch::synchronize();
            stage.fs.drop_caches()?;
            assert!(all(&stage).contains(&node.ino()), "a walk within");
            if node.kind() == FileType::Regular {
                let found = stage.fs.node(node.ino())?;
                assert_eq!(&found, node);
                drop(stage.open("another"));
                stage.unlink("another");
            }
            Ok(Visit::Continue)
        });
        assert_eq!(walked, Ok(()));
        assert!(visits > kept.len());
    }
}

#[test]
fn unused_inodes_are_left_out_if_asked_for() {
    for stage in Stage::each() {
        scattered(&stage);
        let used = stage.open("f1");
        let met = walked(&stage, &mut InodeWalk::new().used_only());
        assert_eq!(met, [Ino::ROOT, used.node().ino()]);
    }
}

/// I1, with references counted by core: a reference that is dropped on another core than it was
/// counted on must not make the inode look unreferenced.
#[test]
fn an_inode_in_use_is_met_however_its_uses_move_between_threads() {
    let stage = Stage::memory();
    let file = stage.open("f");
    let ino = file.node().ino();
    let hands: Vec<Mutex<_>> = (0..8).map(|_| Mutex::new(None)).collect();
    race(4, |thread| {
        if thread < 2 {
            for hand in &hands {
                let given = (thread == 0).then(|| stage.lookup("f").unwrap());
                let taken = std::mem::replace(&mut *hand.lock(), given);
                drop(taken);
            }
        } else {
            let met = walked(&stage, &mut InodeWalk::new().used_only());
            assert!(met.contains(&ino));
        }
    });
}

/// I6.
#[test]
fn the_census_the_count_and_a_walk_agree_when_nobody_is_at_work() {
    for stage in Stage::each() {
        let dir = stage.mkdir("d");
        in_threads(4, |thread| {
            for number in 0..200 {
                let name = format!("{thread}-{number}");
                drop(stage.open_in(&dir, &name));
                if number % 2 == 0 {
                    let name = name.as_bytes();
                    stage.fs.unlink(&stage.who, &dir, name).unwrap();
                }
            }
        });
        let orphans: Vec<_> = (0..10).map(|_| stage.unnamed()).collect();
        let link = stage.fs.symlink(&stage.who, &dir, b"link", b"target");
        let fifo = stage
            .fs
            .mknod(&stage.who, &dir, b"fifo", FileType::Fifo, 0o600, 0);
        let census = stage.fs.inode_census();
        let count = stage.fs.stats().inodes;
        assert_eq!(count, 1 + 1 + 4 * 100 + 10 + 2);
        assert_eq!(all(&stage).len() as u64, count);
        let states = census.used + census.unused + census.orphans + census.dying;
        let kinds = census.regular + census.directories + census.symlinks + census.special;
        assert_eq!((states, kinds), (count, count));
        assert_eq!((census.orphans, census.dying, census.used), (10, 0, 4));
        assert_eq!(
            (census.directories, census.symlinks, census.special),
            (2, 1, 1)
        );
        drop((link, fifo, orphans));
        assert_eq!(stage.fs.stats().inodes, count - 10);
    }
}
