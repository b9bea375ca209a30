use std::io::{Read, Seek, SeekFrom, Write};

use holdfast_testkit::rng::Rng;

use super::subject::{How, Subject};
use super::{Log, Script, compare};

/// Random steps on few names, so that they conflict.
struct Random {
    seed: u64,
    steps: u32,
}

/// No `..`: through a link to `.`, it would leave the directory on the host.
fn path(dice: &mut Rng) -> String {
    let mut path = String::from("a");
    for _ in 0..=dice.below(3) {
        path.push('/');
        path.push_str(dice.pick::<&str>(&["a", "b", "c", "a", "b", "c", "."]));
    }
    if dice.one_in(8) && !path.ends_with('.') {
        path.push('/');
    }
    path
}

impl Script for Random {
    fn run<S: Subject>(&self, fs: &S, log: &mut Log) {
        let mut dice = Rng::new(self.seed);
        let mut file = None;
        log.note("mkdir a", fs.create_dir("a"));
        for step in 0..self.steps {
            let (path, other) = (path(&mut dice), path(&mut dice));
            let what = |call: &str| format!("{step}: {call} {path} {other}");
            match dice.below(19) {
                0 | 1 => drop(log.note(what("mkdir"), fs.create_dir(&path))),
                2 => drop(log.note(what("mkdir all"), fs.create_dir_all(&path))),
                3 => drop(log.note(what("rmdir"), fs.remove_dir(&path))),
                4 => drop(log.note(what("unlink"), fs.remove_file(&path))),
                5 | 6 => drop(log.note(what("rename"), fs.rename(&path, &other))),
                7 => drop(log.note(what("link"), fs.hard_link(&path, &other))),
                8 => drop(log.note(what("symlink"), fs.symlink(&path[2..], &other))),
                9 => drop(log.note(what("readlink"), fs.read_link(&path))),
                10 => drop(log.note(what("write"), fs.write(&path, &other))),
                11 => drop(log.note(what("read"), fs.read(&path))),
                12 => drop(log.note(what("stat"), fs.stat(&path))),
                13 => drop(log.note(what("list"), fs.list(&path))),
                14 => drop(log.note(what("canonicalize"), fs.canonicalize(&path))),
                15 if dice.one_in(8) => {
                    // The standard library empties what `.` and a link with a slash lead to,
                    // and then fails; ours fails first.
                    let path = path.trim_end_matches(['/', '.']);
                    log.note(what("remove all"), fs.remove_dir_all(path));
                }
                15 => drop(log.note(what("lstat"), fs.lstat(&path))),
                16 => {
                    let how = dice.pick(&["r", "rw", "rwc", "rac", "rwn", "rwct"]);
                    file = log.note_file(what(how), fs.open(&path, How(how, 0)));
                }
                _ => {
                    let Some(file) = &mut file else { continue };
                    let offset = dice.below(10_000);
                    log.note(what("seek"), file.seek(SeekFrom::Start(offset)));
                    log.note(what("write file"), file.write(other.as_bytes()));
                    log.note(what("rewind"), file.rewind());
                    let mut content = Vec::new();
                    log.note(what("read file"), file.read_to_end(&mut content));
                    log.note(what("bytes"), Ok(content.len()));
                    content.retain(|&byte| byte != 0);
                    log.note(what("text"), Ok(String::from_utf8(content).ok()));
                }
            }
        }
    }
}

#[test]
fn random_steps_are_answered_alike() {
    for seed in [1, 2, 3] {
        compare(&Random { seed, steps: 4000 });
    }
}
