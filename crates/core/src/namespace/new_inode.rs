//! What a new inode is like, and what its store hears of it.

use holdfast_sync::Prepared;
use holdfast_sync::epoch;

use crate::acl::{self, ACL_ACCESS, ACL_DEFAULT, Acl};
use crate::directory::Names;
use crate::file_system::{Core, Scope};
use crate::inode::{
    Content, Extension, ExtraAttrs, Inode, Known, Meta, Numbered as _, Object, directory_size,
};
use crate::log_order::Taken;
use crate::node::Node;
use crate::permission::in_group_or_capable;
use crate::store::{Change, Intent, Reservation};
use crate::types::{Caller, FileFlags, FileType, Ino, Result, S_ISGID, Time};

/// What is to be made.
#[derive(Clone, Copy, Debug)]
pub(crate) struct NewInode<'a> {
    /// Type.
    pub(crate) kind: FileType,
    /// Permission bits asked for.
    pub(crate) perm: u16,
    /// Device number.
    pub(crate) rdev: u64,
    /// The target of a symbolic link.
    pub(crate) target: Option<&'a [u8]>,
}

impl NewInode<'_> {
    pub(crate) fn of(kind: FileType, perm: u16) -> Self {
        Self {
            kind,
            perm,
            rdev: 0,
            target: None,
        }
    }
}

/// What a new inode has of its directory and its maker.
pub(crate) struct Inherited {
    pub(crate) perm: u16,
    pub(crate) gid: u32,
    access: Option<Acl>,
    default_acl: Option<Acl>,
    flags: FileFlags,
    project: u32,
}

impl Inherited {
    /// The access control lists, as extended attributes: for access, and for what is made in it.
    pub(crate) fn acls(&self) -> [Option<Box<[u8]>>; 2] {
        [&self.access, &self.default_acl].map(|acl| acl.as_ref().map(acl::to_xattr))
    }
}

impl Core {
    /// A number for a new inode in the directory of these names. A store keeps inodes in the order of
    /// their numbers: there they are dealt by directory, but for directories. Those that different threads make
    /// are not neighbours, so that what changes in one meets nothing of the other.
    #[inline]
    pub(super) fn number(&self, names: &mut Names<'_>, kind: FileType) -> Ino {
        if self.pinned || kind.is_dir() {
            self.numbers.deal()
        } else {
            names.next_number(&self.numbers)
        }
    }

    /// Reserves what a new inode of this directory may take, with its name if it gets one. Before the name is
    /// locked: whether it is free is not known yet.
    ///
    /// # Errors
    /// Those of [`Behind::reserve`](crate::store::Behind::reserve).
    pub(crate) fn reserve_new_inode(
        &self,
        dir: &Inode,
        name: Option<&[u8]>,
        new_inode: &NewInode<'_>,
    ) -> Result<Reservation<'_>> {
        let intent = Intent {
            inodes: 1,
            records: 1,
            ..Intent::default()
        };
        self.reserve(&self.intent_of_new_inode(dir, name, new_inode, intent))
    }

    /// What the name, the target and the ACLs of a new inode may take, too.
    pub(super) fn intent_of_new_inode(
        &self,
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
            if let Some(default) =
                extra_attrs.and_then(|extra_attrs| extra_attrs.default_acl.as_ref())
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

    /// What a new inode has of its directory and its maker.
    #[inline]
    pub(crate) fn inherited(
        &self,
        who: &Caller,
        dir: &Inode,
        new_inode: NewInode<'_>,
    ) -> Inherited {
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

    /// Builds a new inode: owner, group, mode and ACLs as directory and caller decide. `cookie`: the one
    /// that its name in `dir` will have.
    pub(crate) fn allocate_inode(
        &self,
        who: &Caller,
        dir: &Inode,
        now: Time,
        cookie: u64,
        new_inode: NewInode<'_>,
    ) -> Result<Prepared<Object>> {
        let Inherited {
            perm,
            gid,
            access,
            default_acl,
            flags,
            project,
        } = self.inherited(who, dir, new_inode);
        let NewInode {
            kind, rdev, target, ..
        } = new_inode;
        let (nlink, size) = match target {
            _ if kind.is_dir() => (2, directory_size(0)),
            Some(target) => (1, target.len() as u64),
            None => (1, 0),
        };
        // Never in memory but in the inode: see `Meta::new`.
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
        let fs = self.registration.number();
        let object = Prepared::with(|| Object::new(fs, kind, &meta, extension, Known::All));
        if !self.pinned {
            self.reclaim.extension_sizes.came(1, beside);
            object.unborn();
            object.arrive(&self.reclaim.epochs, false);
            if kind == FileType::Regular {
                // What is written is its content from then on.
                object.content_comes(&self.reclaim.epochs, false);
            }
        }
        Ok(object)
    }

    /// Tells the store of a new inode, and of its name if it has one, in the directory's turn.
    pub(crate) fn record_new_inode(
        &self,
        reservation: &mut Reservation<'_>,
        dir: &Inode,
        node: &Node,
        target: Option<&[u8]>,
        named: Option<(&[u8], u64, Option<Taken<'_, 1>>)>,
    ) -> Result<()> {
        let inode = node.inode();
        let (ino, kind) = (inode.ino(), inode.kind());
        let (meta, acls) = {
            let guard = epoch::pin();
            let view = inode.view(&guard);
            let value = |acl: Option<&Acl>| acl.map(acl::to_xattr);
            let acls = [value(view.acl()), value(view.default_acl())];
            (view.meta, acls)
        };
        let create = || Change::Create {
            inode: inode.record(&meta),
            target,
        };
        // Nobody else changes what is new: it needs no turn.
        let Some((name, cookie, turn)) = named else {
            let batch: Vec<_> = std::iter::once(create())
                .chain(values(ino, &acls))
                .collect();
            self.apply(reservation, [], &batch)?;
            inode.born();
            return Ok(());
        };
        let held = reservation.held();
        self.in_log_order(turn, Scope::Names, || {
            let enter = || Change::Enter {
                dir: dir.ino(),
                name,
                cookie,
                ino,
                kind,
            };
            let of_dir = || Change::Attributes {
                inode: dir.record(&dir.meta()),
            };
            if acls.iter().all(Option::is_none) {
                // Nearly always: it needs no memory of its own, and is put together where it stays.
                return self.behind.apply(held, &[create(), enter(), of_dir()]);
            }
            let mut batch: Vec<_> = std::iter::once(create())
                .chain(values(ino, &acls))
                .collect();
            batch.extend([enter(), of_dir()]);
            self.behind.apply(held, &batch)
        })?;
        inode.born();
        Ok(())
    }
}

/// The ACLs that a new inode has, as its store hears of them.
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
