//! The commands of the documentation as an ordinary user, and what stands in that user's way.

use crate::private::{HELPERS, run, well, with_fusermount};

/// The commands of `reference/operations.md` and `reference/mount.md`, and what they leave.
const PAGES: &str = r#"
    cat >"$T/user/commands" <<'END'
set -eu
mkdir -p src/d; echo text >src/d/f; ln -s d src/l
holdfast mkfs -q data.hf --size 64m
holdfast cp -q -r /etc/hostname src data.hf:/
tar -c --owner=0 --group=0 src | holdfast unpack -q - data.hf:/unpacked
holdfast cp -q -r data.hf:/src data.hf:/copy
holdfast cp -q -r data.hf:/src out
cmp out/d/f src/d/f
holdfast bulkstat data.hf
holdfast chmod -R go-w data.hf:/copy >/dev/null
holdfast pack data.hf:/src | tar -t >/dev/null
holdfast resize data.hf 128m >/dev/null
holdfast info data.hf >/dev/null
holdfast fsck data.hf >/dev/null
holdfast mount data.hf mnt -o metrics=127.0.0.1:0,log=log
holdfast info mnt >/dev/null
holdfast list >/dev/null
holdfast top --json mnt | head -n 1 >/dev/null
holdfast bulkstat mnt >/dev/null
tar -c src | holdfast unpack -q - mnt/again
holdfast cp -q -r mnt/again mnt/twice
holdfast chmod -R go-w mnt/twice >/dev/null
holdfast chown -R "$(id -u)" mnt/twice >/dev/null
holdfast pack mnt/twice | tar -t >/dev/null
holdfast warm mnt >/dev/null
holdfast rm -r mnt/twice >/dev/null
holdfast resize mnt 192m >/dev/null
holdfast trim mnt >/dev/null
holdfast umount mnt
holdfast mount src mnt
cat mnt/d/f >/dev/null
holdfast umount mnt
END
    user sh "$T/user/commands"
"#;

#[test]
fn every_page_works_and_the_files_are_the_callers() {
    let Some(place) = with_fusermount() else {
        return;
    };
    let out = well(&place, HELPERS, PAGES);
    // Beside the rows there is a note that the other file's owner was not kept.
    let rows = out.lines().map(|line| line.split('\t').collect());
    let rows: Vec<Vec<&str>> = rows.filter(|row: &Vec<&str>| row.len() > 1).collect();
    assert!(rows.len() > 12, "{out}");
    for row in rows {
        assert_eq!(row[4..6], ["1000", "1000"], "{row:?}");
    }
}

#[test]
fn what_stands_in_the_way_is_named_with_its_remedy() {
    let Some(place) = with_fusermount() else {
        return;
    };
    let mount = r#"user holdfast mount mem: "$T/user/mnt""#;
    for (obstacle, command, named, remedy) in [
        (
            "mknod -m 600 \"$T/blocked\" c 10 229; mount --bind \"$T/blocked\" /dev/fuse",
            mount,
            "/dev/fuse",
            "chmod 666 /dev/fuse",
        ),
        (
            // Only what the script itself needs.
            "mkdir \"$T/bin\"; ln -s \"$(command -v holdfast)\" \"$(command -v setpriv)\" \"$T/bin\"; PATH=$T/bin",
            mount,
            "only root mounts without fusermount3",
            "install fuse3",
        ),
        (
            ": >\"$T/fuse.conf\"; mount --bind \"$T/fuse.conf\" /etc/fuse.conf",
            r#"user holdfast mount -o allow_other mem: "$T/user/mnt""#,
            "user_allow_other",
            "add the line user_allow_other to /etc/fuse.conf",
        ),
    ] {
        let output = run(&place, HELPERS, &format!("{obstacle}\n{command}"));
        let error = String::from_utf8_lossy(&output.stderr);
        assert_eq!(output.status.code(), Some(1), "{obstacle}: {error}");
        let (what, hint) = error.split_once("hint: ").unwrap_or((&error, ""));
        assert!(
            what.contains(named) && hint.contains(remedy),
            "{obstacle}: {error}"
        );
    }
}
