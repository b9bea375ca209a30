//! An inode's times that were read differ from those after the next change, however soon it comes.

use holdfast_core::types::{
    Attr, Caller, FileType, OpenFlags, RenameFlags, SetAttr, Time, XattrSet,
};
use holdfast_core::{FileSystem, MemoryLimits, Node, OpenFile, Options};

/// More than fit into a tick of any clock.
const ROUNDS: usize = 300;

struct Stage {
    fs: FileSystem,
    who: Caller,
    file: OpenFile,
}

impl Stage {
    fn new() -> Self {
        let fs = FileSystem::memory(MemoryLimits::default(), Options::default());
        let who = Caller::root();
        let flags = OpenFlags::CREATE | OpenFlags::READ_WRITE;
        let file = fs.create(&who, &fs.root(), b"file", 0o644, flags).unwrap();
        Self { fs, who, file }
    }

    fn told(&self, node: &Node) -> Attr {
        self.fs.getattr(node)
    }

    /// Repeats a change, with a stat before and after; `time` selects the time that has to move.
    #[track_caller]
    fn moves(&self, node: &Node, time: impl Fn(&Attr) -> Time, mut change: impl FnMut(usize)) {
        for round in 0..ROUNDS {
            let before = self.told(node);
            change(round);
            let after = self.told(node);
            assert!(time(&after) > time(&before), "round {round}");
        }
    }
}

#[test]
fn every_change_of_a_file_moves_the_times_that_were_told() {
    let stage = Stage::new();
    let (fs, who, file) = (&stage.fs, &stage.who, &stage.file);
    let (node, root) = (file.node().clone(), fs.root());
    stage.moves(
        &node,
        |attr| attr.mtime,
        |_| {
            assert_eq!(fs.write(who, file, 0, b"same length"), Ok(11));
        },
    );
    stage.moves(
        &node,
        |attr| attr.ctime,
        |round| {
            let perm = Some(0o600 + (round % 2) as u16);
            let set = SetAttr {
                perm,
                ..SetAttr::default()
            };
            fs.setattr(who, &node, &set, None).unwrap();
        },
    );
    stage.moves(
        &node,
        |attr| attr.ctime,
        |_| {
            fs.setxattr(who, &node, b"user.a", b"b", XattrSet::Any)
                .unwrap();
        },
    );
    stage.moves(
        &node,
        |attr| attr.mtime,
        |round| {
            let set = SetAttr {
                size: Some(5 + round as u64),
                ..SetAttr::default()
            };
            fs.setattr(who, &node, &set, None).unwrap();
        },
    );
    stage.moves(
        &node,
        |attr| attr.ctime,
        |round| {
            fs.link(who, &node, &root, format!("link{round}").as_bytes())
                .unwrap();
        },
    );
    stage.moves(
        &node,
        |attr| attr.ctime,
        |round| {
            fs.unlink(who, &root, format!("link{round}").as_bytes())
                .unwrap();
        },
    );
}

#[test]
fn every_change_of_names_moves_the_times_of_a_directory_that_were_told() {
    let stage = Stage::new();
    let (fs, who, root) = (&stage.fs, &stage.who, stage.fs.root());
    let name = |round: usize| format!("name{round}").into_bytes();
    stage.moves(
        &root,
        |attr| attr.mtime,
        |round| {
            fs.mknod(who, &root, &name(round), FileType::Regular, 0o644, 0)
                .unwrap();
        },
    );
    stage.moves(
        &root,
        |attr| attr.mtime,
        |round| {
            let to = [&name(round)[..], b"x"].concat();
            let flags = RenameFlags::empty();
            fs.rename(who, &root, &name(round), &root, &to, flags)
                .unwrap();
        },
    );
    stage.moves(
        &root,
        |attr| attr.mtime,
        |round| {
            let name = [&name(round)[..], b"x"].concat();
            fs.unlink(who, &root, &name).unwrap();
        },
    );
}

#[test]
fn what_is_made_or_read_later_has_no_earlier_time() {
    let stage = Stage::new();
    let (fs, who, root) = (&stage.fs, &stage.who, stage.fs.root());
    for round in 0..ROUNDS {
        stage.told(stage.file.node());
        fs.write(who, &stage.file, 0, b"x").unwrap();
        let changed = stage.told(stage.file.node()).mtime;
        let name = format!("{round}");
        let made = fs.mknod(who, &root, name.as_bytes(), FileType::Regular, 0o644, 0);
        assert!(stage.told(&made.unwrap()).mtime >= changed, "round {round}");
        fs.read(&stage.file, 0, &mut [0]).unwrap();
        assert!(
            stage.told(stage.file.node()).atime >= changed,
            "round {round}"
        );
    }
}
