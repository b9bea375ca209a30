//! Permissions, owners, ACLs.

use super::bench::{ROOT, expect};
use super::{Bench, Case, Check};
use crate::diff::op::{Object, Op};
use crate::diff::outcome::Outcome;
use holdfast_types::{Access, Errno, OpenFlags, RenameFlags, XattrSet};

pub(super) const CASES: &[Case] = &[
    Case::with_users("owner_group_and_others_have_their_own_bits", classes),
    Case::with_users("supplementary_groups_count", supplementary),
    Case::with_users("a_sticky_directory_protects_others_names", sticky),
    Case::with_users("a_setgid_directory_gives_its_group", setgid),
    Case::with_users("writing_clears_set_id_bits", set_id_bits),
    Case::with_users("only_the_superuser_gives_files_away", chown),
    Case::with_users("the_umask_takes_bits_away", umask),
    Case::with_users("an_acl_lets_a_named_user_in_up_to_the_mask", named_user),
    Case::with_users(
        "a_default_acl_is_inherited_instead_of_the_umask",
        default_acl,
    ),
    Case::with_users("extended_attributes_keep_to_their_namespaces", namespaces),
];

/// Numbers in the cast: 1000:1000 (+2000), 1001:1001 (+2000, 3000; umask 002), 1002:1000 (+3000).
const ALICE: usize = 1;
const BOB: usize = 2;
const CAROL: usize = 3;

fn opening(bench: &Bench, path: &str, flags: OpenFlags) -> Op {
    Op::Open {
        path: bench.at(path),
        flags,
        perm: 0o666,
        slot: 0,
    }
}

fn may(bench: &Bench, caller: usize, path: &str, want: Access) -> bool {
    let op = Op::Access {
        path: bench.at(path),
        want,
        follow: true,
    };
    bench.call(caller, &op).succeeded()
}

fn classes(bench: &Bench) -> Check {
    bench.file("f", 1, 10)?;
    bench.chown("f", 1000, 1000)?;
    // The owner may not, the group may read, others may write: classes do not add up.
    bench.chmod("f", 0o042)?;
    expect(
        !may(bench, ALICE, "f", Access::READ),
        "the owner's class counts for the owner",
    )?;
    expect(
        may(bench, CAROL, "f", Access::READ),
        "the group's for the group",
    )?;
    expect(!may(bench, CAROL, "f", Access::WRITE), "and only that")?;
    expect(
        may(bench, BOB, "f", Access::WRITE),
        "the others' for the others",
    )?;
    expect(!may(bench, BOB, "f", Access::READ), "and only that")?;
    expect(
        may(bench, ROOT, "f", Access::READ | Access::WRITE),
        "the superuser passes",
    )?;
    expect(
        !may(bench, ROOT, "f", Access::EXEC),
        "but executes nothing without any x",
    )?;
    bench.fails(
        ALICE,
        &opening(bench, "f", OpenFlags::empty()),
        Errno::EACCES,
    )
}

fn supplementary(bench: &Bench) -> Check {
    bench.file("f", 1, 10)?;
    bench.chown("f", 0, 3000)?;
    bench.chmod("f", 0o640)?;
    expect(may(bench, BOB, "f", Access::READ), "a member reads")?;
    expect(!may(bench, ALICE, "f", Access::READ), "another does not")?;
    bench.mkdir(ROOT, "d", 0o700)?;
    bench.file("d/f", 1, 10)?;
    bench.chmod("d/f", 0o666)?;
    bench.fails(
        ALICE,
        &opening(bench, "d/f", OpenFlags::empty()),
        Errno::EACCES,
    )
}

