//! The space that names, values and targets take in a memory file system is freed on every path.

use holdfast_core::types::{Caller, FileType, OpenFlags, RenameFlags, SetAttr, XattrSet};
use holdfast_core::{FileSystem, MemoryLimits, Node, Options};

const ACCESS: &[u8] = b"system.posix_acl_access";
const DEFAULT: &[u8] = b"system.posix_acl_default";
const CAPABILITY: &[u8] = b"security.capability";

struct World {
    fs: FileSystem,
    who: Caller,
}

impl World {
    fn file(&self, name: &[u8]) -> Node {
        let (who, root) = (&self.who, self.fs.root());
        self.fs
            .mknod(who, &root, name, FileType::Regular, 0o644, 0)
            .unwrap()
    }

    fn set(&self, node: &Node, name: &[u8], value: &[u8]) {
        self.fs
            .setxattr(&self.who, node, name, value, XattrSet::Any)
            .unwrap();
    }

    fn rename(&self, from: &[u8], to: &[u8], flags: RenameFlags) {
        let (who, root) = (&self.who, self.fs.root());
        self.fs.rename(who, &root, from, &root, to, flags).unwrap();
    }

    fn unlink(&self, name: &[u8]) {
        self.fs.unlink(&self.who, &self.fs.root(), name).unwrap();
    }
}

/// An ACL that gives another user these rights.
pub(crate) fn acl(perm: u16) -> Vec<u8> {
    let none = u32::MAX;
    let mut bytes = 2_u32.to_le_bytes().to_vec();
    for (tag, perm, id) in [
        (0x01_u16, 7_u16, none),
        (0x02, perm, 1000),
        (0x04, 5, none),
        (0x10, 7, none),
        (0x20, 0, none),
    ] {
        bytes.extend(tag.to_le_bytes());
        bytes.extend(perm.to_le_bytes());
        bytes.extend(id.to_le_bytes());
    }
    bytes
}

