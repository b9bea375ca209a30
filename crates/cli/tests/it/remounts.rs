//! mount(8) itself: a remount, and a line of fstab.

use crate::fixture::Place;
use crate::private::{HELPERS, well, with_fusermount};

/// A volume, `mem:` and a directory, each in `$source`, mounted read-only.
const EACH: &str = r#"
    mkdir "$T/dir"; holdfast mkfs -q --size 64m "$T/data.hf"
    can_write() { touch "$T/mnt/file" 2>/dev/null && echo "$source writes" || echo "$source is read-only"; }
    for source in mem: "$T/data.hf" "$T/dir"; do
        mount -t holdfast -o ro "$source" "$T/mnt"
        can_write
"#;

/// What `out` says without the place's path.
fn said(place: &Place, out: &str) -> Vec<String> {
    let folder = place.folder().join("");
    let out = out.replace(folder.to_str().expect("a plain path"), "");
    out.lines().map(str::to_owned).collect()
}

#[test]
fn a_remount_by_mount_turns_writing_on_and_off_or_says_why_not() {
    let Some(place) = Place::alone() else {
        return;
    };
    let script = format!(
        r#"{EACH}
        mount -o remount,rw "$T/mnt" 2>&1 | head -1
        can_write
        mount -o remount,ro "$T/mnt"
        can_write
        [ "$source" = "$T/dir" ] || mount -o remount,rw,noexec "$T/mnt"
        can_write
        umount "$T/mnt"
        done
        "#
    );
    let out = well(&place, HELPERS, &script);
    let expected = [
        "mem: is read-only",
        "mem: writes",
        "mem: is read-only",
        "mem: writes",
        "data.hf is read-only",
        "data.hf writes",
        "data.hf is read-only",
        "data.hf writes",
        "dir is read-only",
        "holdfast: mnt: the source is open for reading only: unmount it, and mount it again without ro",
        "dir is read-only",
        "dir is read-only",
        "dir is read-only",
    ];
    assert_eq!(said(&place, &out), expected);
}

/// Without a helper for the type of a mount, mount(8) asks only the kernel, which does not tell the
/// daemon. For the type `fuse` it calls mount.fuse3 if that is installed, which calls
/// `holdfast SOURCE DIR -o OPTIONS`.
#[test]
fn a_remount_past_the_helpers_is_followed() {
    let Some(place) = with_fusermount() else {
        return;
    };
    let script = format!(
        r#"{EACH}
        [ "$source" != "$T/dir" ] || {{ umount "$T/mnt"; continue; }}
        mount -o remount,rw "$T/mnt"
        can_write
        holdfast info "$T/mnt" | grep '^options' | cut -c1-15
        mount -o remount,ro "$T/mnt"
        can_write
        holdfast info "$T/mnt" | grep '^options' | cut -c1-15
        # What the daemon does by itself is no way around it.
        holdfast rm "$T/mnt/file" 2>/dev/null || echo refused
        mount -o remount,rw "$T/mnt"
        holdfast rm "$T/mnt/file" && echo removed
        umount "$T/mnt"
        done
        "#
    );
    let out = well(&place, "mount", &script);
    let each = |source: &str| {
        [
            format!("{source} is read-only"),
            format!("{source} writes"),
            "options      rw".to_owned(),
            format!("{source} is read-only"),
            "options      ro".to_owned(),
            "refused".to_owned(),
            "removed".to_owned(),
        ]
    };
    let mut expected = each("mem:").to_vec();
    expected.extend(each("data.hf"));
    expected.push("dir is read-only".to_owned());
    assert_eq!(said(&place, &out), expected);
}

#[test]
fn a_line_of_fstab_may_have_what_lines_of_fstab_have() {
    let Some(place) = Place::alone() else {
        return;
    };
    let script = r#"
        holdfast mkfs -q --size 64m "$T/data.hf"
        options=defaults,discard,nofail,noatime,x-systemd.automount,_netdev,log=$T/daemon.log
        echo "$T/data.hf $T/mnt holdfast $options 0 2" >"$T/fstab"
        mount --bind "$T/fstab" /etc/fstab
        HOLDFAST_LOG=info mount "$T/mnt"
        echo content >"$T/mnt/file"
        mount -o remount,ro "$T/mnt"
        mount -o remount,rw "$T/mnt"
        holdfast info "$T/mnt" | grep -o 'rw,noatime,discard'
        umount "$T/mnt"
        grep -c live "$T/daemon.log"
        fsck -t holdfast -n "$T/data.hf" >/dev/null && echo clean
    "#;
    let out = well(&place, HELPERS, script);
    assert_eq!(said(&place, &out), ["rw,noatime,discard", "1", "clean"]);
}

#[test]
fn mounts_that_only_read_share_a_volume_and_one_of_them_may_write_later() {
    let Some(place) = Place::alone() else {
        return;
    };
    let script = r#"
        mkdir "$T/other" "$T/third"
        holdfast mkfs -q --size 64m "$T/data.hf"
        holdfast mount "$T/data.hf" "$T/mnt"
        echo content >"$T/mnt/file"
        holdfast umount "$T/mnt"
        cp "$T/data.hf" "$T/before"

        holdfast mount -o ro,log="$T/daemon.log" "$T/data.hf" "$T/mnt"
        holdfast mount -o ro "$T/data.hf" "$T/other"
        cat "$T/mnt/file" "$T/other/file"
        holdfast mount "$T/data.hf" "$T/third" 2>"$T/error" || echo "writing is refused"
        grep -o 'in use by process .* (holdfast mount' "$T/error" | sed 's/[0-9][0-9]*/N/'
        grep -o 'hint: mounts with -o ro share' "$T/error"
        mount -o remount,rw "$T/mnt" 2>"$T/error" || echo "the remount is refused"
        grep -o 'stays read-only: .* in use' "$T/error" | sed "s-$T/--"
        grep -c 'stays read-only: .* in use' "$T/daemon.log"
        touch "$T/mnt/new" 2>/dev/null || echo "and writes nothing"
        cmp "$T/data.hf" "$T/before" && cat "$T/other/file"

        holdfast umount "$T/other"
        mount -o remount,rw "$T/mnt"
        echo more >"$T/mnt/new"
        holdfast mount -o ro "$T/data.hf" "$T/other" 2>/dev/null || echo "reading is refused"
        mount -o remount,ro "$T/mnt"
        mount -o remount,rw "$T/mnt"
        holdfast umount "$T/mnt"
        holdfast fsck -n "$T/data.hf" | grep -o 'clean: 3 inodes'
        holdfast mount -o ro "$T/data.hf" "$T/mnt"
        cat "$T/mnt/new"
        holdfast umount "$T/mnt"
    "#;
    let out = well(&place, HELPERS, script);
    let expected = [
        "content",
        "content",
        "writing is refused",
        "in use by process N (holdfast mount",
        "hint: mounts with -o ro share",
        "the remount is refused",
        "stays read-only: cannot open image file data.hf: it is in use",
        "1",
        "and writes nothing",
        "content",
        "reading is refused",
        "clean: 3 inodes",
        "more",
    ];
    assert_eq!(said(&place, &out), expected);
}
