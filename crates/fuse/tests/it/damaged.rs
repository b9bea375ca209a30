//! Listings through the kernel of a directory in which one inode cannot be read.

use crate::support;
use holdfast_core::{
    FileSystem, Options,
    types::{Caller, OpenFlags},
};
use holdfast_fuse::{TransportChoice, serve};
use holdfast_testkit::store::{Faults, FaultyStore, ModelStore};
use std::{fs, process::Command, sync::Arc};

#[test]
fn names_come_all_the_same_and_the_error_reaches_those_who_ask_for_the_inode() {
    for transport in [TransportChoice::Dev, TransportChoice::Uring] {
        let Some(config) = support::config(transport) else {
            continue;
        };
        let store = FaultyStore::new(Arc::new(ModelStore::new()), Faults::default());
        let core = FileSystem::new(store.clone(), Options::default()).unwrap();
        let (who, root) = (Caller::root(), core.root());
        let sub = core.mkdir(&who, &root, b"sub", 0o755).unwrap();
        for n in 0..300 {
            let name = format!("f{n}").into_bytes();
            drop(core.create(&who, &sub, &name, 0o600, OpenFlags::READ_WRITE));
        }
        let bad = core.lookup(&who, &sub, b"f150").unwrap().ino();
        drop(sub);
        core.sync().unwrap();
        core.drop_caches().unwrap();
        store.hook().damage(bad);
        let dir = tempfile::tempdir().unwrap();
        let session = serve::mount(&core, dir.path(), &config, None).unwrap();
        let sub = dir.path().join("sub");
        let ls = |options: &[&str]| {
            let output = Command::new("ls").args(options).arg(&sub).output().unwrap();
            let lines = String::from_utf8(output.stdout).unwrap().lines().count();
            (lines, output.status.success())
        };
        assert_eq!(ls(&["-1U"]), (300, true), "names alone take no inode");
        let (lines, succeeded) = ls(&["-lU"]);
        assert!(!succeeded, "nobody was told of the error");
        // With the line of the total, and one of question marks.
        assert_eq!(lines, 301);
        let error = fs::metadata(sub.join("f150")).unwrap_err();
        assert_eq!(error.raw_os_error(), Some(libc::EIO));
        let removed = Command::new("rm").arg("-rf").arg(&sub).output().unwrap();
        assert!(!removed.status.success());
        assert_eq!(ls(&["-1U"]), (1, true), "the others can be removed");
        // Once it can be read, it goes like any other.
        store.hook().heal();
        fs::remove_dir_all(&sub).unwrap();
        support::unmount(&session);
    }
}