/// A sequence of operations.
type Way = (&'static str, fn(&World));

/// Sequences that add or remove names; the root is empty before and after.
fn ways_of_names() -> Vec<Way> {
    vec![
        ("a name that is removed", |world| {
            world.file(b"a");
            world.unlink(b"a");
        }),
        ("a longer name", |world| {
            world.file(b"a");
            world.rename(b"a", b"a longer name", RenameFlags::empty());
            world.unlink(b"a longer name");
        }),
        ("a name over another", |world| {
            world.file(b"a longer name");
            world.file(b"b");
            world.rename(b"a longer name", b"b", RenameFlags::empty());
            world.unlink(b"b");
        }),
        ("names that are exchanged", |world| {
            world.file(b"a longer name");
            world.file(b"b");
            world.rename(b"a longer name", b"b", RenameFlags::EXCHANGE);
            world.unlink(b"a longer name");
            world.unlink(b"b");
        }),
        ("a whiteout", |world| {
            world.file(b"a longer name");
            world.file(b"b");
            world.rename(b"a longer name", b"b", RenameFlags::WHITEOUT);
            world.unlink(b"a longer name");
            world.unlink(b"b");
        }),
        ("a link", |world| {
            let node = world.file(b"a");
            let (who, root) = (&world.who, world.fs.root());
            world.fs.link(who, &node, &root, b"another name").unwrap();
            world.unlink(b"a");
            world.unlink(b"another name");
        }),
        ("a target", |world| {
            let (who, root) = (&world.who, world.fs.root());
            world.fs.symlink(who, &root, b"s", &[b'x'; 3000]).unwrap();
            world.unlink(b"s");
        }),
    ]
}

/// Sequences that add or remove values; the root is empty before and after.
fn ways_of_values() -> Vec<Way> {
    vec![
        ("values that are replaced, removed, and left", |world| {
            let node = world.file(b"a");
            world.set(&node, b"user.one", &[1; 3000]);
            world.set(&node, b"user.one", &[1; 10]);
            world.set(&node, b"user.two", &[2; 3000]);
            world
                .fs
                .removexattr(&world.who, &node, b"user.two")
                .unwrap();
            world.unlink(b"a");
        }),
        ("capabilities that go with the owner", |world| {
            let node = world.file(b"a");
            world.set(&node, CAPABILITY, &[1; 3000]);
            let set = SetAttr {
                uid: Some(7),
                ..SetAttr::default()
            };
            world.fs.setattr(&world.who, &node, &set, None).unwrap();
            world.unlink(b"a");
        }),
        ("capabilities that go with the content", |world| {
            let node = world.file(b"a");
            world.set(&node, CAPABILITY, &[1; 3000]);
            let flags = OpenFlags::READ_WRITE;
            let file = world.fs.open(&world.who, &node, flags).unwrap();
            world.fs.write(&world.who, &file, 0, b"new").unwrap();
            world.unlink(b"a");
        }),
        ("an ACL", |world| {
            let node = world.file(b"a");
            world.set(&node, ACCESS, &acl(6));
            let set = SetAttr {
                perm: Some(0o600),
                ..SetAttr::default()
            };
            world.fs.setattr(&world.who, &node, &set, None).unwrap();
            world.fs.removexattr(&world.who, &node, ACCESS).unwrap();
            world.set(&node, ACCESS, &acl(6));
            world.unlink(b"a");
        }),
        ("ACLs that are inherited", |world| {
            let (who, root) = (&world.who, world.fs.root());
            let dir = world.fs.mkdir(who, &root, b"dir", 0o755).unwrap();
            world.set(&dir, DEFAULT, &acl(6));
            world.fs.mkdir(who, &dir, b"dir", 0o755).unwrap();
            let kind = FileType::Regular;
            world.fs.mknod(who, &dir, b"file", kind, 0o644, 0).unwrap();
            world.fs.unlink(who, &dir, b"file").unwrap();
            world.fs.rmdir(who, &dir, b"dir").unwrap();
            world.fs.rmdir(who, &root, b"dir").unwrap();
        }),
        ("a file that never had a name", |world| {
            let (who, root) = (&world.who, world.fs.root());
            let file = world
                .fs
                .tmpfile(who, &root, 0o600, OpenFlags::READ_WRITE)
                .unwrap();
            world.set(file.node(), b"user.one", &[1; 3000]);
        }),
    ]
}

#[test]
fn what_names_and_values_took_comes_back_however_they_go() {
    for (way, go) in ways_of_names().into_iter().chain(ways_of_values()) {
        let limits = MemoryLimits {
            bytes: Some(1 << 20),
            inodes: None,
        };
        let fs = FileSystem::memory(limits, Options::default());
        let who = Caller::root().with_umask(0o022);
        let world = World { fs, who };
        // A single leaked byte would cost a page.
        let free = || world.fs.statfs().unwrap().blocks_free;
        assert_eq!(free(), 256);
        go(&world);
        assert_eq!(free(), 256, "{way}");
    }
}

#[test]
fn without_room_names_and_values_are_refused_and_can_go() {
    let limits = MemoryLimits {
        bytes: Some(64 << 10),
        inodes: None,
    };
    let fs = FileSystem::memory(limits, Options::default());
    let who = Caller::root();
    let world = World { fs, who };
    let node = world.file(b"a");
    let set = |number: usize| {
        let name = format!("user.{number}");
        world.fs.setxattr(
            &world.who,
            &node,
            name.as_bytes(),
            &[1; 3000],
            XattrSet::Any,
        )
    };
    let taken = (0..).find(|number| set(*number).is_err()).unwrap();
    assert!((19..=21).contains(&taken), "{taken} values");
    let (who, root) = (&world.who, world.fs.root());
    let linked = world.fs.symlink(who, &root, b"s", &[b'x'; 4000]);
    assert_eq!(linked.err(), Some(holdfast_core::types::Errno::ENOSPC));
    world.fs.removexattr(who, &node, b"user.0").unwrap();
    set(0).unwrap();
    world.unlink(b"a");
    drop(node);
    assert_eq!(world.fs.statfs().unwrap().blocks_free, 16);
}
