use super::*;
use crate::Caller;
use crate::copy::tests::superuser;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

fn tree() -> FileSystem {
    let fs = superuser();
    fs.create_dir_all("/tree/a/b").unwrap();
    fs.create_dir("/tree/locked").unwrap();
    for path in [
        "/tree/one",
        "/tree/a/two",
        "/tree/a/b/three",
        "/tree/locked/kept",
    ] {
        fs.write(path, "x").unwrap();
    }
    fs.write("/outside", "kept").unwrap();
    fs.symlink("/outside", "/tree/a/link").unwrap();
    fs.symlink("..", "/tree/a/up").unwrap();
    fs
}

#[test]
fn a_tree_goes_and_what_links_lead_to_stays() {
    let fs = tree();
    let removed = fs
        .remove_tree("/tree", &ChangeOptions::default(), &mut |_| ())
        .unwrap();
    assert_eq!(
        removed,
        Changed {
            names: 10,
            failed: 0
        }
    );
    assert!(!fs.exists("/tree") && fs.exists("/outside"));
    let missing = fs.remove_tree("/tree", &ChangeOptions::default(), &mut |_| ());
    assert_eq!(
        missing.unwrap_err().error.kind(),
        std::io::ErrorKind::NotFound
    );
    let root = fs.remove_tree("/", &ChangeOptions::default(), &mut |_| ());
    assert!(root.is_ok_and(|changed| changed.failed == 1) && !fs.exists("/outside"));
}

#[test]
fn what_may_not_go_is_told_and_the_rest_goes() {
    let root = tree();
    for path in ["/tree", "/tree/a", "/tree/a/b"] {
        root.chown(path, Some(1000), None).unwrap();
    }
    root.chown("/", Some(1000), None).unwrap();
    let fs = root.as_user(Caller::user(1000, 1000));
    let mut failed = Vec::new();
    let removed = fs.remove_tree("/tree", &ChangeOptions::default(), &mut |event| {
        if let ChangeEvent::Failed(error) = event {
            failed.push(error.to_string());
        }
    });
    assert_eq!(removed.unwrap().failed, 3);
    assert!(failed[0].starts_with("/tree/locked/kept: "), "{failed:?}");
    assert!(root.exists("/tree/locked/kept") && !root.exists("/tree/a"));
}

#[test]
fn owners_and_modes_change_of_all_but_what_links_lead_to() {
    let fs = tree();
    let options = ChangeOptions::default();
    fs.set_owner_tree("/tree", Some(5), None, &options, &mut |_| ())
        .unwrap();
    let mode: ModeChange = "g-rwx,o=,u+X".parse().unwrap();
    let changed = fs
        .set_mode_tree("/tree", &mode, &options, &mut |_| ())
        .unwrap();
    assert_eq!(
        changed,
        Changed {
            names: 10,
            failed: 0
        }
    );
    for (path, mode) in [
        ("/tree", 0o700),
        ("/tree/a/b", 0o700),
        ("/tree/a/b/three", 0o600),
    ] {
        let meta = fs.metadata(path).unwrap();
        assert_eq!(
            (meta.uid(), meta.gid(), meta.mode() & 0o7777),
            (5, 0, mode),
            "{path}"
        );
    }
    assert_eq!(fs.symlink_metadata("/tree/a/link").unwrap().uid(), 5);
    let outside = fs.metadata("/outside").unwrap();
    assert_eq!((outside.uid(), outside.mode() & 0o7777), (0, 0o644));
}

#[test]
fn a_stop_ends_it() {
    let fs = tree();
    let stop = Arc::new(AtomicBool::new(false));
    let options = ChangeOptions {
        stop: Some(Arc::clone(&stop)),
    };
    let stopped = fs.remove_tree("/tree", &options, &mut |_| {
        stop.store(true, Ordering::Relaxed)
    });
    let error = stopped.unwrap_err().error;
    assert_eq!(
        error.raw_os_error(),
        Some(crate::types::Errno::ECANCELED.raw())
    );
    assert!(fs.exists("/tree"));
}

/// The results are those of chmod(1) of coreutils.
#[test]
fn modes_are_those_of_chmod() {
    for (text, before, is_dir, after) in [
        ("755", 0o644, false, 0o755),
        ("755", 0o6644, true, 0o6755),
        ("00755", 0o6644, true, 0o755),
        ("4755", 0o644, false, 0o4755),
        ("+x", 0o644, false, 0o755),
        ("+w", 0o444, false, 0o644),
        ("a+w", 0o444, false, 0o666),
        ("u=rwx,go=u-w", 0o600, false, 0o755),
        ("g=u", 0o640, false, 0o660),
        ("o=g", 0o640, false, 0o644),
        ("a=rX", 0o600, false, 0o444),
        ("a=rX", 0o600, true, 0o555),
        ("u+s,g+s", 0o755, false, 0o6755),
        ("+t", 0o777, true, 0o1777),
        ("u-s", 0o4755, false, 0o755),
        ("g=", 0o2775, true, 0o2705),
        ("g=", 0o2775, false, 0o705),
        ("=", 0o755, false, 0),
        ("=w", 0o444, false, 0o200),
        ("ug+rw-x", 0o711, false, 0o661),
    ] {
        let change: ModeChange = text.parse().unwrap();
        let found = change
            .apply(Permissions::from_mode(before), is_dir, 0o022)
            .mode();
        assert_eq!(found & 0o7777, after, "{text} of {before:o}: {found:o}");
    }
    for text in ["", "8", "77777", "u", "x+r", "u+q", "u+r,", "+ug", "-1x"] {
        assert!(text.parse::<ModeChange>().is_err(), "{text}");
    }
}
