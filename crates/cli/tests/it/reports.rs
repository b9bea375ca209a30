//! What commands report: to people, to programs, and with `--quiet`.

use crate::fixture::{Place, call, holdfast};
use serde_json::Value;
use std::fs;
use std::io::{Seek as _, SeekFrom, Write as _};

/// A place with a folder, and a volume made from it; gives the volume as an argument.
fn prepared() -> (Place, String) {
    let place = Place::new();
    fs::create_dir_all(place.path("from/dir")).unwrap();
    fs::write(place.path("from/dir/file"), "content").unwrap();
    let image = place.path("data.hf").to_str().unwrap().to_owned();
    (place, image)
}

/// The one line of JSON that a command prints.
#[track_caller]
fn json(arguments: &[&str]) -> Value {
    let out = holdfast(arguments.iter().chain(&["--json"])).ok();
    assert_eq!(out.lines().count(), 1, "{out}");
    serde_json::from_str(&out).unwrap()
}

#[test]
fn a_report_for_programs_has_its_keys() {
    let (place, image) = prepared();
    let from = place.path("from").to_str().unwrap().to_owned();
    let made = json(&[
        "mkfs", "--size", "64m", "-L", "name", "--from", &from, &image,
    ]);
    assert_eq!(made["volume"], image);
    assert_eq!(
        (&made["size_bytes"], &made["label"]),
        (&(64 << 20).into(), &"name".into())
    );
    assert_eq!(
        (&made["image_made"], &made["copied"]["files"]),
        (&true.into(), &1.into())
    );
    let said = json(&["info", &image]);
    for key in ["uuid", "groups", "journal_bytes", "size_bytes"] {
        assert_eq!(made[key], said[key], "{key}");
    }
    let in_volume = |path: &str| format!("{image}:{path}");
    let copied = json(&["cp", "-r", &from, &in_volume("/copy")]);
    let archive = place.path("a.tar").to_str().unwrap().to_owned();
    let packed = json(&["pack", &in_volume("/copy"), "-o", &archive]);
    let unpacked = json(&["unpack", &archive, &in_volume("/unpacked")]);
    for counts in [&copied, &packed, &unpacked] {
        assert_eq!(
            (&counts["files"], &counts["bytes"]),
            (&1.into(), &7.into()),
            "{counts}"
        );
        assert_eq!(
            (&counts["failed"], &counts["owners_lost"]),
            (&0.into(), &0.into()),
            "{counts}"
        );
    }
    assert_eq!(copied["target"], in_volume("/copy"));
    for words in [
        &["chmod", "-R", "u+w"][..],
        &["chown", "-R", "0"],
        &["rm", "-r"],
    ] {
        let done = json(&[words, &[&in_volume("/copy")]].concat());
        assert_eq!(
            (&done["names"], &done["failed"]),
            (&3.into(), &0.into()),
            "{words:?}"
        );
    }
    let resized = json(&["resize", &image, "80m"]);
    assert_eq!(
        (&resized["target"], &resized["size_bytes"]),
        (&image.clone().into(), &(80 << 20).into())
    );
    assert!(json(&["trim", &image])["trimmed_bytes"].as_u64().unwrap() > 0);
    let warmed = json(&["warmup", "-j", "2", &from]);
    assert_eq!(
        (&warmed["stats"], &warmed["in_flight_max"]),
        (&2.into(), &2.into())
    );
}

#[test]
fn a_quiet_command_prints_nothing_if_it_does_its_work() {
    let (place, image) = prepared();
    let from = place.path("from").to_str().unwrap().to_owned();
    for words in [
        &["mkfs", "-q", "--size", "64m", &image][..],
        &["cp", "-qr", &from, &format!("{image}:/copy")],
        &["resize", "-q", &image, "80m"],
        &["trim", "-q", &image],
        &["fsck", "-q", &image],
        &["fsck", "-qy", &image],
        &["warm", "-q", "--threads", "2", &from],
    ] {
        assert_eq!(holdfast(words).ok(), "", "{words:?}");
    }
}

#[test]
fn a_new_image_without_a_size_is_told_with_its_size() {
    let place = Place::new();
    let image = place.path("data.hf");
    let out = call(&[&"mkfs", &image]).ok();
    assert!(
        out.contains("a new, sparse image file") && out.contains("--size"),
        "{out}"
    );
    fs::remove_file(&image).unwrap();
    let sized = call(&[&"mkfs", &"--size", &"64m", &"-J", &"2m", &image]).ok();
    assert!(
        !sized.contains("a new, sparse image file") && sized.contains("2.0 MiB"),
        "{sized}"
    );
}

#[test]
fn fsck_has_the_options_and_exit_codes_of_fsck() {
    let (place, image) = prepared();
    holdfast(["mkfs", "-q", "--size", "64m", &image]).ok();
    for option in ["-n", "-y", "-p", "-a", "-fp", "-fn", "-r"] {
        holdfast(["fsck", option, &image]).ok();
    }
    assert_eq!(holdfast(["fsck", "-p", &image]).ok(), "");
    // The first superblock is torn: the second one counts, and a repair writes both.
    let mut file = fs::File::options().write(true).open(&image).unwrap();
    file.seek(SeekFrom::Start(100)).unwrap();
    file.write_all(&[0xff; 64]).unwrap();
    let before = fs::read(place.path("data.hf")).unwrap();
    let run = holdfast(["fsck", "-qn", &image]);
    assert_eq!(run.code, Some(4), "{}{}", run.out, run.error);
    assert!(run.out.contains("DAMAGED"), "{}", run.out);
    assert!(
        fs::read(place.path("data.hf")).unwrap() == before,
        "changed with -n"
    );
    assert_eq!(holdfast(["fsck", "-y", &image]).code, Some(1));
    holdfast(["fsck", &image]).ok();
    holdfast(["fsck", "-p", "-y", &image]).fails(16);
    holdfast(["fsck", "--frobnicate", &image]).fails(16);
    holdfast(["fsck", "--help"]).ok();
}
