//! A failed commit is reported to every caller that it concerns, and records nothing that was not
//! written.

mod stage;

use holdfast_types::{Errno, OpenFlags};
use stage::{FILES, Fault, GROWN, Stage, bytes_of, name_of};
use std::sync::Barrier;
use std::thread;
use std::time::{Duration, Instant};

const FAULTS: [Fault; 4] = [
    Fault::Error(Errno::EIO),
    Fault::Error(Errno::ENOSPC),
    Fault::Torn,
    Fault::Panic,
];

/// Waits until the device has failed, with a limit.
fn until(what: &str, mut is_so: impl FnMut() -> bool) {
    let end = Instant::now() + Duration::from_secs(60);
    while !is_so() {
        assert!(Instant::now() < end, "{what}: it did not come to that");
        thread::sleep(Duration::from_millis(1));
    }
}

/// Each synced file is there after a crash, and none has bytes of another file.
fn assert_kept(stage: Stage, told: &[Result<(), Errno>], what: &str) {
    let after = stage.crash();
    for (number, told) in told.iter().enumerate() {
        let found = after.read(&name_of(number));
        if told.is_ok() {
            assert!(
                found.as_deref() == Some(&bytes_of(number)[..]),
                "{what}: file {number} was promised, and is lost"
            );
        }
        let own = [0, bytes_of(number)[0]];
        let foreign = found.iter().flatten().find(|byte| !own.contains(byte));
        assert_eq!(foreign, None, "{what}: file {number} has another's bytes");
    }
}

#[test]
fn every_waiting_fsync_hears_of_a_failed_data_write() {
    for fault in FAULTS {
        let what = format!("{fault:?}");
        let stage = Stage::new(None);
        let files = stage.written(FILES);
        stage.device.arm(fault);
        let told: Vec<_> = thread::scope(|scope| {
            let stage = &stage;
            let fsync = |file| scope.spawn(move || stage.fsync(file));
            let mut calls = vec![fsync(&files[0])];
            until("a write", || stage.device.is_held());
            calls.extend(files[1..].iter().map(fsync));
            // Whether they wait for the lock or come later makes no difference.
            thread::sleep(Duration::from_millis(50));
            stage.device.release();
            let calls = calls.into_iter().map(|call| call.join());
            calls.map(|call| call.unwrap_or(Err(Errno::EIO))).collect()
        });
        assert!(told.iter().all(Result::is_err), "{what}: {told:?}");
        assert_eq!(stage.write_again(&files[0]), Err(Errno::EROFS), "{what}");
        drop(files);
        assert_kept(stage, &told, &what);
    }
}

#[test]
fn an_fsync_hears_of_the_volumes_own_commit_that_failed() {
    for fault in FAULTS {
        let what = format!("the timer's, {fault:?}");
        let stage = Stage::new(Some(Duration::from_millis(100)));
        stage.device.arm(fault);
        let files = stage.written(FILES);
        until("a write", || stage.device.is_held());
        let told: Vec<_> = thread::scope(|scope| {
            let calls: Vec<_> = files
                .iter()
                .map(|file| scope.spawn(|| stage.fsync(file)))
                .collect();
            thread::sleep(Duration::from_millis(50));
            stage.device.release();
            calls.into_iter().map(|call| call.join().unwrap()).collect()
        });
        assert!(told.iter().all(Result::is_err), "{what}: {told:?}");
        drop(files);
        assert_kept(stage, &told, &what);
    }
}

#[test]
fn a_checkpoint_behind_a_failed_commit_shows_no_bytes_of_another_file() {
    for fault in FAULTS {
        let what = format!("a checkpoint, {fault:?}");
        let stage = Stage::new(None);
        stage.leave_bytes_behind();
        let files = stage.written(FILES);
        stage.device.arm(fault);
        let (first, other) = thread::scope(|scope| {
            let first = scope.spawn(|| stage.fsync(&files[0]));
            until("a write", || stage.device.is_held());
            let other = scope.spawn(|| stage.store.checkpoint().is_ok());
            thread::sleep(Duration::from_millis(50));
            stage.device.release();
            (
                first.join().unwrap_or(Err(Errno::EIO)),
                other.join().unwrap(),
            )
        });
        assert!(first.is_err() && !other, "{what}");
        let told = vec![first; FILES];
        drop(files);
        assert_kept(stage, &told, &what);
    }
}

#[test]
fn a_commit_that_finds_no_room_loses_nothing_that_was_promised() {
    for round in 0..10 {
        let what = format!("no room, round {round}");
        let stage = Stage::new(None);
        stage.leave_bytes_behind();
        let files = stage.written_few(200);
        stage.fill();
        let grown: Vec<_> = files.iter().map(|file| stage.grow(file)).collect();
        let start = Barrier::new(FILES + 1);
        let told: Vec<_> = thread::scope(|scope| {
            let (stage, start) = (&stage, &start);
            let fsync = |file| {
                scope.spawn(move || {
                    start.wait();
                    stage.fsync(file)
                })
            };
            let calls: Vec<_> = files[..FILES].iter().map(fsync).collect();
            start.wait();
            let _ = stage.store.checkpoint();
            calls.into_iter().map(|call| call.join().unwrap()).collect()
        });
        drop(files);
        let after = stage.crash();
        for (number, told) in told.iter().enumerate() {
            let found = after.read(&name_of(number)).unwrap_or_default();
            let own = bytes_of(number)[0];
            assert!(
                found.iter().all(|byte| *byte == own || *byte == 0),
                "{what}: file {number} has another's bytes"
            );
            let promised = told.is_ok() && grown[number].is_ok();
            assert!(
                !promised || (found.len() == GROWN && found.iter().all(|byte| *byte == own)),
                "{what}: file {number} was promised, and is lost"
            );
        }
    }
}

#[test]
fn each_open_file_hears_of_the_failure_once_and_a_later_one_does_not() {
    let stage = Stage::new(None);
    let files = stage.written(3);
    let flags = OpenFlags::empty();
    let reader = stage.open(&name_of(0), flags).unwrap();
    stage.device.arm(Fault::Error(Errno::ENOSPC));
    stage.device.release();
    assert_eq!(stage.fsync(&files[0]), Err(Errno::ENOSPC), "the reason");
    assert_eq!(stage.fs.flush(&files[0]), Ok(()), "it was told");
    assert_eq!(stage.fsync(&files[0]), Err(Errno::EIO), "never a success");
    assert_eq!(
        stage.fs.flush(&files[1]),
        Err(Errno::ENOSPC),
        "at its close"
    );
    assert_eq!(stage.fs.flush(&files[1]), Ok(()), "once");
    assert_eq!(stage.fsync(&files[2]), Err(Errno::ENOSPC));
    assert_eq!(stage.fs.flush(&reader), Ok(()), "it wrote nothing");
    assert_eq!(stage.fsync(&reader), Err(Errno::ENOSPC));
    let late = stage.open(&name_of(0), flags).unwrap();
    assert_eq!(stage.fs.flush(&late), Ok(()));
    assert_eq!(stage.fsync(&late), Err(Errno::EIO), "it was opened later");
    assert_eq!(stage.write_again(&files[1]), Err(Errno::EROFS));
    assert_eq!(
        stage
            .open("new", OpenFlags::CREATE | OpenFlags::READ_WRITE)
            .err(),
        Some(Errno::EROFS)
    );
}