fn sticky(bench: &Bench) -> Check {
    bench.mkdir(ROOT, "d", 0o777)?;
    bench.chmod("d", 0o1777)?;
    bench.ok(ALICE, &opening(bench, "d/alice", OpenFlags::CREATE))?;
    bench.ok(BOB, &opening(bench, "d/bob", OpenFlags::CREATE))?;
    let plain = RenameFlags::empty();
    bench.fails(
        BOB,
        &Op::Unlink {
            path: bench.at("d/alice"),
        },
        Errno::EPERM,
    )?;
    bench.fails(BOB, &bench.renaming("d/alice", "d/x", plain), Errno::EPERM)?;
    bench.fails(
        BOB,
        &bench.renaming("d/bob", "d/alice", plain),
        Errno::EPERM,
    )?;
    bench.ok(
        ALICE,
        &Op::Unlink {
            path: bench.at("d/alice"),
        },
    )?;
    bench
        .ok(BOB, &bench.renaming("d/bob", "d/x", plain))
        .map(drop)
}

fn setgid(bench: &Bench) -> Check {
    bench.mkdir(ROOT, "d", 0o777)?;
    bench.chown("d", 0, 2000)?;
    bench.chmod("d", 0o2777)?;
    bench.ok(ALICE, &opening(bench, "d/f", OpenFlags::CREATE))?;
    bench.mkdir(CAROL, "d/sub", 0o755)?;
    expect(
        bench.stat("d/f")?.gid == 2000,
        "a file takes the directory's group",
    )?;
    let sub = bench.stat("d/sub")?;
    expect(
        sub.gid == 2000 && sub.perm & 0o2000 != 0,
        "a directory passes it on",
    )?;
    let op = Op::Open {
        path: bench.at("d/x"),
        flags: OpenFlags::CREATE,
        perm: 0o2775,
        slot: 0,
    };
    bench.ok(CAROL, &op)?;
    expect(
        bench.stat("d/x")?.perm & 0o2000 == 0,
        "no set-gid file for a group one is not in",
    )
}

fn set_id_bits(bench: &Bench) -> Check {
    bench.file("f", 1, 10)?;
    bench.chown("f", 1000, 1000)?;
    bench.chmod("f", 0o6777)?;
    bench.open(BOB, 0, "f", OpenFlags::WRITE_ONLY)?;
    bench.write(BOB, 0, 0, 1, 1)?;
    expect(
        bench.stat("f")?.perm == 0o777,
        "a stranger's write clears them",
    )?;
    bench.chmod("f", 0o6777)?;
    bench.chown("f", 1001, 1001)?;
    expect(bench.stat("f")?.perm & 0o6000 == 0, "so does a new owner")?;
    bench.chmod("f", 0o6777)?;
    bench.write(ROOT, 5, 0, 1, 1)?;
    expect(
        bench.stat("f")?.perm == 0o6777,
        "the superuser's write does not",
    )
}

fn chown(bench: &Bench) -> Check {
    bench.ok(ALICE, &opening(bench, "f", OpenFlags::CREATE))?;
    let to = |uid, gid| Op::Chown {
        object: Object::Path(bench.at("f")),
        uid,
        gid,
    };
    bench.fails(ALICE, &to(Some(1001), None), Errno::EPERM)?;
    bench.fails(ALICE, &to(None, Some(3000)), Errno::EPERM)?;
    bench.fails(BOB, &to(None, Some(2000)), Errno::EPERM)?;
    bench.ok(ALICE, &to(None, Some(2000)))?;
    bench.ok(ROOT, &to(Some(1001), Some(3000)))?;
    let view = bench.stat("f")?;
    expect(
        (view.uid, view.gid) == (1001, 3000),
        "owner and group are as set",
    )
}

fn umask(bench: &Bench) -> Check {
    for (caller, name, perm) in [(ALICE, "a", 0o644), (BOB, "b", 0o664), (CAROL, "c", 0o600)] {
        bench.ok(caller, &opening(bench, name, OpenFlags::CREATE))?;
        expect(
            bench.stat(name)?.perm == perm,
            "the mode is what the umask leaves",
        )?;
    }
    Ok(())
}

/// An ACL in the kernel's form: entries of tag, permissions, id.
fn acl(entries: &[(u16, u16, u32)]) -> Vec<u8> {
    let mut bytes = 2_u32.to_le_bytes().to_vec();
    for (tag, perm, id) in entries {
        bytes.extend(tag.to_le_bytes());
        bytes.extend(perm.to_le_bytes());
        bytes.extend(id.to_le_bytes());
    }
    bytes
}

