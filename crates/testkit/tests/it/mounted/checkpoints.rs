//! A checkpoint waits for the device, and no call in the mount waits for the checkpoint.

use super::{
    PATIENCE,
    world::{COLD_FILES, Mounted, content},
};
use holdfast_fuse::TransportChoice;
use holdfast_testkit::{device::HeldDevice, mount};
use std::{
    fs::{self, File, OpenOptions},
    io::Write as _,
    os::unix::fs::PermissionsExt as _,
    path::Path,
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
        mpsc,
    },
    thread,
};

/// What is done in the mount beside a call that is held, the n-th.
type Other = (&'static str, fn(&Path, u8));

const OTHERS: &[Other] = &[
    ("a create", |dir, n| {
        drop(File::create(dir.join(format!("work/new {n}"))).unwrap());
    }),
    ("a write", |dir, _| {
        let mut file = OpenOptions::new();
        let mut file = file.append(true).open(dir.join("work/written")).unwrap();
        file.write_all(&[7; 5000]).unwrap();
    }),
    ("a chmod", |dir, n| {
        let mode = fs::Permissions::from_mode(0o600 | (u32::from(n) % 8));
        fs::set_permissions(dir.join("work/known"), mode).unwrap();
    }),
    ("a cached read", |dir, _| {
        assert_eq!(fs::read(dir.join("work/known")).unwrap(), b"content");
    }),
    ("a cold read", |dir, n| {
        assert_eq!(fs::read(dir.join(format!("cold/{n}"))).unwrap(), content(n));
    }),
    ("a rename", |dir, n| {
        let name = format!("work/new {n}");
        fs::rename(dir.join(name), dir.join("work/moved")).unwrap();
    }),
    ("an unlink", |dir, _| {
        fs::remove_file(dir.join("work/moved")).unwrap();
    }),
    ("a listing", |dir, _| {
        assert!(fs::read_dir(dir.join("work")).unwrap().count() > 1);
    }),
];

/// Something of each kind that a checkpoint folds.
fn change(dir: &Path, n: u8) {
    fs::write(dir.join("work/known"), b"content").unwrap();
    fs::write(dir.join("work/written"), [n; 20_000]).unwrap();
    for number in 0..40 {
        let name = dir.join(format!("work/folded {number}"));
        fs::write(&name, [n; 300]).unwrap();
        if number % 3 == 0 {
            fs::remove_file(name).unwrap();
        }
    }
}

/// Makes a checkpoint and holds its n-th call of the device; `None`: it makes fewer. Else the first
/// of the others that waited for it.
fn waits_beside(
    mounted: &Mounted,
    device: &Arc<HeldDevice>,
    n: u8,
) -> Option<Option<&'static str>> {
    let over = Arc::new(AtomicBool::new(false));
    let folding = {
        let (store, device) = (Arc::clone(&mounted.store), Arc::clone(device));
        let over = Arc::clone(&over);
        thread::spawn(move || {
            device.hold_call_of(thread::current().id(), n.into());
            store.checkpoint().unwrap();
            device.release();
            over.store(true, Ordering::Release);
        })
    };
    let is_held = device.is_held(|| over.load(Ordering::Acquire), PATIENCE);
    let waits = is_held.then(|| {
        let (done, progress) = mpsc::channel();
        let dir = mounted.dir().to_owned();
        let working = thread::spawn(move || {
            for (_, other) in OTHERS {
                other(&dir, n);
                let _ = done.send(());
            }
        });
        let mut others = OTHERS.iter();
        let waits = others.find(|_| progress.recv_timeout(PATIENCE).is_err());
        assert!(waits.is_some() || !over.load(Ordering::Acquire));
        device.release();
        working.join().unwrap();
        waits.map(|(name, _)| *name)
    });
    folding.join().unwrap();
    waits
}

#[test]
fn others_in_the_mount_go_on_beside_each_call_of_a_checkpoint() {
    for transport in [TransportChoice::Dev, TransportChoice::Uring] {
        let Some(config) = mount::config(transport) else {
            continue;
        };
        let (mounted, device) = Mounted::new(&config, HeldDevice::new);
        let mut calls = 0;
        loop {
            change(mounted.dir(), calls);
            mounted.store.drop_nodes();
            match waits_beside(&mounted, &device, calls) {
                None => break,
                Some(None) => calls += 1,
                Some(Some(other)) => panic!("held in call {calls}: {other} waits for it"),
            }
            assert!(calls < COLD_FILES, "more calls than cold files");
        }
        assert!(calls > 4, "it made {calls} calls");
        mounted.end().unwrap();
    }
}
