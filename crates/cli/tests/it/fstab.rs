//! `--update-fstab` of mount and umount.

use crate::fixture::{Place, call, holdfast, on_each_store, wait_until};
use crate::private::{HELPERS, run, well, with_fusermount};
use std::fs;
use std::os::unix::fs::PermissionsExt as _;

const OTHERS: &str = "# A comment\nUUID=1 / ext4 defaults 0 1\n";

/// A line is written, mount(8) mounts it, and it is removed.
const ROUND_TRIP: &str = r#"
    cd "$T"
    printf '%s' "$OTHERS" >fstab
    holdfast mkfs -q --size 64m "da ta.hf"
    line() { holdfast mount --update-fstab --fstab fstab --create -o "$1" "da ta.hf" mnt; }
    line noatime,nofail,x-systemd.requires=a.service
    holdfast umount mnt
    cat fstab
    mount -T fstab "$T/mnt"
    touch mnt/file
    umount "$T/mnt"
    # The same once more, and then with other options.
    before=$(stat -c %i fstab)
    line noatime,nofail,x-systemd.requires=a.service
    [ "$(stat -c %i fstab)" = "$before" ]
    holdfast umount mnt
    line log=daemon.log
    cat fstab
    holdfast umount --update-fstab --fstab fstab mnt
    cmp fstab - <<END
$OTHERS
END
    # Nothing is mounted, and there is no line: nothing to do.
    ! holdfast umount --update-fstab --fstab fstab mnt
"#;

#[test]
fn mount_writes_a_line_that_mounts_at_boot_and_umount_removes_it() {
    let Some(place) = Place::alone() else {
        return;
    };
    let script = ROUND_TRIP.replace("$OTHERS", OTHERS.trim_end());
    let out = well(&place, HELPERS, &script);
    let folder = place.folder();
    let line = |options: &str| {
        let folder = folder.display();
        format!("{folder}/da\\040ta.hf {folder}/mnt holdfast {options} 0 0")
    };
    let log = format!("log={}/daemon.log", folder.display());
    let lines: Vec<&str> = out.lines().collect();
    let others: Vec<&str> = OTHERS.lines().collect();
    assert_eq!(lines[..2], others[..], "{out}");
    assert_eq!(
        lines[2],
        line("noatime,nofail,x-systemd.requires=a.service"),
        "{out}"
    );
    assert_eq!(lines[3..5], others[..], "{out}");
    assert_eq!(lines[5], line(&log), "{out}");
}

#[test]
fn a_user_who_may_not_write_the_file_gets_no_mount() {
    let Some(place) = with_fusermount() else {
        return;
    };
    let output = run(
        &place,
        HELPERS,
        r#"user holdfast mount --update-fstab mem: "$T/user/mnt""#,
    );
    let error = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(1), "{error}");
    assert!(error.contains("/etc/fstab: cannot be changed"), "{error}");
    assert!(error.contains("hint: run as root"), "{error}");
}

on_each_store! {
    fn a_line_of_another_file_system_prevents_the_mount(place: &Place) {
        let fstab = place.path("fstab");
        let before = format!("/dev/sdb {} xfs defaults 0 2\n", place.mnt());
        fs::write(&fstab, &before).unwrap();
        fs::set_permissions(&fstab, fs::Permissions::from_mode(0o600)).unwrap();
        let update = ["mount", "--update-fstab", "--fstab", fstab.to_str().unwrap()];
        let (source, mnt) = (place.source(), place.mnt());
        let error = holdfast([&update[..], &[&source, &mnt]].concat()).fails(1);
        assert!(error.contains("has a line for") && error.contains("of type xfs"), "{error}");
        assert!(!place.is_mounted() && !place.path("mnt").exists());
        assert_eq!(fs::read_to_string(&fstab).unwrap(), before);
        place.mount(&[]);
        let remount = ["-o", "remount,ro", &source, &mnt];
        let error = holdfast([&update[..], &remount].concat()).fails(1);
        assert!(error.contains("--update-fstab"), "{error}");
        place.umount();
    }

    fn only_the_mount_point_of_a_daemon_that_is_gone_is_stale(place: &Place) {
        let stale = || call(&[&"umount", &"--stale", &place.path("mnt")]).ok();
        stale();
        place.mount(&[]);
        stale();
        assert!(place.is_mounted());
        let daemon = rustix::process::Pid::from_raw(place.daemon()).unwrap();
        rustix::process::kill_process(daemon, rustix::process::Signal::KILL).unwrap();
        // It closes its descriptors while it ends.
        wait_until("the mount point is cleared", || {
            stale();
            !place.is_mounted()
        });
    }
}
