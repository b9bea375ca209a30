//! Which changes survive the end of a daemon, and a power cut.

use crate::fixture::{Foreground, Place, Store, holdfast, wait_until};
use holdfast::engine::{FileSystem, Options, types::Caller};
use holdfast_device::{Access, BlockDevice, FileDevice, MemoryDevice};
use holdfast_volume::{OpenOptions, VolumeStore};
use rustix::process::Signal;
use std::{
    fs, iter,
    os::unix::process::ExitStatusExt,
    process::ExitStatus,
    sync::Arc,
    time::{Duration, Instant},
};

/// Files made just before the end.
const FILES: u32 = 200;

fn content(number: u32) -> String {
    format!("{number} ").repeat(number as usize * 31 % 3000)
}

fn fill(place: &Place) {
    for number in 0..FILES {
        fs::write(place.path(&format!("mnt/{number}")), content(number)).unwrap();
    }
}

fn status(mut daemon: Foreground) -> ExitStatus {
    let mut status = None;
    wait_until("the daemon ends", || {
        status = daemon.child.try_wait().expect("a child");
        status.is_some()
    });
    status.expect("it has ended")
}

/// All files exist after the next mount, with inode numbers that fit 32-bit programs.
fn assert_all_there(place: &Place, what: &str) {
    use std::os::unix::fs::MetadataExt;
    if place.is_mounted() {
        crate::fixture::umount(&place.mnt()).ok();
    }
    place.check();
    place.mount(&[]);
    for number in 0..FILES {
        let path = place.path(&format!("mnt/{number}"));
        assert_eq!(
            fs::read_to_string(&path).unwrap(),
            content(number),
            "{what}"
        );
        let ino = fs::metadata(&path).unwrap().ino();
        assert!(u32::try_from(ino).is_ok(), "{ino}: {what}");
        fs::remove_file(&path).unwrap();
    }
    place.umount();
}

#[test]
fn a_signal_that_ends_the_daemon_loses_nothing() {
    let Some(place) = Place::over(Store::Volume) else {
        return;
    };
    for signal in [
        Signal::QUIT,
        Signal::ABORT,
        Signal::USR1,
        Signal::ALARM,
        Signal::IO,
    ] {
        // Within the first second nothing is flushed or written in the background.
        let daemon = place.foreground(&["-o", "commit=3600"]);
        fill(&place);
        daemon.signal(signal);
        let status = status(daemon);
        let number = signal.as_raw();
        let ended = status.signal() == Some(number) || status.code() == Some(128 + number);
        assert!(ended, "{status}: {signal:?}");
        assert_all_there(&place, &format!("{signal:?}"));
    }
}

#[test]
fn the_third_signal_to_a_busy_mount_loses_nothing() {
    let Some(place) = Place::over(Store::Volume) else {
        return;
    };
    let daemon = place.foreground(&["-o", "commit=3600"]);
    let held = fs::File::create(place.path("mnt/held")).unwrap();
    daemon.signal(Signal::TERM);
    wait_until("the holder is named", || place.errors().contains("in use"));
    let folder = fs::File::open(place.path("mnt")).unwrap();
    daemon.signal(Signal::TERM);
    wait_until("the mount is detached", || !place.is_mounted());
    // Its users continue.
    for number in 0..FILES {
        use rustix::fs::{Mode, OFlags, openat};
        let flags = OFlags::CREATE | OFlags::WRONLY;
        let file = openat(&folder, number.to_string(), flags, Mode::from(0o644)).unwrap();
        rustix::io::write(&file, content(number).as_bytes()).unwrap();
    }
    daemon.signal(Signal::TERM);
    assert_eq!(status(daemon).code(), Some(1));
    drop((held, folder));
    assert_all_there(&place, "three times SIGTERM");
}

#[test]
fn signals_that_are_no_end_leave_the_daemon_alone() {
    let Some(place) = Place::over(Store::Volume) else {
        return;
    };
    let daemon = place.foreground(&[]);
    for signal in [Signal::HUP, Signal::XFSZ, Signal::XCPU] {
        daemon.signal(signal);
        fill(&place);
    }
    place.umount();
    assert_eq!(daemon.end(), Some(0), "{}", place.errors());
    assert_all_there(&place, "after signals that are ignored");
}

/// Files that are made one after another.
const TWO: [&str; 5] = ["two-a", "two-b", "two-c", "two-d", "two-e"];

/// The names in a volume after the end of a process, or after a power cut that lost nothing of the
/// host's cache.
fn names_after(place: &Place, power_cut: bool) -> Vec<String> {
    let image = fs::read(place.source()).unwrap();
    let device: Arc<dyn BlockDevice> = if power_cut {
        // The copy has never been in this host's cache.
        let device = MemoryDevice::new(image.len() as u64).with_cache_identity(Some(1));
        device.write(0, &image).unwrap();
        Arc::new(device)
    } else {
        let copy = place.path("copy.hf");
        fs::write(&copy, &image).unwrap();
        Arc::new(FileDevice::open(&copy, Access::ReadWrite).unwrap())
    };
    let store = VolumeStore::open(device, &OpenOptions::DEFAULT).unwrap();
    let fs = FileSystem::new(Arc::new(store), Options::default()).unwrap();
    let (who, root) = (Caller::root(), fs.root());
    let names = iter::once("one").chain(TWO);
    let is_there = |name: &&str| fs.lookup(&who, &root, name.as_bytes()).is_ok();
    names.filter(is_there).map(str::to_owned).collect()
}

#[test]
fn changes_are_written_within_a_second_and_flushed_as_late_as_commit_says() {
    let Some(place) = Place::over(Store::Volume) else {
        return;
    };
    place.mount(&["-o", "commit=3600"]);
    let info = place.info();
    assert_eq!(info["flushed_within_seconds"], 3600);
    let is_written = info["written_within_seconds"] == 1;
    fs::write(place.path("mnt/one"), "1").unwrap();
    if is_written {
        wait_until("it is written", || names_after(&place, false) == ["one"]);
    }
    assert!(names_after(&place, true).is_empty());
    place.umount();
    assert_eq!(names_after(&place, true), ["one"]);

    place.mount(&["-o", "commit=1"]);
    let shown = holdfast(["info", &place.mnt()]).ok();
    assert!(shown.contains("flushed within 1 s"), "{shown}");
    // One of five runs must pass: other load on the machine may delay it.
    let is_in_time = TWO.into_iter().any(|name| {
        let begun = Instant::now();
        fs::write(place.path("mnt").join(name), "2").unwrap();
        wait_until("it is flushed", || {
            names_after(&place, true).contains(&name.to_owned())
        });
        begun.elapsed() < Duration::from_secs(4)
    });
    assert!(is_in_time);
    place.umount();
}
