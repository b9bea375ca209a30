//! Limits of writes by passthrough.

use super::{on_both, python};
use std::fs::{self, Permissions};
use std::os::unix::fs::{MetadataExt as _, PermissionsExt as _};
use std::path::Path;
use std::process::Command;

/// The output of a shell command run by an ordinary user.
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

#[test]
fn set_id_bits_go_with_what_a_user_writes_and_stores() {
    on_both(|mount| {
        for dir in [mount.host.path(), mount.dir.path()] {
            fs::set_permissions(dir, Permissions::from_mode(0o755)).unwrap();
        }
        let id = fs::read("/usr/bin/id").unwrap();
        let program = mount.at("p");
        let changes = [
            "printf x | dd of=p conv=notrunc oflag=append status=none",
            "printf x > p",
            "truncate -s +1 p",
            "fallocate -o 1M -l 4096 p",
        ];
        for change in changes {
            fs::write(&program, &id).unwrap();
            fs::set_permissions(&program, Permissions::from_mode(0o6777)).unwrap();
            let before = as_user(mount.dir.path(), "./p -u; ./p -g");
            assert_eq!(before, "0\n0", "{change}");
            as_user(mount.dir.path(), change);
            for path in [&program, &mount.below("p")] {
                let mode = fs::metadata(path).unwrap().mode() & 0o7777;
                assert_eq!(mode, 0o777, "{change}: {mode:o}");
            }
        }
        mount.end_untouched();
    });
}

#[test]
fn the_writers_own_limits_and_the_hosts_errors_are_told() {
    on_both(|mount| {
        fs::write(mount.at("file"), b"").unwrap();
        let told = python(
            "import os, resource, signal, sys
signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
resource.setrlimit(resource.RLIMIT_FSIZE, (8192, 8192))
f = os.open(sys.argv[1], os.O_RDWR)
print(os.pwrite(f, b'x' * 10000, 0))
try: os.pwrite(f, b'x', 8192)
except OSError as error: print(error.errno)
g = os.open(sys.argv[1], os.O_RDONLY)
try: os.write(g, b'x')
except OSError as error: print(error.errno)
print(os.fstat(f).st_size)",
            &[&mount.at("file")],
        );
        let told: Vec<&str> = told.split_whitespace().collect();
        let (too_big, not_open) = (libc::EFBIG.to_string(), libc::EBADF.to_string());
        assert_eq!(told, ["8192", &too_big, &not_open, "8192"]);
        mount.end_untouched();
    });
}

#[test]
fn programs_run_and_locks_are_held() {
    on_both(|mount| {
        // By another process, as in `engine.rs`.
        let copy = Command::new("cp")
            .arg("/usr/bin/id")
            .arg(mount.below("id"))
            .status();
        assert!(copy.unwrap().success());
        let ran = Command::new(mount.at("id")).arg("-u").output().unwrap();
        assert_eq!(ran.stdout, b"0\n");
        fs::write(mount.at("file"), b"locked").unwrap();
        let told = python(
            "import fcntl, os, sys
a = os.open(sys.argv[1], os.O_RDWR); b = os.open(sys.argv[1], os.O_RDWR)
fcntl.flock(a, fcntl.LOCK_EX)
try: fcntl.flock(b, fcntl.LOCK_EX | fcntl.LOCK_NB)
except BlockingIOError: print('held')
os.close(a)
fcntl.flock(b, fcntl.LOCK_EX | fcntl.LOCK_NB); print('free')",
            &[&mount.at("file")],
        );
        assert_eq!(told, "held\nfree");
        mount.end_untouched();
    });
}
