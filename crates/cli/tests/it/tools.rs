//! Volumes made, filled and emptied without mounting them.

use crate::fixture::{Place, holdfast};
use std::fs::{self, File};
use std::os::unix::fs::{FileExt, MetadataExt, PermissionsExt, symlink};
use std::path::Path;
use std::process::Command;

/// A path as an argument.
fn text(path: &Path) -> &str {
    path.to_str().expect("a plain path")
}

/// A small tree with something of everything.
fn sample(dir: &Path) {
    fs::create_dir_all(dir.join("sub/empty")).unwrap();
    fs::write(dir.join("file"), "content").unwrap();
    fs::set_permissions(dir.join("file"), fs::Permissions::from_mode(0o741)).unwrap();
    fs::write(dir.join("sub/large"), vec![9; 3 << 20]).unwrap();
    fs::hard_link(dir.join("file"), dir.join("sub/same")).unwrap();
    symlink("../file", dir.join("sub/link")).unwrap();
    let sparse = File::create(dir.join("sparse")).unwrap();
    sparse.write_all_at(b"x", 8 << 20).unwrap();
    sparse.set_len(16 << 20).unwrap();
    let old =
        fs::FileTimes::new().set_modified(std::time::UNIX_EPOCH + std::time::Duration::new(5, 7));
    File::open(dir.join("file"))
        .unwrap()
        .set_times(old)
        .unwrap();
}

/// Compares two trees of the host, attributes included.
fn same(one: &Path, other: &Path) {
    let status = Command::new("diff")
        .args(["-r", "--no-dereference"])
        .args([one, other])
        .status();
    assert!(status.unwrap().success());
    for name in ["file", "sub/same", "sub", "sparse", "sub/large"] {
        let [a, b] = [one, other].map(|dir| fs::metadata(dir.join(name)).unwrap());
        assert_eq!(
            (a.mode(), a.uid(), a.gid()),
            (b.mode(), b.uid(), b.gid()),
            "{name}"
        );
        assert_eq!(
            (a.mtime(), a.mtime_nsec()),
            (b.mtime(), b.mtime_nsec()),
            "{name}"
        );
    }
    let ino = |name: &str| fs::metadata(other.join(name)).unwrap().ino();
    assert_eq!(ino("file"), ino("sub/same"));
    assert!(fs::metadata(other.join("sparse")).unwrap().blocks() * 512 < 1 << 20);
    assert_eq!(
        fs::read_link(other.join("sub/link")).unwrap(),
        Path::new("../file")
    );
}

#[test]
fn a_tree_goes_into_a_new_volume_and_comes_out_the_same() {
    let place = Place::new();
    let (image, tree, out) = (place.path("data.hf"), place.path("tree"), place.path("out"));
    sample(&tree);
    let made = holdfast(["mkfs", text(&image), "--size", "64m", "--from", text(&tree)]).ok();
    assert!(
        made.contains("3 directories, 3 files, 1 symbolic link, 1 further name"),
        "{made}"
    );
    let checked = holdfast(["fsck", text(&image)]).ok();
    assert!(checked.contains("clean: 7 inodes"), "{checked}");
    let inside = format!("{}:/", image.display());
    holdfast(["cp", "-rq", &inside, text(&out)]).ok();
    same(&tree, &out);
}

