//! Making reservations, and making space for them.

use holdfast_core::store::{Class, Grant, Intent};

use super::Inner;
use super::checkpoint::checkpoint;
use super::commit::{let_go, make_durable};
use super::memtable::TreeCost;
use super::reservation::Cost;
use crate::error::{Error, Result};
use crate::space::{self, Extent, Remedy};

/// Attempts, as others may take the space that was made.
const ATTEMPTS: usize = 6;
/// Changed keys from which on a checkpoint may free some blocks.
const WORTH_FOLDING: u64 = 64;
/// The part of the journal left to operations that free space.
const JOURNAL_PART: u64 = 8;
/// Larger charges of the journal are checked against all other charges.
const JOURNAL_FEW: u64 = 4;

/// What is short.
enum Shortage {
    Pages(space::Error),
    Records,
    Journal,
}

/// Reserves all that an operation may need. Commits or checkpoints first, where that makes
/// space.
///
/// # Errors
/// [`space::Error::Full`] if there is none: never for an operation that frees space, and not
/// for one in place while half of the reserve is left. What stopped the store.
pub(super) fn reserve(store: &Inner, intent: &Intent) -> Result<Grant> {
    reserve_blocks(store, &blocks_for(store, intent), intent.class)
}

/// As [`reserve`], without making space: `None` if that is needed.
pub(super) fn reserve_at_once(store: &Inner, intent: &Intent) -> Option<Grant> {
    try_to_reserve(store, &blocks_for(store, intent), intent.class).ok()
}

/// Extends a reservation that is too small for the batch. That happens only where concurrent
/// changes made the batch larger; the reserve covers it.
pub(super) fn cover(store: &Inner, held: &mut Grant, tree_cost: TreeCost) -> Result<()> {
    let missing = tree_cost
        .blocks_at_most(store.pool.above())
        .saturating_sub(held.records);
    if missing > 0 {
        let more = Grant {
            records: missing,
            ..Grant::NONE
        };
        held.records += reserve_blocks(store, &more, Class::GivingBack)?.records;
    }
    Ok(())
}

/// The worst case of these intentions.
#[inline]
fn blocks_for(store: &Inner, intent: &Intent) -> Grant {
    let cost = Cost::of(intent);
    Grant {
        pages: cost.pages,
        records: match cost.tree_cost {
            TreeCost { keys: 0, bytes: 0 } => 0,
            tree_cost => tree_cost.blocks_at_most(store.pool.above()),
        },
        journal: cost.journal,
        ..Grant::NONE
    }
}

#[inline]
fn reserve_blocks(store: &Inner, wanted: &Grant, class: Class) -> Result<Grant> {
    match try_to_reserve(store, wanted, class) {
        Ok(held) => Ok(held),
        Err(shortage) => reserve_in_the_end(store, wanted, class, shortage),
    }
}

#[inline]
fn try_to_reserve(store: &Inner, wanted: &Grant, class: Class) -> Result<Grant, Shortage> {
    hop!();
    let Grant {
        pages,
        records,
        journal,
        ..
    } = *wanted;
    if pages > 0 {
        store.space.reserve_blocks(pages).map_err(Shortage::Pages)?;
    }
    // Charge before the check: of two threads that charge the same space, at least one sees
    // both claims.
    store.pool.charge(records, journal);
    let paid = store.pool.pay(&store.reader, &store.budget, records, pages);
    let shortage = if !paid && !store.pool.has_room(&store.reader, class) {
        Shortage::Records
    } else if !journal_has_room(store, journal, class) {
        Shortage::Journal
    } else {
        #[cfg(test)]
        store.recorder.keep(wanted);
        return Ok(*wanted);
    };
    store.space.unreserve(pages);
    store.pool.uncharge(records, journal);
    if paid {
        store.pool.pay_back(records);
    }
    Err(shortage)
}

