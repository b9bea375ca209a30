//! A device below a mounted volume panics: calls that need it end with an error, none hangs, and
//! the volume says what happened.

use super::{
    within_patience,
    world::{Mounted, content},
};
use holdfast_fuse::TransportChoice;
use holdfast_testkit::{
    device::{DeviceCall, DeviceFault, Effect, FaultyDevice},
    mount,
};
use std::{
    fs::{self, File},
    io::{self, Write as _},
    path::{Path, PathBuf},
    thread,
};

/// Threads that write and sync at the same time.
const WRITERS: usize = 8;

fn each_transport(try_it: impl Fn(&Mounted, &FaultyDevice)) {
    for transport in [TransportChoice::Dev, TransportChoice::Uring] {
        let Some(config) = mount::config(transport) else {
            continue;
        };
        let (mounted, device) = Mounted::new(&config, FaultyDevice::new);
        try_it(&mounted, &device);
        let failed = mounted.store.failure_reason().is_some();
        device.heal();
        let ended = within_patience(|| mounted.end()).expect("the unmounting hangs");
        assert_eq!(ended.is_err(), failed, "{ended:?}");
    }
}

fn panic_at(call: DeviceCall, times: Option<u64>) -> DeviceFault {
    DeviceFault {
        call: Some(call),
        after: 0,
        times,
        effect: Effect::Panic,
    }
}

/// Writes and syncs files until something is refused.
fn write_until_refused(dir: &Path, writer: usize) -> io::Error {
    let write = |number: usize| -> io::Result<()> {
        let mut file = File::create(dir.join(format!("work/{writer} {number}")))?;
        file.write_all(&[9; 10_000])?;
        file.sync_all()
    };
    (0..)
        .find_map(|number| write(number).err())
        .expect("no end")
}

#[test]
fn all_who_write_are_told_that_a_commit_panicked_and_nobody_hangs() {
    for call in [DeviceCall::Write, DeviceCall::Flush] {
        each_transport(|mounted, device| {
            let dir = mounted.dir().to_owned();
            fs::write(mounted.path("work/before"), b"content").unwrap();
            device.plan(panic_at(call, Some(1)));
            let refused = within_patience(move || {
                let dir = &dir;
                thread::scope(|scope| {
                    let writing = |writer| scope.spawn(move || write_until_refused(dir, writer));
                    let writers: Vec<_> = (0..WRITERS).map(writing).collect();
                    let refused = writers.into_iter().map(|writer| writer.join().unwrap());
                    refused.collect::<Vec<_>>()
                })
            });
            for error in refused.unwrap_or_else(|| panic!("{call:?}: a writer hangs")) {
                let number = error.raw_os_error();
                assert!(matches!(number, Some(libc::EIO | libc::EROFS)), "{error}");
            }
            let reason = mounted.store.failure_reason().expect("it has failed");
            assert!(reason.contains("panic"), "{reason}");
            // It can be read, and tells its space.
            let cold = mounted.path("cold/3");
            let read = within_patience(move || fs::read(cold)).expect("a read hangs");
            assert_eq!(read.unwrap(), content(3));
            let before = mounted.path("work/before");
            let read = within_patience(move || fs::read(before)).expect("a read hangs");
            assert_eq!(read.unwrap(), b"content");
            rustix::fs::statvfs(mounted.dir()).unwrap();
        });
    }
}

#[test]
fn a_read_that_panics_is_an_error_to_its_caller_alone() {
    each_transport(|mounted, device| {
        // Its directory and attributes are known.
        let known: Vec<PathBuf> = (0..4).map(|n| mounted.path(&format!("cold/{n}"))).collect();
        for path in &known {
            fs::metadata(path).unwrap();
        }
        device.plan(panic_at(DeviceCall::Read, None));
        for path in &known {
            let path = path.clone();
            let read = within_patience(move || fs::read(path)).expect("a read hangs");
            assert_eq!(read.unwrap_err().raw_os_error(), Some(libc::EIO));
        }
        assert!(device.struck() > 0);
        device.heal();
        // The threads that unwound hold nothing.
        for (number, path) in (0..).zip(&known) {
            let (path, dir) = (path.clone(), mounted.dir().to_owned());
            let read = within_patience(move || fs::read(path)).expect("a read hangs");
            assert_eq!(read.unwrap(), content(number));
            let write = move || {
                let mut file = File::create(dir.join(format!("cold/{number}")))?;
                file.write_all(b"anew")?;
                file.sync_all()
            };
            within_patience(write).expect("a write hangs").unwrap();
        }
        assert_eq!(mounted.store.failure_reason(), None);
    });
}
