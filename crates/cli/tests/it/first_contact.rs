//! The README's first lines, as an ordinary user runs them; and the owner of the root directory.

use crate::fixture::{Place, holdfast};
use crate::private::{HELPERS, run, well, with_fusermount};
use std::fs;
use std::os::unix::fs::MetadataExt as _;

const README: &str = include_str!("../../../../README.md");

/// The commands of the README's first block for a shell, with the program that they build and run.
fn first_lines() -> String {
    let block = README.split("```sh\n").nth(1).expect("a block");
    let block = block.split("```").next().expect("its end");
    block.replace("cargo run --release -- ", "holdfast ")
}

#[test]
fn the_first_lines_of_the_readme_work_for_an_ordinary_user() {
    let Some(place) = with_fusermount() else {
        return;
    };
    let lines = first_lines();
    assert!(
        lines.starts_with("holdfast mount --create data.hf ./mnt"),
        "{lines}"
    );
    fs::write(place.path("lines"), &lines).unwrap();
    let script = r#"
        mkdir -p crates/cli/src; echo 'fn main() {}' >crates/cli/src/main.rs
        chown -R 1000:1000 crates
        user sh -ec "$(cat "$T/lines")"
    "#;
    let out = well(&place, HELPERS, script);
    assert!(out.contains("cli") && out.contains("clean"), "{out}");
}

#[test]
fn memory_mounted_by_an_ordinary_user_is_that_users() {
    let Some(place) = with_fusermount() else {
        return;
    };
    let script = r#"
        user holdfast mount mem: ./mnt
        user sh -ec 'stat -c "%u:%g %a" mnt; mkdir mnt/dir; echo x >mnt/dir/file'
        user holdfast umount ./mnt
        # As mount(8) does it for a line of fstab, with its own rights.
        echo "mem: $T/user/mnt holdfast user,noauto,size=1m 0 0" >"$T/fstab"
        mount --bind "$T/fstab" /etc/fstab
        mkdir -p mnt; chown 1000:1000 mnt
        user mount "$T/user/mnt"
        user sh -ec 'stat -c "%u:%g %a" mnt; mkdir mnt/dir; echo x >mnt/dir/file'
        user umount "$T/user/mnt"
        # Others may still be named.
        user holdfast mount mem: ./mnt -o gid=0,mode=700
        user stat -c "%u:%g %a" mnt
        user holdfast umount ./mnt
    "#;
    let out = well(&place, HELPERS, script);
    assert_eq!(out, "1000:1000 755\n1000:1000 755\n1000:0 700\n");
}

/// Owner and mode of the root directory of a mount of this image.
fn root_of(place: &Place, image: &str, options: &[&str]) -> (u32, u32, u32) {
    holdfast([&["mount", image, &place.mnt()], options].concat()).ok();
    let meta = fs::metadata(place.mnt()).unwrap();
    place.umount();
    (meta.uid(), meta.gid(), meta.mode() & 0o7777)
}

#[test]
fn the_root_directory_of_a_volume_is_the_one_who_makes_its() {
    let Some(place) = Place::alone() else {
        return;
    };
    let image = place.path("user/data.hf");
    let image = image.to_str().unwrap();
    let made = run(&place, HELPERS, "user holdfast mkfs -q --size 64m data.hf");
    assert!(made.status.success(), "{made:?}");
    assert_eq!(root_of(&place, image, &[]), (1000, 1000, 0o755));
    for (owner, expected) in [
        ("7:8", (7, 8, 0o755)),
        (":daemon", (0, 1, 0o755)),
        ("daemon", (1, 0, 0o755)),
    ] {
        let mkfs = ["mkfs", "-q", "--force", "--owner", owner, image];
        holdfast(mkfs).ok();
        assert_eq!(root_of(&place, image, &[]), expected, "{owner}");
    }
    let error = holdfast(["mkfs", "--force", "--owner", "no-such-user", image]).fails(1);
    assert!(error.contains("no-such-user: there is no user"), "{error}");
    // A mount does not change the owner of a root directory that exists.
    let error = holdfast(["mount", image, &place.mnt(), "-o", "uid=7"]).fails(1);
    assert!(error.contains("option uid=7"), "{error}");
    fs::remove_file(image).unwrap();
    let create = ["-o", "create,create_size=64m,uid=daemon,gid=9,mode=750"];
    assert_eq!(root_of(&place, image, &create), (1, 9, 0o750));
    fs::remove_file(image).unwrap();
    assert_eq!(
        root_of(&place, image, &["--create", "--size", "64m"]),
        (0, 0, 0o755)
    );
}
