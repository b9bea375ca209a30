//! Content changes by an ordinary user of programs with set-id bits.

use crate::support::on_each_transport;
use std::{
    fs::{self, Permissions},
    os::unix::fs::{MetadataExt, PermissionsExt},
    path::Path,
    process::Command,
};

/// What an ordinary user prints by a shell command there.
fn as_user(dir: &Path, script: &str) -> String {
    let output = Command::new("setpriv")
        .args(["--reuid=65534", "--regid=65534", "--clear-groups"])
        .args(["sh", "-ec", script])
        .current_dir(dir)
        .output()
        .unwrap();
    let errors = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{script}: {errors}");
    String::from_utf8(output.stdout).unwrap().trim().to_owned()
}

/// Ways to change the content of the file `p`.
const CHANGES: [(&str, &str); 6] = [
    (
        "write",
        "printf x | dd of=p conv=notrunc oflag=append status=none",
    ),
    ("overwrite", "dd if=id of=p conv=notrunc status=none"),
    ("open with O_TRUNC", "cat id > p"),
    ("truncate", "truncate -s +1 p"),
    ("fallocate", "fallocate -o 1M -l 4096 p"),
    (
        "copy_file_range",
        "python3 -c 'import os
a = os.open(\"id\", os.O_RDONLY); b = os.open(\"p\", os.O_WRONLY)
assert os.copy_file_range(a, b, 4096, 0, 0) == 4096'",
    ),
];

#[test]
fn a_program_that_a_user_changed_does_not_run_as_its_owner() {
    on_each_transport(
        |_| (),
        |_, _, dir| {
            let (program, lent) = (dir.join("p"), Permissions::from_mode(0o6777));
            let id = fs::read("/usr/bin/id").unwrap();
            fs::write(dir.join("id"), &id).unwrap();
            fs::set_permissions(dir.join("id"), Permissions::from_mode(0o755)).unwrap();
            for (what, change) in CHANGES {
                fs::write(&program, &id).unwrap();
                fs::set_permissions(&program, lent.clone()).unwrap();
                // Run before, so that the kernel has all that it will ever hold of it.
                let before = as_user(dir, "./p -u; ./p -g");
                assert_eq!(before, "0\n0", "{what}");
                let after = as_user(dir, &format!("{change}; ./p -u; ./p -g"));
                assert_eq!(after, "65534\n65534", "{what}");
            }
        },
    );
}

#[test]
fn set_group_id_goes_with_an_acl_that_a_stranger_to_the_group_removes() {
    on_each_transport(
        |_| (),
        |_, _, dir| {
            let file = dir.join("p");
            fs::write(&file, b"x").unwrap();
            let remove =
                "python3 -c 'import os; os.removexattr(\"p\", \"system.posix_acl_access\")'";
            for (group, left) in [(0, 0o755), (65534, 0o2755)] {
                std::os::unix::fs::chown(&file, Some(65534), Some(group)).unwrap();
                fs::set_permissions(&file, Permissions::from_mode(0o2755)).unwrap();
                as_user(dir, remove);
                let mode = fs::metadata(&file).unwrap().permissions().mode() & 0o7777;
                assert_eq!(mode, left, "group {group}: {mode:o}");
            }
        },
    );
}

#[test]
fn a_change_of_owner_to_nobody_takes_set_id_bits_and_moves_the_time_of_change() {
    on_each_transport(
        |_| (),
        |_, _, dir| {
            let file = dir.join("p");
            for (before, after) in [(0o4755, 0o755), (0o6755, 0o755), (0o644, 0o644)] {
                fs::write(&file, b"x").unwrap();
                fs::set_permissions(&file, Permissions::from_mode(before)).unwrap();
                let then = fs::metadata(&file).unwrap();
                std::thread::sleep(std::time::Duration::from_millis(20));
                std::os::unix::fs::chown(&file, None, None).unwrap();
                let now = fs::metadata(&file).unwrap();
                assert_eq!(now.mode() & 0o7777, after, "{before:o}");
                let changed = |meta: &fs::Metadata| (meta.ctime(), meta.ctime_nsec());
                assert!(changed(&now) > changed(&then), "{before:o}");
            }
            // A caller with CAP_FSETID keeps them.
            fs::set_permissions(&file, Permissions::from_mode(0o6755)).unwrap();
            let change = ["-o", "1M", "-l", "4096"];
            let status = Command::new("fallocate").args(change).arg(&file).status();
            assert!(status.unwrap().success());
            let mode = fs::metadata(&file).unwrap().permissions().mode();
            assert_eq!(mode & 0o7777, 0o6755);
        },
    );
}
