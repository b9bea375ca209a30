use super::subject::Subject;
use super::{Log, Script, compare};

struct Paths;

impl Script for Paths {
    fn run<S: Subject>(&self, fs: &S, log: &mut Log) {
        log.note("mkdir a", fs.create_dir("a"));
        log.note("mkdir a again", fs.create_dir("a"));
        log.note("mkdir a/", fs.create_dir("a/"));
        log.note("mkdir b/", fs.create_dir("b/"));
        log.note("mkdir below nothing", fs.create_dir("x/y"));
        log.note("write a/f", fs.write("a/f", "text"));
        for path in [
            "",
            ".",
            "a/.",
            "a/..",
            "a//f",
            "a/f/",
            "a/f/x",
            "a/none/..",
            "./a/../a/f",
        ] {
            log.note(format!("stat {path:?}"), fs.stat(path));
            log.note(format!("exists {path:?}"), fs.try_exists(path));
            log.note(format!("canonicalize {path:?}"), fs.canonicalize(path));
        }
        let long = "n".repeat(255);
        log.note("longest name", fs.write(&long, "1"));
        log.note("longer name", fs.write(&format!("{long}n"), "1"));
        log.note("long path", fs.stat(&"a/../".repeat(1000)));
        log.note("zero byte", fs.write("a\0b", "1"));
        log.note("newline", fs.write("a\nb", "1"));
        log.note("not text", fs.read_to_string("a/f"));
        log.note("directory as file", fs.read("a"));
        log.note("directory written", fs.write("a", ""));
        log.note("new file with slash", fs.write("new/", ""));
        log.note("file with slash", fs.write("a/f/", ""));
        log.note("list file", fs.list("a/f"));
        log.note("list nothing", fs.list("nothing"));
    }
}

#[test]
fn paths_are_read_alike() {
    compare(&Paths);
}

struct Links;

impl Script for Links {
    fn run<S: Subject>(&self, fs: &S, log: &mut Log) {
        log.note("tree", fs.create_dir_all("d/e"));
        log.note("write", fs.write("d/f", "one"));
        for (target, link) in [
            ("d/f", "to_file"),
            ("d", "to_dir"),
            ("none", "dangling"),
            ("loop_b", "loop_a"),
            ("loop_a", "loop_b"),
            ("../to_dir/e", "d/back"),
            ("self", "self"),
        ] {
            log.note(format!("symlink {link}"), fs.symlink(target, link));
        }
        log.note("symlink to nothing named", fs.symlink("", "empty"));
        log.note("symlink over a name", fs.symlink("x", "d/f"));
        log.note("symlink with slash", fs.symlink("x", "y/"));
        for path in [
            "to_file",
            "to_file/",
            "to_dir",
            "to_dir/",
            "to_dir/f",
            "dangling",
            "dangling/",
            "loop_a",
            "d/back",
            "d/back/",
            "d/back/../f",
            "self/x",
        ] {
            log.note(format!("stat {path}"), fs.stat(path));
            log.note(format!("lstat {path}"), fs.lstat(path));
            log.note(format!("readlink {path}"), fs.read_link(path));
            log.note(format!("canonicalize {path}"), fs.canonicalize(path));
            log.note(format!("exists {path}"), fs.try_exists(path));
        }
        log.note("write through", fs.write("to_file", "two"));
        log.note("write through dangling", fs.write("dangling", "made"));
        log.note("mkdir at a link", fs.create_dir("to_dir"));
        log.note("mkdir all through a link", fs.create_dir_all("to_dir/g/h"));
        log.note("mkdir all to a link", fs.create_dir_all("to_dir"));
        log.note("mkdir all through a loop", fs.create_dir_all("loop_a/x"));
        log.note("link", fs.hard_link("d/f", "second"));
        log.note("link of a link", fs.hard_link("to_file", "third"));
        log.note("link of a directory", fs.hard_link("d", "fourth"));
        log.note("link over a name", fs.hard_link("d/f", "second"));
        log.note("link of nothing", fs.hard_link("nothing", "fifth"));
        log.note("rmdir of a link", fs.remove_dir("to_dir"));
        log.note("rmdir of a link with slash", fs.remove_dir("to_dir/"));
        log.note("unlink of a link", fs.remove_file("to_dir"));
        log.note("unlink of a link with slash", fs.remove_file("to_file/"));
    }
}

#[test]
fn links_are_followed_alike() {
    compare(&Links);
}

struct Moves;

impl Script for Moves {
    fn run<S: Subject>(&self, fs: &S, log: &mut Log) {
        log.note("tree", fs.create_dir_all("d/e/f"));
        log.note("empty", fs.create_dir("empty"));
        log.note("one", fs.write("one", "1"));
        log.note("two", fs.write("two", "2"));
        for (from, to) in [
            ("one", "two"),
            ("none", "two"),
            ("two", "two"),
            ("two", "d"),
            ("d", "two"),
            ("d", "d/e/x"),
            ("d", "d"),
            ("d/e", "empty"),
            ("empty", "d"),
            ("two", "d/"),
            ("two", "three/"),
            ("two/", "three"),
            ("d/", "moved/"),
            (".", "x"),
            ("moved/.", "x"),
            ("moved", "moved/.."),
            ("two", "moved/none/x"),
            ("two", "empty/f/two"),
        ] {
            log.note(format!("rename {from} {to}"), fs.rename(from, to));
        }
        for path in [
            "empty",
            "empty/",
            "moved/.",
            "moved/..",
            "none",
            "empty/f/two",
            ".",
        ] {
            log.note(format!("rmdir {path}"), fs.remove_dir(path));
        }
        for path in ["empty", "empty/", "none", "empty/f/two/", "empty/f/two"] {
            log.note(format!("unlink {path}"), fs.remove_file(path));
        }
    }
}

#[test]
fn names_move_and_go_alike() {
    compare(&Moves);
}

struct Trees;

impl Script for Trees {
    fn run<S: Subject>(&self, fs: &S, log: &mut Log) {
        for path in ["", "a/b/c", "a/b/c", "a/x/../y", "a/b/./c/d/", "."] {
            log.note(format!("mkdir all {path:?}"), fs.create_dir_all(path));
        }
        log.note("file", fs.write("a/file", "keep"));
        log.note("mkdir all at a file", fs.create_dir_all("a/file"));
        log.note("mkdir all below a file", fs.create_dir_all("a/file/x/y"));
        log.note("outside", fs.create_dir("outside"));
        log.note("treasure", fs.write("outside/treasure", "gold"));
        log.note("way out", fs.symlink("../../outside", "a/b/out"));
        log.note("top link", fs.symlink("outside", "link"));
        for number in 0..600 {
            let made = fs.write(&format!("a/b/c/{number}"), "x");
            assert!(made.is_ok(), "{made:?}");
        }
        for path in [
            "none",
            "a/file",
            "a/file/",
            "a/b",
            "a/b",
            "link",
            "a/../outside/none",
        ] {
            log.note(format!("remove all {path}"), fs.remove_dir_all(path));
        }
    }
}

#[test]
fn trees_are_made_and_removed_alike() {
    compare(&Trees);
}
