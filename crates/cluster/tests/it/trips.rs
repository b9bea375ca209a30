//! Round trips to the database, counted. The calls are those of a mount: a kernel looks a name up
//! before it uses the name.

use crate::counting::Trips;
use crate::{Client, Cluster};
use holdfast_core::types::{
    Attr, Caller, Errno, FileType, OpenFlags, RenameFlags, Result, SetAttr,
};
use holdfast_core::types::{SetTime, Time};
use holdfast_core::{DirEntry, Node};
use std::time::Duration;

/// Names in one reply to a kernel.
const REPLY: usize = 25;

/// The trips of `act`.
fn trips<R>(client: &Client, act: impl FnOnce() -> R) -> (R, Trips) {
    client.meta.take();
    let result = act();
    (result, client.meta.take())
}

fn assert_trips<R>(
    client: &Client,
    expected: &[(&'static str, u64)],
    act: impl FnOnce() -> R,
) -> R {
    let (result, trips) = trips(client, act);
    assert_eq!(trips, expected.iter().copied().collect::<Trips>());
    result
}

fn at_most<R>(client: &Client, most: u64, act: impl FnOnce() -> R) -> R {
    let (result, trips) = trips(client, act);
    println!("{trips:?}, at most {most}");
    assert!(trips.values().sum::<u64>() <= most, "{trips:?}, not {most}");
    result
}

fn who() -> Caller {
    Caller::root()
}

/// Two mounts, with a directory `top` that both know without its names.
fn two() -> (Client, Client) {
    let cluster = Cluster::new(Duration::from_secs(3600));
    let (one, other) = (cluster.client(), cluster.client());
    one.make_dir(&one.fs.root(), b"top");
    other.look_up(&other.fs.root(), b"top").unwrap();
    (one, other)
}

impl Client {
    fn look_up(&self, dir: &Node, name: &[u8]) -> Result<Node> {
        self.fs.lookup(&who(), dir, name)
    }

    fn top(&self) -> Node {
        self.look_up(&self.fs.root(), b"top").unwrap()
    }

    fn make_dir(&self, dir: &Node, name: &[u8]) -> Node {
        assert_eq!(self.look_up(dir, name).map(drop), Err(Errno::ENOENT));
        self.fs.mkdir(&who(), dir, name, 0o755).unwrap()
    }

    /// Creates a file, writes it and closes it.
    fn make_file(&self, dir: &Node, name: &[u8], content: &[u8]) -> Node {
        assert_eq!(self.look_up(dir, name).map(drop), Err(Errno::ENOENT));
        let flags = OpenFlags::CREATE | OpenFlags::WRITE_ONLY;
        let file = self.fs.create(&who(), dir, name, 0o644, flags).unwrap();
        if !content.is_empty() {
            assert_eq!(self.fs.write(&who(), &file, 0, content), Ok(content.len()));
        }
        self.fs.flush(&file).unwrap();
        file.node().clone()
    }

    fn read_file(&self, node: &Node, len: usize) -> Vec<u8> {
        let file = self.fs.open(&who(), node, OpenFlags::empty()).unwrap();
        let mut content = vec![0; len];
        let read = self.fs.read(&file, 0, &mut content).unwrap();
        content.truncate(read);
        content
    }

    fn set(&self, node: &Node, set: SetAttr) {
        self.fs.setattr(&who(), node, &set, None).unwrap();
    }

    /// Lists a directory with attributes, one reply after the other.
    fn list_long(&self, dir: &Node) -> Vec<Box<[u8]>> {
        let open = self.fs.open(&who(), dir, OpenFlags::DIRECTORY).unwrap();
        let (mut after, mut all) = (0, Vec::new());
        loop {
            let (mut came, mut last) = (0, after);
            let mut sink = |entry: DirEntry<'_>, attr: Result<&Attr>| {
                if came == REPLY {
                    return false;
                }
                attr.unwrap();
                (last, came) = (entry.cookie, came + 1);
                if entry.name != b"." && entry.name != b".." {
                    all.push(entry.name.into());
                }
                true
            };
            self.fs.read_dir_plus(&open, after, &mut sink).unwrap();
            after = last;
            if came == 0 {
                return all;
            }
        }
    }

    fn fill(&self, dir: &Node, files: usize) {
        for number in 0..files {
            let name = format!("{number:06}");
            self.fs
                .mknod(&who(), dir, name.as_bytes(), FileType::Regular, 0o644, 0)
                .unwrap();
        }
    }
}

#[test]
fn each_change_is_one_trip() {
    let (client, _) = two();
    let top = client.top();
    client.list_long(&top);
    assert_trips(&client, &[("make", 1)], || {
        client.make_file(&top, b"file", b"")
    });
    assert_trips(&client, &[("make", 1), ("flush", 1)], || {
        client.make_file(&top, b"written", &[1; 64 << 10])
    });
    let dir = assert_trips(&client, &[("make", 1)], || client.make_dir(&top, b"dir"));
    let file = assert_trips(&client, &[("make", 1)], || {
        client.make_file(&dir, b"file", b"")
    });
    assert_trips(&client, &[("set attributes", 1)], || {
        client.set(
            &file,
            SetAttr {
                perm: Some(0o600),
                ..SetAttr::default()
            },
        );
    });
    let none = RenameFlags::empty();
    assert_trips(&client, &[("rename", 1)], || {
        client
            .fs
            .rename(&who(), &dir, b"file", &top, b"moved", none)
            .unwrap();
    });
    assert_trips(&client, &[("link", 1)], || {
        client.fs.link(&who(), &file, &top, b"link").unwrap();
    });
    assert_trips(&client, &[("make", 1)], || {
        client
            .fs
            .symlink(&who(), &top, b"symlink", b"target")
            .unwrap();
    });
    assert_trips(&client, &[("remove", 1)], || {
        client.fs.unlink(&who(), &top, b"moved").unwrap()
    });
    assert_trips(&client, &[("remove", 1)], || {
        client.fs.rmdir(&who(), &top, b"dir").unwrap()
    });
}

#[test]
fn a_cold_path_is_one_trip_a_component() {
    let (one, other) = two();
    let dir = one.make_dir(&one.top(), b"a");
    let dir = one.make_dir(&dir, b"b");
    one.make_file(&dir, b"file", b"content");
    one.fs.symlink(&who(), &dir, b"link", b"target").unwrap();
    let top = other.top();
    let (dir, file) = assert_trips(&other, &[("look up", 3)], || {
        let dir = other.look_up(&top, b"a").unwrap();
        let dir = other.look_up(&dir, b"b").unwrap();
        let file = other.look_up(&dir, b"file").unwrap();
        assert_eq!(other.fs.attributes(&file).unwrap().size, 7);
        (dir, file)
    });
    // A small body and a target come along.
    assert_trips(&other, &[], || {
        assert_eq!(other.read_file(&file, 100), b"content");
    });
    assert_trips(&other, &[("look up", 1)], || {
        let link = other.look_up(&dir, b"link").unwrap();
        assert_eq!(&*other.fs.readlink(&link).unwrap(), b"target");
    });
}

#[test]
fn a_truncation_waits_for_the_close_if_there_is_one() {
    let (one, other) = two();
    let (node, top) = (one.make_file(&one.top(), b"file", b"content"), other.top());
    let size = |size| SetAttr {
        size: Some(size),
        ..SetAttr::default()
    };
    let file = one.fs.open(&who(), &node, OpenFlags::READ_WRITE).unwrap();
    assert_trips(&one, &[], || one.set(&node, size(5)));
    assert_trips(&one, &[("flush", 1)], || one.fs.flush(&file).unwrap());
    drop(file);
    assert_trips(&one, &[("flush", 1)], || one.set(&node, size(3)));
    let node = other.look_up(&top, b"file").unwrap();
    assert_eq!(other.read_file(&node, 9), b"con");
}

#[test]
fn cold_listings_take_few_trips() {
    for (files, most) in [(10, 3), (1000, 3), (100_000, 15)] {
        let (one, other) = two();
        one.fill(&one.top(), files);
        let top = other.top();
        at_most(&other, most, || {
            assert_eq!(other.list_long(&top).len(), files)
        });
        assert_trips(&other, &[], || {
            assert_eq!(other.list_long(&top).len(), files)
        });
    }
}

#[test]
fn trees_are_unpacked_and_removed_in_few_trips_a_file() {
    let (one, other) = two();
    let top = one.top();
    let long_ago = SetAttr {
        atime: Some(SetTime::At(Time(1))),
        mtime: Some(SetTime::At(Time(1))),
        ..SetAttr::default()
    };
    at_most(&one, 220 + 22, || {
        for dir in 0..10 {
            let dir = one.make_dir(&top, format!("{dir}").as_bytes());
            for file in 0..10 {
                let name = format!("{file}");
                assert_eq!(
                    one.look_up(&dir, name.as_bytes()).map(drop),
                    Err(Errno::ENOENT)
                );
                let flags = OpenFlags::CREATE | OpenFlags::WRITE_ONLY;
                let file = one
                    .fs
                    .create(&who(), &dir, name.as_bytes(), 0o644, flags)
                    .unwrap();
                assert_eq!(one.fs.write(&who(), &file, 0, b"content"), Ok(7));
                one.fs
                    .setattr(&who(), file.node(), &long_ago, Some(&file))
                    .unwrap();
                one.fs.flush(&file).unwrap();
            }
        }
    });
    let top = other.top();
    at_most(&other, 120 + 12, || {
        for name in other.list_long(&top) {
            let dir = other.look_up(&top, &name).unwrap();
            for file in other.list_long(&dir) {
                other.fs.unlink(&who(), &dir, &file).unwrap();
            }
            other.fs.rmdir(&who(), &top, &name).unwrap();
        }
    });
}
