//! What tests need to mount something.

use holdfast_core::{FileSystem, MemoryLimits, Options};
use holdfast_fuse::{Config, Session, TransportChoice, serve};
use std::{
    fs::{self, Permissions},
    os::unix::fs::PermissionsExt,
    path::Path,
    process::Command,
};

pub(crate) use holdfast_testkit::mount::{config, unmount};

/// Runs `test` on a mount of a new memory file system over each transport there is, with a
/// configuration that is changed before.
pub(crate) fn on_each_transport(
    change: impl Fn(&mut Config),
    test: impl Fn(&FileSystem, &Session, &Path),
) {
    for transport in [TransportChoice::Dev, TransportChoice::Uring] {
        let Some(mut config) = config(transport) else {
            continue;
        };
        change(&mut config);
        let core = FileSystem::memory(MemoryLimits::default(), Options::default());
        let dir = tempfile::tempdir().unwrap();
        fs::set_permissions(dir.path(), Permissions::from_mode(0o755)).unwrap();
        let session = serve::mount(&core, dir.path(), &config, None).unwrap();
        test(&core, &session, dir.path());
        unmount(&session);
        assert_eq!(core.stats().open_files, 0);
    }
}

/// Runs a script in Python on a path; returns what it prints.
pub(crate) fn python(script: &str, path: &Path) -> String {
    let mut python = Command::new("python3");
    let output = python.args(["-c", script]).arg(path).output().unwrap();
    let errors = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{errors}");
    String::from_utf8_lossy(&output.stdout).trim().to_owned()
}