const NOBODY: u32 = u32::MAX;

fn set(bench: &Bench, path: &str, name: &str, value: &[u8]) -> Op {
    let object = Object::Path(bench.at(path));
    Op::SetXattr {
        object,
        name: name.as_bytes().into(),
        value: value.into(),
        how: XattrSet::Any,
    }
}

fn named_user(bench: &Bench) -> Check {
    bench.file("f", 1, 10)?;
    bench.chmod("f", 0o600)?;
    let entries = [
        (1, 6, NOBODY),
        (2, 6, 1001),
        (4, 0, NOBODY),
        (16, 6, NOBODY),
        (32, 0, NOBODY),
    ];
    bench.ok(
        ROOT,
        &set(bench, "f", "system.posix_acl_access", &acl(&entries)),
    )?;
    expect(
        may(bench, BOB, "f", Access::READ | Access::WRITE),
        "the named user may",
    )?;
    expect(!may(bench, ALICE, "f", Access::READ), "another may not")?;
    expect(
        bench.stat("f")?.perm == 0o660,
        "the group's bits show the mask",
    )?;
    bench.chmod("f", 0o640)?;
    expect(
        !may(bench, BOB, "f", Access::WRITE),
        "chmod narrows the mask",
    )?;
    expect(
        may(bench, BOB, "f", Access::READ),
        "and leaves what it allows",
    )
}

fn default_acl(bench: &Bench) -> Check {
    bench.mkdir(ROOT, "d", 0o777)?;
    bench.chmod("d", 0o777)?;
    let entries = [
        (1, 7, NOBODY),
        (2, 7, 1001),
        (4, 5, NOBODY),
        (16, 7, NOBODY),
        (32, 0, NOBODY),
    ];
    let value = acl(&entries);
    bench.ok(ROOT, &set(bench, "d", "system.posix_acl_default", &value))?;
    let op = Op::Open {
        path: bench.at("d/f"),
        flags: OpenFlags::CREATE,
        perm: 0o666,
        slot: 0,
    };
    bench.ok(CAROL, &op)?;
    expect(
        bench.stat("d/f")?.perm == 0o660,
        "the default ACL stands for the umask",
    )?;
    expect(
        may(bench, BOB, "d/f", Access::READ | Access::WRITE),
        "it lets the named user in",
    )?;
    bench.mkdir(CAROL, "d/sub", 0o777)?;
    let object = Object::Path(bench.at("d/sub"));
    let get = Op::GetXattr {
        object,
        name: b"system.posix_acl_default".into(),
    };
    expect(
        bench.ok(ROOT, &get)? == Outcome::Data(value),
        "a subdirectory hands it down",
    )
}

fn namespaces(bench: &Bench) -> Check {
    bench.ok(ALICE, &opening(bench, "f", OpenFlags::CREATE))?;
    bench.ok(ALICE, &set(bench, "f", "user.note", b"value"))?;
    let get = |name: &str| {
        let object = Object::Path(bench.at("f"));
        Op::GetXattr {
            object,
            name: name.as_bytes().into(),
        }
    };
    let value = bench.ok(BOB, &get("user.note"))?;
    expect(
        value == Outcome::Data(b"value".to_vec()),
        "who may read the file reads it",
    )?;
    bench.fails(BOB, &set(bench, "f", "user.note", b"other"), Errno::EACCES)?;
    bench.fails(ALICE, &set(bench, "f", "trusted.note", b"x"), Errno::EPERM)?;
    bench.ok(ROOT, &set(bench, "f", "trusted.note", b"x"))?;
    bench.fails(ALICE, &get("trusted.note"), Errno::ENODATA)?;
    let list = Op::ListXattr {
        object: Object::Path(bench.at("f")),
    };
    let seen = Outcome::XattrNames(vec![b"user.note".into()]);
    expect(
        bench.ok(ALICE, &list)? == seen,
        "users do not even see trusted names",
    )?;
    bench.fails(
        ROOT,
        &set(bench, "f", "nowhere.note", b"x"),
        Errno::EOPNOTSUPP,
    )
}
