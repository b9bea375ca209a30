//! Failures print the reason and a remedy, and leave nothing behind.

use crate::fixture::{Place, holdfast};
use std::fs;

#[test]
fn a_mount_that_fails_says_why_once() {
    let Some(place) = Place::with_mounts() else {
        return;
    };
    let image = place.path("empty.img");
    fs::write(&image, vec![0; 4 << 20]).unwrap();
    let image = image.to_str().unwrap();
    let mnt = place.mnt();
    let mount = ["mount", image, &mnt];
    let error = holdfast(mount).fails(1);
    let lines: Vec<&str> = error.lines().collect();
    assert_eq!(lines.len(), 2, "{error}");
    for once in [image, "holds no Holdfast volume", "hint: holdfast fsck"] {
        assert_eq!(error.matches(once).count(), 1, "{once}: {error}");
    }
    // The log file has it as well.
    let log = place.path("log");
    let told = holdfast([&mount[..], &["--log", log.to_str().unwrap()]].concat()).fails(1);
    assert_eq!(told, error);
    let log = fs::read_to_string(log).unwrap();
    assert_eq!(log.matches("holds no Holdfast volume").count(), 1, "{log}");
    assert!(!place.path("mnt").exists());
}