#[test]
fn files_and_trees_are_copied_in_out_and_across() {
    let place = Place::new();
    let (image, other, tree) = (
        place.path("data.hf"),
        place.path("other.hf"),
        place.path("tree"),
    );
    sample(&tree);
    for image in [&image, &other] {
        holdfast(["mkfs", "--quiet", text(image), "--size", "64m"]).ok();
    }
    let inside = |image: &Path, path: &str| format!("{}:{path}", image.display());
    // Into the root, by its own name; then by another name; then across.
    holdfast(["cp", "-rq", text(&tree), &inside(&image, "/")]).ok();
    holdfast(["cp", "-rq", text(&tree), &inside(&image, "/tree/sub/again")]).ok();
    holdfast([
        "cp",
        "-rq",
        &inside(&image, "/tree/sub/again"),
        &inside(&other, "/"),
    ])
    .ok();
    holdfast([
        "cp",
        "-rq",
        &inside(&other, "/again"),
        text(&place.path("back")),
    ])
    .ok();
    same(&tree, &place.path("back"));
    // Single files, several at once, and into a directory of the host.
    let file = inside(&image, "/tree/file");
    let large = inside(&image, "/tree/sub/large");
    fs::create_dir(place.path("dir")).unwrap();
    let told = holdfast(["cp", &file, &large, text(&place.path("dir"))]).ok();
    assert!(told.contains("2 files, 3.0 MiB"), "{told}");
    assert_eq!(fs::read(place.path("dir/file")).unwrap(), b"content");
    for image in [&image, &other] {
        holdfast(["fsck", text(image)]).ok();
    }
}

#[test]
fn what_cannot_be_copied_is_named_and_the_rest_is_copied() {
    let place = Place::new();
    let (image, tree) = (place.path("data.hf"), place.path("tree"));
    sample(&tree);
    holdfast(["mkfs", "--quiet", text(&image), "--size", "64m"]).ok();
    let goal = format!("{}:/tree", image.display());
    // A directory is in the place of a file.
    let blocked = place.path("blocked");
    fs::create_dir_all(blocked.join("file")).unwrap();
    holdfast(["cp", "-rq", text(&blocked), &goal]).ok();
    let run = holdfast(["cp", "-r", &format!("{}/.", tree.display()), &goal]);
    assert_eq!(run.code, Some(1));
    assert!(
        run.error.contains(&format!("{goal}/file: ")),
        "{}",
        run.error
    );
    assert!(
        run.error.contains("1 names were not copied"),
        "{}",
        run.error
    );
    assert!(run.out.contains("3 files"), "{}", run.out);
    // A full volume ends the copy, and the name that did not fit is printed.
    fs::write(place.path("huge"), vec![1; 80 << 20]).unwrap();
    let error = holdfast(["cp", text(&place.path("huge")), &goal]).fails(1);
    assert!(error.contains(&format!("{goal}/huge: ")), "{error}");
    holdfast(["fsck", text(&image)]).ok();
}

#[test]
fn what_is_there_is_named_and_not_overwritten_without_force() {
    let place = Place::new();
    let image = place.path("data.hf");
    holdfast(["mkfs", "--quiet", text(&image), "--size", "64m"]).ok();
    let notes = place.path("notes");
    for content in ["short", &"long ".repeat(1000)] {
        fs::write(&notes, content).unwrap();
        let error = holdfast(["mkfs", text(&notes), "--size", "64m"]).fails(1);
        assert!(error.contains("something other than zeros"), "{error}");
        assert_eq!(fs::read_to_string(&notes).unwrap(), content);
    }
    let told = holdfast(["mkfs", text(&image), "-f", "--size", "96m", "--groups", "4"]).ok();
    assert!(told.contains("96.0 MiB, 4 groups"), "{told}");
    let zeros = place.path("zeros");
    File::create(&zeros).unwrap().set_len(64 << 20).unwrap();
    holdfast(["mkfs", "--quiet", text(&zeros), "--label", "kept"]).ok();
    holdfast(["fsck", text(&zeros)]).ok();
}

#[test]
fn the_image_is_not_copied_into_itself() {
    let place = Place::new();
    sample(&place.path("tree"));
    let image = place.path("tree/data.hf");
    let tree = place.path("tree");
    let run = holdfast(["mkfs", text(&image), "--size", "64m", "--from", text(&tree)]);
    assert_eq!(run.code, Some(0), "{}", run.error);
    assert!(run.error.contains("data.hf: is skipped"), "{}", run.error);
    assert!(run.out.contains("3 files"), "{}", run.out);
}
