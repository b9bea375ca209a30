//! Space reserved by fallocate(2) in a mount that is full otherwise.

use crate::fixture::{Place, Store};
use holdfast_testkit::skip::{skipped, skipped_by_kernel};
use rustix::fs::{FallocateFlags, fallocate};
use rustix::process::{Pid, Signal, kill_process};
use std::fs::{self, File};
use std::io::ErrorKind;
use std::os::unix::fs::FileExt;
use std::process::Command;

const ROOM: u64 = 3 << 20;

fn open(place: &Place, name: &str) -> File {
    let mut options = File::options();
    let options = options.read(true).write(true).create(true).truncate(false);
    options.open(place.path("mnt").join(name)).unwrap()
}

fn promise(place: &Place, name: &str) -> File {
    let file = open(place, name);
    fallocate(&file, FallocateFlags::KEEP_SIZE, 0, ROOM).unwrap();
    file
}

/// Allocates all free space.
fn fill(place: &Place) {
    let file = open(place, "filler");
    let mut at = file.metadata().unwrap().len();
    for size in [1 << 20, 4096, 1] {
        let data = vec![7; size];
        loop {
            match file.write_at(&data, at) {
                Ok(written) => at += written as u64,
                Err(error) => break assert_eq!(error.kind(), ErrorKind::StorageFull),
            }
        }
    }
    // Some space is freed only when dirty data is written.
    let _ = file.sync_all();
}

/// Writes all pages of a file through a mapping.
fn write_mapped(place: &Place, name: &str) {
    let script = "import mmap, sys
f = open(sys.argv[1], 'r+b')
m = mmap.mmap(f.fileno(), 0)
for at in range(0, len(m), 4096):
    m[at:at + 4] = b'page'
m.flush()
";
    let command = Command::new("python3")
        .args(["-c", script])
        .arg(place.path("mnt").join(name))
        .status();
    match command {
        Err(error) if error.kind() == ErrorKind::NotFound => skipped("no python3"),
        status => assert!(status.unwrap().success()),
    }
}

fn test(place: &Place, mount: &dyn Fn(&Place)) {
    mount(place);
    let files = ["large", "pages", "few", "mapped"].map(|name| promise(place, name));
    let later = promise(place, "later");
    later.sync_all().unwrap();
    fill(place);
    let [large, pages, few, mapped] = files;
    mapped.set_len(ROOM).unwrap();
    write_mapped(place, "mapped");
    mapped.sync_all().unwrap();
    for at in (0..ROOM).step_by(256 << 10) {
        large.write_all_at(&[1; 256 << 10], at).unwrap();
    }
    for at in (0..ROOM).step_by(8192).take(100) {
        pages.write_all_at(&[2; 4096], at).unwrap();
    }
    for at in (0..10_000).step_by(100) {
        few.write_all_at(&[3; 100], at).unwrap();
    }
    for file in [&large, &pages, &few] {
        file.set_modified(std::time::SystemTime::now()).unwrap();
        file.sync_all().unwrap();
    }
    // The file is overwritten, truncated and extended again.
    large.write_all_at(&[4; 1 << 20], 1000).unwrap();
    large.set_len(ROOM - 5000).unwrap();
    later.set_len(ROOM).unwrap();
    later.sync_all().unwrap();
    few.sync_all().unwrap();
    drop((large, pages, few, mapped, later));
    let daemon = Pid::from_raw(place.daemon()).unwrap();
    kill_process(daemon, Signal::KILL).unwrap();
    place.umount();
    mount(place);
    fill(place);
    open(place, "later")
        .write_all_at(&vec![5; ROOM as usize], 0)
        .unwrap();
    let found = fs::read(place.path("mnt/later")).unwrap();
    assert!(found.len() as u64 == ROOM && found.iter().all(|byte| *byte == 5));
    let found = fs::read(place.path("mnt/few")).unwrap();
    assert_eq!(found, [3; 10_000]);
    for name in ["filler", "large", "later"] {
        fs::remove_file(place.path("mnt").join(name)).unwrap();
    }
    place.umount();
    place.check();
}

#[test]
fn promised_room_is_written_in_a_full_mount() {
    for transport in ["dev", "uring"] {
        let Some(place) = Place::over(Store::Volume) else {
            return;
        };
        let enabled = fs::read_to_string("/sys/module/fuse/parameters/enable_uring");
        if transport == "uring" && !enabled.is_ok_and(|value| value.trim() == "Y") {
            skipped_by_kernel("enable_uring of the fuse module is not Y");
            return;
        }
        test(&place, &|place| {
            place.mount(&["--transport", transport]);
        });
    }
}
