//! What the kernel holds of a mount pins nothing: its inodes leave memory, and are there whenever
//! they are asked for.

use super::PATIENCE;
use holdfast_core::{
    FileSystem, Options,
    types::{Errno, Ino},
};
use holdfast_fuse::{TransportChoice, serve};
use holdfast_testkit::{memory::within, mount, store::ModelStore};
use rustix::fs::{Mode, OFlags};
use std::{
    collections::BTreeMap,
    fs::{self, File},
    io::{Read as _, Seek as _, Write as _},
    os::{fd::OwnedFd, unix::fs::MetadataExt as _},
    path::{Path, PathBuf},
    sync::Arc,
    thread,
    time::{Duration, Instant},
};

const DIRECTORIES: u64 = 100;
const FILES: u64 = 20_000;
/// Files that a program holds by what pins them in the kernel, without opening them.
const PINNED: usize = 200;

fn path(dir: &Path, file: u64) -> PathBuf {
    dir.join(format!("{}/{file}", file % DIRECTORIES))
}

fn content(file: u64) -> Vec<u8> {
    format!("content of {file}").into_bytes()
}

fn make(dir: &Path) {
    for number in 0..DIRECTORIES {
        fs::create_dir(dir.join(number.to_string())).unwrap();
    }
    for file in 0..FILES {
        fs::write(path(dir, file), content(file)).unwrap();
    }
}

fn pin(path: &Path) -> OwnedFd {
    let flags = OFlags::PATH | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    rustix::fs::open(path, flags, Mode::empty()).unwrap()
}

fn known(core: &FileSystem) -> BTreeMap<Ino, u64> {
    let mut known = BTreeMap::new();
    core.each_known_by_number(|ino, uses| {
        known.insert(ino, uses);
    });
    known
}

fn wait_until_gone(core: &FileSystem, ino: Ino) {
    let until = Instant::now() + PATIENCE;
    while core.node(ino).map(|node| node.ino()) != Err(Errno::ESTALE) {
        assert!(Instant::now() < until, "{ino:?} is still there");
        thread::sleep(Duration::from_millis(5));
    }
}

#[test]
fn a_walk_through_a_mount_leaves_few_inodes_in_memory_and_all_are_there() {
    for transport in [TransportChoice::Dev, TransportChoice::Uring] {
        let Some(config) = mount::config(transport) else {
            continue;
        };
        let store = Arc::new(ModelStore::new());
        let core = within(store, Options::default(), Some(1 << 20)).unwrap();
        let place = tempfile::tempdir().unwrap();
        let dir = place.path();
        let session = serve::mount(&core, dir, &config, None).unwrap();
        make(dir);
        let pins: Vec<(u64, OwnedFd)> = (0..FILES)
            .step_by(FILES as usize / PINNED)
            .map(|file| (file, pin(&path(dir, file))))
            .collect();
        for file in 0..FILES {
            assert_eq!(fs::metadata(path(dir, file)).unwrap().nlink(), 1);
        }
        // 1 MiB, by 136 bytes an inode and 64 a name.
        let inodes = core.stats().inodes;
        assert!(inodes < 6_000, "{inodes} inodes in memory");
        core.drop_caches().unwrap();
        let known = known(&core);
        for (file, pin) in &pins {
            let stat = rustix::fs::fstat(pin).unwrap();
            assert!(known.contains_key(&Ino(stat.st_ino)), "file {file}");
        }
        for file in 0..FILES {
            assert_eq!(fs::read(path(dir, file)).unwrap(), content(file));
        }
        unlinked(&core, dir);
        drop(pins);
        mount::unmount(&session);
        session.wait();
        assert_eq!(session.failure(), None);
        drop(session);
        let mut left = Vec::new();
        core.each_known_by_number(|ino, uses| left.extend((uses > 0).then_some(ino)));
        assert_eq!(left, [], "given back with the mount");
        assert_eq!(core.stats().inodes_away, 0);
    }
}

/// Files without a name live as long as the kernel knows them, opened or not.
fn unlinked(core: &FileSystem, dir: &Path) {
    let opened = path(dir, 1);
    let mut file = File::options()
        .read(true)
        .write(true)
        .open(&opened)
        .unwrap();
    let (held, pinned) = (path(dir, 2), pin(&path(dir, 2)));
    let inodes = [&opened, &held].map(|path| Ino(fs::metadata(path).unwrap().ino()));
    core.drop_caches().unwrap();
    fs::remove_file(&opened).unwrap();
    fs::remove_file(&held).unwrap();
    core.drop_caches().unwrap();
    file.write_all(b"CONTENT").unwrap();
    file.rewind().unwrap();
    core.drop_caches().unwrap();
    let mut read = String::new();
    file.read_to_string(&mut read).unwrap();
    assert_eq!(read, "CONTENT of 1");
    assert_eq!(file.metadata().unwrap().nlink(), 0);
    assert_eq!(rustix::fs::fstat(&pinned).unwrap().st_nlink, 0);
    assert!(inodes.iter().all(|ino| core.node(*ino).is_ok()));
    drop((file, pinned));
    inodes.iter().for_each(|ino| wait_until_gone(core, *ino));
}
