//! R-I10: a scan leaves the memory as it was.

use super::stage::{Stage, in_threads, race};
use holdfast_core::types::{Errno, Ino, Result};
use holdfast_core::{Bulkstat, Node, Visit};

/// Scans until the end, whatever the visitor returns; returns the numbers visited.
fn scanned(stage: &Stage, mut visit: impl FnMut(&Node) -> Result<Visit>) -> Vec<Ino> {
    let (mut scan, mut met) = (Bulkstat::new(), Vec::new());
    while !scan.is_done() {
        let ended = stage.fs.bulkstat(&mut scan, |node, attr| {
            assert_eq!(node.ino(), attr.ino);
            met.push(attr.ino);
            visit(node)
        });
        assert!(matches!(ended, Ok(()) | Err(Errno::EINTR)), "{ended:?}");
    }
    met
}

fn made(stage: &Stage, files: u32) -> Vec<Ino> {
    let mut all = vec![Ino::ROOT];
    all.extend((0..files).map(|number| stage.open(&format!("f{number}")).node().ino()));
    all.sort();
    all
}

#[test]
fn what_a_scan_alone_brought_in_goes_soon_after_its_visit() {
    let stage = Stage::model();
    let all = made(&stage, 600);
    assert_eq!(
        stage.fs.drop_caches().map(|dropped| dropped.inodes),
        Ok(600)
    );
    let mut most = 0;
    let met = scanned(&stage, |_| {
        most = most.max(stage.fs.stats().inodes);
        Ok(Visit::Continue)
    });
    assert_eq!(met, all);
    assert!(most <= 1 + 256, "the root and those of a batch: {most}");
    assert_eq!(stage.fs.stats().inodes, 1);
}

#[test]
fn what_was_in_memory_before_or_is_asked_for_meanwhile_stays() {
    let stage = Stage::model();
    let all = made(&stage, 50);
    stage.fs.drop_caches().unwrap();
    // In memory, and unreferenced.
    let before = stage.lookup("f1").unwrap().ino();
    let mut asked = Ino::ROOT;
    let met = scanned(&stage, |node| {
        if node.ino() == all[40] {
            // During its visit another lookup references it, and drops it again.
            asked = stage.fs.node(node.ino())?.ino();
        }
        Ok(Visit::Continue)
    });
    assert_eq!(met, all);
    assert_eq!(asked, all[40]);
    assert_eq!(stage.fs.stats().inodes, 3);
    let kept = |stage: &Stage| {
        let mut kept = Vec::new();
        let walk = stage
            .fs
            .walk_inodes(&mut holdfast_core::InodeWalk::new(), |node| {
                kept.push(node.ino());
                Ok(Visit::Continue)
            });
        assert_eq!(walk, Ok(()));
        kept
    };
    let mut expected = vec![Ino::ROOT, before, asked];
    expected.sort();
    assert_eq!(kept(&stage), expected);
    // A second scan finds them in memory, and leaves them there.
    assert_eq!(scanned(&stage, |_| Ok(Visit::Continue)), all);
    assert_eq!(kept(&stage), expected);
}

/// I1, I2 for scans.
#[test]
fn a_scan_that_ended_early_goes_on_behind_where_it_stood() {
    for verdict in [Ok(Visit::Stop), Err(Errno::EINTR)] {
        for stage in Stage::each() {
            let all = made(&stage, 300);
            stage.fs.drop_caches().unwrap();
            assert_eq!(scanned(&stage, |_| verdict), all);
            let held = stage.fs.stats().inodes;
            assert_eq!(held, if stage.is_memory() { 301 } else { 1 });
        }
    }
}

/// The scan's `put` beside lookups, opens, evictions and other scans.
#[test]
fn scans_beside_users_and_evictions_lose_nothing() {
    for stage in Stage::each() {
        let all = made(&stage, 40);
        race(4, |thread| match thread {
            0 => assert_eq!(scanned(&stage, |_| Ok(Visit::Continue)), all),
            1 => drop(stage.fs.drop_caches().unwrap()),
            _ => {
                for number in 0..40 {
                    let file = stage.open(&format!("f{number}"));
                    stage.write(&file, 0, b"x");
                    assert_eq!(stage.fs.getattr(file.node()).nlink, 1);
                }
            }
        });
        in_threads(2, |thread| {
            for number in (thread..40).step_by(2) {
                stage.unlink(&format!("f{number}"));
            }
        });
        assert_eq!(scanned(&stage, |_| Ok(Visit::Continue)), [Ino::ROOT]);
        assert_eq!(stage.held(), super::stage::NOTHING);
    }
}