/// Has the journal room for all charges, which include `blocks`?
fn journal_has_room(store: &Inner, blocks: u64, class: Class) -> bool {
    let block = crate::block::BLOCK as u64;
    let (used, capacity) = (
        store.journal.used() / block,
        store.journal.capacity() / block,
    );
    if blocks <= JOURNAL_FEW && used < capacity / 2 {
        return true;
    }
    let left = match class {
        Class::GivingBack => 0,
        _ => capacity / JOURNAL_PART,
    };
    used + store.pool.journal() + left <= capacity
}

#[cold]
fn reserve_in_the_end(
    store: &Inner,
    wanted: &Grant,
    class: Class,
    mut shortage: Shortage,
) -> Result<Grant> {
    let _waits = store.counters.writer_waits.begin();
    for _ in 0..ATTEMPTS {
        if !make_room(store, &shortage)? {
            break;
        }
        match try_to_reserve(store, wanted, class) {
            Ok(held) => return Ok(held),
            Err(still) => shortage = still,
        }
    }
    if class != Class::GivingBack
        && ask_host_for_room(store)?
        && let Ok(held) = try_to_reserve(store, wanted, class)
    {
        return Ok(held);
    }
    match shortage {
        Shortage::Pages(error) => Err(error.into()),
        _ if store.pool.may_overdraw(&store.reader, class) => {
            store.pool.charge(wanted.records, wanted.journal);
            Ok(Grant {
                pages: 0,
                ..*wanted
            })
        }
        Shortage::Records | Shortage::Journal => Err(Error::Space(space::Error::Full {
            wanted: wanted.records,
            free: store.space.balance().0,
        })),
    }
}

/// Makes space; `false`: nothing helps.
fn make_room(store: &Inner, shortage: &Shortage) -> Result<bool> {
    store.stop.running()?;
    let changed = || store.reader.freeze_barrier.pass().tree_cost().keys;
    match shortage {
        Shortage::Pages(space::Error::Later { remedy }) => match remedy {
            Remedy::Commit => make_durable(store, None)?,
            Remedy::Checkpoint => checkpoint(store)?,
        },
        // Pages that were overwritten in cache or dropped leave reservations.
        Shortage::Pages(_) if store.pool.page_reservations.blocks() > 0 => {
            make_durable(store, None)?
        }
        Shortage::Pages(_) if changed() >= WORTH_FOLDING => checkpoint(store)?,
        Shortage::Pages(_) => return Ok(false),
        Shortage::Records => {
            let has_preallocations = store.space.preallocated() > 0;
            if has_preallocations {
                store.space.sweep(u64::MAX);
            }
            let waits = store.pool.page_reservations.blocks() > 0 || store.space.has_deferred();
            if !has_preallocations && !waits && changed() == 0 {
                return Ok(false);
            }
            checkpoint(store)?;
        }
        Shortage::Journal => checkpoint(store)?,
    }
    Ok(true)
}

/// Looks for new free space on an image's host, or makes some by discarding all free blocks.
///
/// # Errors
/// What stopped the store; those of the device, unless it takes no discards.
#[cold]
fn ask_host_for_room(store: &Inner) -> Result<bool> {
    let before = store.space.withheld();
    let withheld = store.pool.look_at_host(store.reader.blocks());
    if withheld < before {
        return Ok(true);
    }
    // Free blocks with host space; which they are is unknown.
    let excess = || {
        let (unpromised, for_nodes) = store.space.balance();
        let ours = unpromised + for_nodes + store.space.withheld();
        let room = store.reader.blocks().room();
        room.map_or(0, |room| store.pool.image().excess(room, ours))
    };
    let host = &store.pool.host;
    if withheld == 0 || !host.is_discard_worthwhile(excess()) {
        return Ok(false);
    }
    let_go(store)?;
    let discard = |extent: Extent| store.reader.blocks().discard(extent.start, extent.length);
    match store.space.trim(Extent::new(0, u64::MAX), 1, discard) {
        Ok(_) => host.set_kept(excess()),
        Err(Error::NoDiscard { .. }) => host.set_kept(u64::MAX),
        Err(error) => return Err(error),
    }
    Ok(store.pool.look_at_host(store.reader.blocks()) < withheld)
}
