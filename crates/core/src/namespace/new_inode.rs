//! New inodes: attributes, inheritance, and their submission to the store.

use holdfast_sync::Prepared;
use holdfast_sync::epoch;

use crate::acl::{self, ACL_ACCESS, ACL_DEFAULT, Acl};
use crate::core::Core;
use crate::directory::Names;
use crate::inode::{
    Content, ContentState, Extension, ExtraAttrs, Inode, Meta, Numbered as _, Object,
    directory_size,
};
use crate::node::Node;
use crate::permission::in_group_or_capable;
use crate::store::{Change, Intent};
use crate::transaction::LockedTransaction;
use crate::types::{Caller, FileFlags, FileType, Ino, Result, S_ISGID, Time};

/// The arguments of a creation.
#[derive(Clone, Copy, Debug)]
pub(crate) struct NewInode<'a> {
    /// Type.
    pub(crate) kind: FileType,
    /// Requested permission bits.
    pub(crate) perm: u16,
    /// Device number.
    pub(crate) rdev: u64,
    /// The target of a symbolic link.
    pub(crate) target: Option<&'a [u8]>,
    /// For a file without a name: may it get one?
    pub(crate) linkable: bool,
}

impl NewInode<'_> {
    pub(crate) fn of(kind: FileType, perm: u16) -> Self {
        Self {
            kind,
            perm,
            rdev: 0,
            target: None,
            linkable: false,
        }
    }
}

/// Attributes of a new inode that depend on its directory and the caller.
pub(crate) struct Inherited {
    pub(crate) perm: u16,
    pub(crate) gid: u32,
    access: Option<Acl>,
    default_acl: Option<Acl>,
    pub(crate) flags: FileFlags,
    pub(crate) project: u32,
}

impl Inherited {
    /// The access ACL and the default ACL as values of extended attributes.
    pub(crate) fn acls(&self) -> [Option<Box<[u8]>>; 2] {
        [&self.access, &self.default_acl].map(|acl| acl.as_ref().map(acl::to_xattr))
    }
}

/// A number for a new inode. A store keeps inodes in the order of their numbers, so files get
/// numbers from their directory's chunk. A directory gets one from the thread's run, so that
/// directories created by different threads are not neighbours in the store.
#[inline]
pub(super) fn assign_number(core: &Core, names: &mut Names<'_>, kind: FileType) -> Ino {
    hop!();
    if kind.is_dir() {
        core.numbers.assign()
    } else {
        names.next_number(&core.numbers)
    }
}

/// The intent of a creation in this directory, with a name or without.
pub(crate) fn intent_to_make(dir: &Inode, name: Option<&[u8]>, new_inode: &NewInode<'_>) -> Intent {
    hop!();
    let intent = Intent {
        inodes: 1,
        records: 1,
        ..Intent::default()
    };
    intent_of_new_inode(dir, name, new_inode, intent)
}

/// Adds the name, the target and the ACLs of a new inode to `intent`.
pub(super) fn intent_of_new_inode(
    dir: &Inode,
    name: Option<&[u8]>,
    new_inode: &NewInode<'_>,
    mut intent: Intent,
) -> Intent {
    if let Some(name) = name {
        intent = intent.name(name);
    }
    if let Some(target) = new_inode.target {
        intent = intent.value(target.len());
    }
    if dir.may_have_extra_attrs() && new_inode.kind != FileType::Symlink {
        let guard = epoch::pin();
        let extra_attrs = dir.extra_attrs(&guard);
        if let Some(default) = extra_attrs.and_then(|extra_attrs| extra_attrs.default_acl.as_ref())
        {
            let len = acl::to_xattr(default).len();
            intent = intent.value(ACL_ACCESS.len() + len);
            if new_inode.kind.is_dir() {
                intent = intent.value(ACL_DEFAULT.len() + len);
            }
        }
    }
    intent
}

