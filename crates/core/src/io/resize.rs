use crate::attributes::privileges::drop_privileges;
use crate::core::Core;
use crate::events::notify_event;
use crate::inode::{Inode, Numbered as _};
use crate::io::populate::lock_mapped;
use crate::io::reserve::outgrown;
use crate::node::Node;
use crate::quota::Check;
use crate::space::FileSpace;
use crate::store::{Change, Class, Intent, Operation};
use crate::through::Changed;
use crate::transaction::{Begun, begin_content};
use crate::types::{Caller, Result};
use crate::watch::EventMask;

/// Sets the size of a regular file; new bytes read as zeros. `modified`: its times change even
/// if the size does not, as open(2) and ftruncate(2) require, and truncate(2) does not.
pub(crate) fn resize_file(
    core: &Core,
    who: &Caller,
    node: &Node,
    size: u64,
    modified: bool,
) -> Result<()> {
    let inode = node.inode();
    let pages = inode.regular()?;
    let ino = inode.ino();
    let begun = begin_content(core, |through| {
        drop_privileges(core, who, node)?;
        through.perform(
            who,
            &Operation::Resize {
                ino,
                size,
                modified,
            },
        )
    });
    match begun? {
        Begun::Done(performed) => performed.update(node, Changed::Content)?,
        Begun::Decide(mut transaction) => {
            // Content that is dropped need not be loaded first.
            let keeps = size > 0;
            let mut pages = match keeps {
                true => lock_mapped(core, inode, pages)?,
                false => pages.lock(),
            };
            transaction.reserve(inode, &pages, 0..0, || intent_to_resize(core, inode, size))?;
            drop_privileges(core, who, node)?;
            let space = FileSpace::new(core, inode, Check::of(who));
            let mut transaction = transaction.lock([inode]);
            let record = {
                let mut meta = inode.write();
                // A change to the same size frees what was allocated behind the end, and like
                // in tmpfs moves the times of a file that has any space.
                if modified || size != meta.size || pages.pages() > 0 {
                    meta.modified(inode.time_of_change());
                }
                if size < meta.size {
                    pages.begin();
                }
                if size <= meta.size {
                    pages.truncate(size, space.account());
                }
                meta.size = size;
                inode.record(&meta)
            };
            pages.has_size(size);
            if !keeps {
                // Only after the size is 0: nothing is left to be loaded.
                core.unmapped.cut(ino);
                inode.completed();
            }
            space.submit(transaction.reservation());
            let truncate = Change::Truncate { ino, size };
            transaction.commit(&[truncate, Change::Attributes { inode: record }])?;
        }
    }
    notify_event(core, inode, EventMask::MODIFY);
    Ok(())
}

fn intent_to_resize(core: &Core, inode: &Inode, size: u64) -> Intent {
    let old = inode.size();
    Intent {
        class: match size > old {
            true => Class::Changing,
            false => Class::GivingBack,
        },
        ranges: 1,
        records: 1,
        moved: outgrown(core, old, size),
        ..Intent::default()
    }
}
