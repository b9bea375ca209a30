use super::subject::{How, Subject};
use super::{Log, Script, compare};

struct Attributes;

impl Script for Attributes {
    fn run<S: Subject>(&self, fs: &S, log: &mut Log) {
        log.note("write", fs.write("f", "0123456789"));
        log.note("dir", fs.create_dir("d"));
        log.note("link", fs.symlink("f", "l"));
        for mode in [0o600, 0o4755, 0o2750, 0o1777, 0o100_644, 0o7777, 0] {
            for path in ["f", "d", "l", "none"] {
                log.note(format!("chmod {path} {mode:o}"), fs.chmod(path, mode));
                log.note(format!("stat {path}"), fs.stat(path));
                log.note(format!("lstat {path}"), fs.lstat(path));
            }
        }
        log.note("chmod", fs.chmod("f", 0o644));
        let Some(file) = log.note_file("open", fs.open("f", How("rw", 0))) else {
            return;
        };
        for (at, mt) in [(0, 1), (1_000_000_000, 2_000_000_000), (86_400, 0)] {
            log.note(format!("touch {at} {mt}"), fs.touch(&file, at, mt));
        }
        log.note("link", fs.hard_link("f", "g"));
        log.note("fstat", fs.fstat(&file));
        log.note("unlink", fs.remove_file("f"));
        log.note("fstat", fs.fstat(&file));
    }
}

#[test]
fn attributes_change_alike() {
    compare(&Attributes);
}

struct Copies;

impl Script for Copies {
    fn run<S: Subject>(&self, fs: &S, log: &mut Log) {
        log.note("source", fs.write("s", &"content ".repeat(20_000)));
        log.note("mode", fs.chmod("s", 0o4751));
        log.note("dir", fs.create_dir("d"));
        log.note("link", fs.symlink("s", "l"));
        log.note("other", fs.write("other", "longer than nothing"));
        log.note("empty", fs.write("empty", ""));
        for (from, to) in [
            ("s", "new"),
            ("s", "other"),
            ("l", "d/through"),
            ("empty", "other"),
            ("d", "x"),
            ("s", "d"),
            ("none", "x"),
            ("s", "none/x"),
        ] {
            log.note(format!("copy {from} {to}"), fs.copy(from, to));
        }
        log.note("onto itself", fs.copy("new", "new"));
    }
}

#[test]
fn files_are_copied_alike() {
    compare(&Copies);
}
