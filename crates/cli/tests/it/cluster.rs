//! A file system of several machines, over two mounts.

use crate::fixture::{HOLDFAST, Place, call, holdfast};
use holdfast_testkit::skip::skipped_by_package;
use std::path::Path;
use std::process::Command;

/// The exit code of a script on a machine that lacks what it needs.
const UNFIT: i32 = 77;

#[test]
fn promises_to_two_machines_are_kept() {
    let Some(_place) = Place::with_mounts() else {
        return;
    };
    let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../scripts/cluster.sh");
    let output = Command::new(script)
        .args(["tree", "password"])
        .env("HOLDFAST", HOLDFAST)
        .output()
        .unwrap();
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    let (out, error) = (text(&output.stdout), text(&output.stderr));
    if output.status.code() == Some(UNFIT) {
        skipped_by_package(error.trim());
        return;
    }
    assert!(output.status.success(), "{out}{error}");
    assert_eq!(out.matches(" kept, tried ").count(), 6, "{out}");
}

#[test]
fn a_database_that_does_not_answer_is_named_and_its_password_is_not() {
    let place = Place::new();
    let url = "pg://fs:verysecret@127.0.0.1:1/files?fs=team";
    let bucket = format!("{url}&bucket=file://{}", place.folder().display());
    for arguments in [
        &["mkfs", &bucket][..],
        &["info", url],
        &["gc", "--dry-run", url],
        &["fence", url, "3"],
    ] {
        let error = holdfast(arguments).fails(1);
        assert!(
            error.contains("pg://fs@127.0.0.1:1/files?fs=team"),
            "{error}"
        );
        assert!(error.contains("hint: check host, port"), "{error}");
        assert!(error.contains("~/.pgpass"), "{error}");
        assert!(!error.contains("verysecret"), "{error}");
    }
    let error = holdfast(["fsck", url]).fails(8);
    assert!(!error.contains("verysecret"), "{error}");
}

#[test]
fn wrong_addresses_and_options_are_refused_with_a_remedy() {
    let place = Place::new();
    let image = place.path("data.hf");
    for (arguments, part) in [
        (&["info", "pg://db/files?fs=Team"][..], "fs=Team"),
        (&["info", "pg://db/files?bukket=x"], "did you mean bucket=?"),
        (&["mkfs", "pg://db/files"], "bucket= is missing"),
        (&["mkfs", "pg://db/files?bucket=team"], "s3://NAME/PREFIX"),
        (
            &["mkfs", "pg://db/files?bucket=file:///no/such"],
            "folder /no/such does not exist",
        ),
        (&["mkfs", "--size", "1g", "pg://db/files"], "--size"),
        (&["mount", "-t", "dir", "pg://db/files", "."], "-t cluster"),
        (&["gc", "data.hf"], "pg://USER@HOST"),
    ] {
        let error = holdfast(arguments).fails(1);
        assert!(error.contains(part), "{arguments:?}: {error}");
    }
    let error = call(&[&"mkfs", &"--inline", &"4k", &image]).fails(1);
    assert!(error.contains("--inline"), "{error}");
    assert!(!image.exists());
}
