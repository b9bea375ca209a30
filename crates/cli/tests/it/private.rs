//! A mount namespace of a test's own: mount(8) finds the helpers there, every user may open
//! `/dev/fuse`, and the system's log is the test's.

use crate::fixture::{HOLDFAST, Place};
use holdfast_testkit::skip::skipped_by_kernel;
use std::fs;
use std::os::unix::fs::PermissionsExt as _;
use std::path::Path;
use std::process::{Command, Output, Stdio};

/// Makes the namespace's own `/dev` and `/sbin` as overlays of `$T/dev` and `$T/sbin` over the
/// machine's.
const PRELUDE: &str = r#"
set -eu
T=$1; sbin=$(readlink -f /sbin)
user() { setpriv --reuid=1000 --regid=1000 --clear-groups "$@"; }
trap 'umount -l "$T/mnt" "$T/user/mnt" 2>/dev/null || true' EXIT
mkdir -p "$T/dev" "$T/sbin" "$T/user" "$T/mnt"
chown 1000:1000 "$T/user"
[ -e "$T/dev/fuse" ] || mknod -m 666 "$T/dev/fuse" c 10 229
ln -sf "$T/log" "$T/dev/log"
touch "$T/sbin/holdfast"
for name in $HELPERS; do ln -sf "$sbin/holdfast" "$T/sbin/$name.holdfast"; done
mount -t overlay overlay -o "lowerdir=$T/dev:/dev" /dev
mount -t overlay overlay -o "lowerdir=$T/sbin:$sbin" "$sbin"
mount --bind "$2" "$sbin/holdfast"
mount -t tmpfs tmpfs /run
mkdir -p /run/systemd/journal
ln -s "$T/journal" /run/systemd/journal/socket
cd "$T/user"
# Those of other tests are theirs.
grep -E ' fuse(blk)?\.holdfast ' /proc/self/mounts | cut -d' ' -f2 | while read -r dir; do umount -l "$dir" || true; done
"#;

/// All links that the manual asks for.
pub(crate) const HELPERS: &str =
    "mount mount.fuse mount.fuseblk umount umount.fuse umount.fuseblk mkfs fsck";

/// Runs a script in a namespace of its own, with these links in `/sbin`. `$T` is the place.
/// `$T/user` belongs to user 1000, and `user` runs a command as that user. The mount points are
/// `$T/mnt` and `$T/user/mnt`.
pub(crate) fn run(place: &Place, helpers: &str, script: &str) -> Output {
    let folder = place.folder();
    fs::set_permissions(&folder, fs::Permissions::from_mode(0o755)).expect("the folder");
    Command::new("unshare")
        .args(["--mount", "--propagation", "private", "sh", "-c"])
        .arg(format!("{PRELUDE}{script}"))
        .args(["sh".as_ref(), folder.as_os_str(), HOLDFAST.as_ref()])
        .env("HELPERS", helpers)
        .stdin(Stdio::null())
        .output()
        .expect("unshare runs")
}

/// As [`run`], for a script that succeeds; returns its output.
#[track_caller]
pub(crate) fn well(place: &Place, helpers: &str, script: &str) -> String {
    let output = run(place, helpers, script);
    let out = String::from_utf8_lossy(&output.stdout).into_owned();
    let error = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{}: {out}{error}", output.status);
    out
}

/// A place where ordinary users can mount, or a message why there is none.
pub(crate) fn with_fusermount() -> Option<Place> {
    let paths = std::env::var_os("PATH").unwrap_or_default();
    let mut dirs = std::env::split_paths(&paths);
    if !dirs.any(|dir| Path::new(&dir).join("fusermount3").exists()) {
        skipped_by_kernel("there is no fusermount3 (package fuse3)");
        return None;
    }
    Place::alone()
}
