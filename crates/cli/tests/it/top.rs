//! `holdfast top` in a terminal and with `--json`.

use crate::fixture::{HOLDFAST, Place, holdfast, is_gone, on_each_store, wait_until};
use crate::terminal::Terminal;
use rustix::process::{Pid, Signal, kill_process};
use std::fs;
use std::io::{BufRead, BufReader};
use std::process::{Command, Stdio};

on_each_store! {
    fn a_mount_is_shown_until_a_key_ends_it(place: &Place) {
        place.mount(&[]);
        let mnt = place.mnt();
        let mut top = Terminal::start(&["top", &mnt, "--interval", "0.1"], 100, 40);
        top.wait_for(&mnt);
        fs::write(place.path("mnt/file"), "content").unwrap();
        top.wait_for("WRITE");
        if place.source() != "mem:" {
            top.wait_for("journal");
            top.wait_for("evicted/s");
        }
        for (columns, rows) in [(20, 5), (1, 1), (200, 60)] {
            top.resize(columns, rows);
        }
        let mut number = 0;
        wait_until("directories that are made are shown", || {
            number += 1;
            fs::create_dir(place.path(&format!("mnt/{number}"))).unwrap();
            top.written().contains("MKDIR")
        });
        top.press("q");
        assert_eq!(top.end().0, Some(0));
        place.umount();
    }

    fn a_mount_that_ends_ends_it_with_a_word(place: &Place) {
        place.mount(&[]);
        let mnt = place.mnt();
        let top = Terminal::start(&["top", &mnt, "--interval", "0.1"], 80, 24);
        top.wait_for("q ends");
        place.umount();
        top.wait_for("was unmounted");
        assert_eq!(top.end().0, Some(0));
    }

    fn a_program_gets_an_object_for_each_interval(place: &Place) {
        place.mount(&[]);
        let mut top = Command::new(HOLDFAST)
            .args(["top", &place.mnt(), "--json", "--interval", "0.1"])
            .stdout(Stdio::piped())
            .spawn()
            .expect("the command starts");
        let lines = BufReader::new(top.stdout.take().expect("a pipe")).lines();
        let mut objects = lines.map(|line| -> serde_json::Value {
            serde_json::from_str(&line.expect("text")).expect("an object")
        });
        let first = objects.next().expect("a line");
        assert_eq!(first["mount_point"], place.mnt());
        assert!(first["seconds"].as_f64().expect("a number") >= 0.1);
        let is_volume = place.source() != "mem:";
        assert_eq!(first["volume"].is_object(), is_volume, "{first}");
        assert_eq!(first["classes"].as_array().expect("an array").is_empty(), !is_volume);
        fs::write(place.path("mnt/file"), vec![1; 1 << 20]).unwrap();
        let seen = objects.find(|object| {
            let requests = object["requests"].as_array().expect("an array");
            requests.iter().any(|request| request["operation"] == "WRITE")
        });
        let seen = seen.expect("the write");
        assert!(seen["written_bytes_per_second"].as_f64().expect("a number") > 0.0);
        place.umount();
        objects.for_each(drop);
        assert_eq!(top.wait().expect("a child").code(), Some(0));
    }
}

#[test]
fn signals_and_the_death_of_the_daemon_leave_the_terminal_as_it_was() {
    let Some(place) = Place::with_mounts() else {
        return;
    };
    place.mount(&[]);
    let (mnt, daemon) = (place.mnt(), place.daemon());
    for signal in [Signal::TERM, Signal::HUP, Signal::INT] {
        let top = Terminal::start(&["top", &mnt], 80, 24);
        top.wait_for("q ends");
        top.signal(signal);
        assert_eq!(top.end().0, Some(0), "{signal:?}");
    }
    let mut top = Terminal::start(&["top", &mnt], 80, 24);
    top.wait_for("q ends");
    top.press("\x03");
    assert_eq!(top.end().0, Some(0), "^C");
    let top = Terminal::start(&["top", &mnt, "--interval", "0.1"], 80, 24);
    top.wait_for("q ends");
    kill_process(Pid::from_raw(daemon).expect("a process"), Signal::KILL).expect("it runs");
    wait_until("the daemon is gone", || is_gone(daemon));
    let (code, written) = top.end();
    assert_eq!(code, Some(1), "{written}");
    assert!(written.contains("holdfast umount"), "{written}");
    crate::fixture::umount(&mnt).ok();
}

#[test]
fn without_a_terminal_the_remedy_is_named() {
    let Some(place) = Place::with_mounts() else {
        return;
    };
    place.mount(&[]);
    let error = holdfast(["top", &place.mnt()]).fails(1);
    let named = error.contains("standard output is no terminal") && error.contains("--json");
    assert!(named, "{error}");
    place.umount();
}