/// The attributes of a new inode that depend on its directory and the caller.
#[inline]
pub(crate) fn inherited(who: &Caller, dir: &Inode, new_inode: NewInode<'_>) -> Inherited {
    let NewInode { kind, mut perm, .. } = new_inode;
    let (dir_perm, dir_gid, default_acl, flags, project) = {
        let guard = epoch::pin();
        let view = dir.view(&guard);
        let flags = view.meta.flags & FileFlags::INHERITED;
        let project = match flags.contains(FileFlags::PROJECT_INHERIT) {
            true => view
                .extra_attrs
                .map_or(0, |extra_attrs| extra_attrs.project),
            false => 0,
        };
        let default_acl = view.default_acl().cloned();
        (view.meta.perm, view.meta.gid, default_acl, flags, project)
    };
    let inherits = dir_perm & S_ISGID != 0;
    let gid = if inherits { dir_gid } else { who.gid };
    if inherits && kind.is_dir() {
        perm |= S_ISGID;
    } else if inherits
        && perm & (S_ISGID | 0o010) == S_ISGID | 0o010
        && !in_group_or_capable(who, dir_gid)
    {
        perm &= !S_ISGID;
    }
    let mut access = None;
    match &default_acl {
        _ if kind == FileType::Symlink => {}
        Some(default) => (access, perm) = acl::create(default, perm),
        None => perm &= !who.umask,
    }
    Inherited {
        perm: perm & 0o7777,
        gid,
        access,
        default_acl: default_acl.filter(|_| kind.is_dir()),
        flags: flags.of_kind(kind),
        project,
    }
}

/// Allocates a new inode. `cookie`: that of its name in `dir`.
pub(crate) fn allocate_inode(
    core: &Core,
    who: &Caller,
    dir: &Inode,
    now: Time,
    cookie: u64,
    new_inode: NewInode<'_>,
) -> Result<Prepared<Object>> {
    hop!();
    let Inherited {
        perm,
        gid,
        access,
        default_acl,
        flags,
        project,
    } = inherited(who, dir, new_inode);
    let NewInode {
        kind, rdev, target, ..
    } = new_inode;
    let (nlink, size) = match target {
        _ if kind.is_dir() => (2, directory_size(0)),
        Some(target) => (1, target.len() as u64),
        None => (1, 0),
    };
    // Built in place: see `Meta::new`.
    let meta = Meta {
        nlink,
        size,
        home: (dir.ino(), cookie),
        flags,
        ..Meta::new(perm, who.uid, gid, now)
    };
    let has_rare = access.is_some() || default_acl.is_some() || project != 0;
    let extra_attrs = has_rare.then(|| {
        Box::new(ExtraAttrs {
            acl: access,
            default_acl,
            project,
            ..ExtraAttrs::default()
        })
    });
    let extension = if kind == FileType::Regular && extra_attrs.is_none() {
        None
    } else {
        Extension::of(Content::of(kind, dir.ino(), rdev, target), extra_attrs)
    };
    let beside = extension.as_ref().map_or(0, |extension| extension.memory());
    let fs = core.registration.number();
    let object = Prepared::with(|| Object::new(fs, kind, &meta, extension, ContentState::All));
    // Quotas count an inode from its publication on, and only stores that pin have quotas.
    if !core.pinned {
        core.reclaim.extension_sizes.came(1, beside);
        object.mark_new();
        object.mark_loaded(&core.reclaim.epochs, false);
        if kind == FileType::Regular {
            // Content that is written later counts as loaded now.
            object.mark_content_loaded(&core.reclaim.epochs, false);
        }
    }
    Ok(object)
}

/// Commits a new inode, and its name if it has one: then the directory is locked.
pub(crate) fn commit_new_inode<const N: usize>(
    transaction: LockedTransaction<'_, '_, N>,
    dir: &Inode,
    node: &Node,
    target: Option<&[u8]>,
    named: Option<(&[u8], u64)>,
) -> Result<()> {
    hop!();
    let inode = node.inode();
    let (ino, kind) = (inode.ino(), inode.kind());
    let (meta, acls) = {
        let guard = epoch::pin();
        let view = inode.view(&guard);
        let value = |acl: Option<&Acl>| acl.map(acl::to_xattr);
        let acls = [value(view.acl()), value(view.default_acl())];
        (view.meta, acls)
    };
    let mut batch = Vec::with_capacity(5);
    batch.push(Change::Create {
        inode: inode.record(&meta),
        target,
    });
    batch.extend(values(ino, &acls));
    if let Some((name, cookie)) = named {
        batch.push(Change::Enter {
            dir: dir.ino(),
            name,
            cookie,
            ino,
            kind,
        });
        batch.push(Change::Attributes {
            inode: dir.record(&dir.meta()),
        });
    }
    transaction.commit(&batch)?;
    inode.clear_new();
    Ok(())
}

/// A new inode's ACLs as changes for the store.
fn values(ino: Ino, acls: &[Option<Box<[u8]>>; 2]) -> impl Iterator<Item = Change<'_>> {
    let named = acls.iter().zip([ACL_ACCESS, ACL_DEFAULT]);
    named.filter_map(move |(acl, name)| {
        Some(Change::Xattr {
            ino,
            name,
            value: Some(acl.as_deref()?),
        })
    })
}
