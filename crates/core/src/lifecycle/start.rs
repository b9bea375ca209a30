//! The start of a file system.

use holdfast_cache::memory::Memory;
use holdfast_sync::Prepared;
use std::sync::Arc;

use crate::by_number::find_node;
use crate::core::Core;
use crate::inode::{Content, ContentState, Extension, Meta, Numbered as _, Object};
use crate::namespace::publish::publish_inode;
use crate::node::Node;
use crate::options::Options;
use crate::quota::Check;
use crate::reclaim::usage::join_memory;
use crate::shared::notified::hear_of_changes;
use crate::store::{Change, Intent, MemoryLimits, MemoryStore, Store};
use crate::transaction::decide;
use crate::types::{Errno, FileType, Ino, Result};
use crate::{FileSystem, clock, inode};

impl FileSystem {
    /// A file system over a store. A store without a root gets one, with the attributes of the
    /// options.
    ///
    /// # Errors
    /// Those of the store; `EUCLEAN` when its root is not a directory. `EINVAL` for a store that is
    /// written through and not shared.
    pub fn new(store: Arc<dyn Store>, options: Options) -> Result<Self> {
        let memory = Memory::of_process();
        if options.memory.is_some() {
            memory.set(options.memory);
        }
        Self::within(store, options, Arc::clone(memory))
    }

    /// Like [`new`](Self::new), within a memory budget of its own: [`Options::memory`] is ignored.
    ///
    /// # Errors
    /// Those of [`new`](Self::new).
    pub fn within(store: Arc<dyn Store>, options: Options, memory: Arc<Memory>) -> Result<Self> {
        let core = Arc::new(Core::new(store, &options, memory)?);
        if core.coherence.as_ref().is_some_and(|it| it.is_dated()) {
            core.policy.dated();
            hear_of_changes(&core);
        }
        if !core.pinned {
            core.store.join(&core.reclaim.memory);
            join_memory(&core);
        }
        let route = core.registration.publish(Arc::downgrade(&core));
        let fs = Self {
            core,
            route: Arc::new(route),
        };
        let root = match find_node(&fs.core, Ino::ROOT) {
            Ok(root) if root.kind() == FileType::Directory => root,
            Ok(_) => return Err(Errno::EUCLEAN),
            Err(Errno::ESTALE) => make_root(&fs.core, &options)?,
            Err(error) => return Err(error),
        };
        // There is none yet.
        let _ = fs.core.root.set(Box::new(root));
        Ok(fs)
    }

    /// A file system in memory, within these limits.
    ///
    /// # Panics
    /// Never: a memory store refuses only inodes beyond its limit, and the root is not counted
    /// against a limit of 0.
    #[must_use]
    pub fn memory(limits: MemoryLimits, options: Options) -> Self {
        let limits = MemoryLimits {
            inodes: limits.inodes.map(|inodes| inodes.max(1)),
            ..limits
        };
        Self::new(Arc::new(MemoryStore::new(limits)), options)
            .expect("a memory store makes room for its root")
    }
}

fn make_root(core: &Core, options: &Options) -> Result<Node> {
    let mut transaction = decide(
        core,
        &Intent {
            inodes: 1,
            ..Intent::default()
        },
    )?;
    let mut meta = Meta::new(
        options.root_perm & 0o7777,
        options.root_uid.unwrap_or(0),
        options.root_gid.unwrap_or(0),
        clock::now(),
    );
    meta.nlink = 2;
    meta.size = inode::directory_size(0);
    let content = Content::of(FileType::Directory, Ino::ROOT, 0, None);
    let extension = Extension::of(content, None);
    let fs = core.registration.number();
    let root = Object::new(fs, FileType::Directory, &meta, extension, ContentState::All);
    let root = Prepared::new(root);
    let root = publish_inode(
        core,
        Ino::ROOT,
        root,
        Check::Nothing,
        transaction.reservation(),
    )?;
    let record = root.inode().record(&root.inode().meta());
    let create = Change::Create {
        inode: record,
        target: None,
    };
    transaction.commit(&[create])?;
    Ok(root)
}
