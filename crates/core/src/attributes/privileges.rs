//! Privileges that a file loses when its content changes.

use holdfast_sync::epoch;

use crate::core::Core;
use crate::inode::{Meta, MetaWrite, Numbered as _};
use crate::node::Node;
use crate::permission::set_id_bits_lost;
use crate::store::{Attributes, Change, Intent, Operation};
use crate::through::{Changed, itself};
use crate::transaction::{Begun, begin, release_kept};
use crate::types::{Caller, Caps, FileType, Result};
use crate::xattr::{CAPABILITY, holds};

/// Before a change of content: clears set-id bits unless the caller has `CAP_FSETID`, and file
/// capabilities in any case.
pub(crate) fn drop_privileges(core: &Core, who: &Caller, node: &Node) -> Result<()> {
    hop!();
    let keeps = who.has(Caps::FSETID);
    if keeps && !node.inode().may_have_extra_attrs() {
        return Ok(());
    }
    clear_privileges(core, node, |meta| {
        if keeps {
            0
        } else {
            set_id_bits_lost(who, meta)
        }
    })
}

/// Clears a regular file's capabilities and the mode bits that `bits` returns.
pub(crate) fn clear_privileges(
    core: &Core,
    node: &Node,
    bits: impl Fn(&Meta) -> u16,
) -> Result<()> {
    if node.kind() != FileType::Regular {
        return Ok(());
    }
    let inode = node.inode();
    let (perm, lost, has_capability) = {
        let guard = epoch::pin();
        let view = inode.view(&guard);
        let has_capability = holds(view.extra_attrs, CAPABILITY);
        (view.meta.perm, bits(&view.meta), has_capability)
    };
    if lost == 0 && !has_capability {
        return Ok(());
    }
    let operation = Operation::SetAttributes {
        ino: node.ino(),
        set: Attributes {
            perm: (lost != 0).then_some(perm & !lost),
            drops_capability: has_capability,
            ..Attributes::default()
        },
    };
    let intent = || Intent::changing().records(1).value(CAPABILITY.len());
    match begin(core, intent, |through| {
        through.perform(&itself(), &operation)
    })? {
        Begun::Done(performed) => performed.update(
            node,
            match has_capability {
                true => Changed::Rest,
                false => Changed::Nothing,
            },
        ),
        Begun::Decide(transaction) => {
            let transaction = transaction.lock([inode]);
            {
                let mut meta = inode.write();
                meta.perm &= !bits(&meta);
                take_capability(core, &mut meta);
                meta.ctime = inode.time_of_change();
            }
            let record = inode.record(&inode.meta());
            let attributes = Change::Attributes { inode: record };
            let capability = Change::Xattr {
                ino: node.ino(),
                name: CAPABILITY,
                value: None,
            };
            transaction.commit(&[attributes, capability])
        }
    }
}

/// Removes the capabilities of a file.
pub(super) fn take_capability(core: &Core, meta: &mut MetaWrite<'_>) {
    if meta.with_extra_attrs(|extra_attrs| holds(extra_attrs, CAPABILITY))
        && let Some(value) = meta.extra_attrs().xattrs.remove(CAPABILITY)
    {
        release_kept(core, CAPABILITY.len() + value.len());
    }
}
