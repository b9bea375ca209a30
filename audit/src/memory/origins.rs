//! The call stack that allocated each block.
//!
//! The tables have their size from the start and never grow: their memory is not mixed with that
//! of the file system under audit. What does not fit is forgotten.

use std::collections::HashMap;
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, Ordering};

use super::Calls;

const BLOCKS: usize = 1 << 18;
const PLACES: usize = 1 << 12;

/// Aligned to lines of its own: every allocation reads `wanted`, recorded ones too. A static of
/// the product on the same line would seem to be shared.
#[repr(align(128))]
struct Notes {
    wanted: AtomicBool,
    table: Mutex<Option<Table>>,
}

static NOTES: Notes = Notes {
    wanted: AtomicBool::new(false),
    table: Mutex::new(None),
};

struct Table {
    /// By address: size, and index of the calls.
    blocks: HashMap<u64, (usize, usize)>,
    indices: HashMap<Calls, usize>,
    calls: Vec<Calls>,
}

/// A block of the heap.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Origin {
    /// Its first byte.
    pub(crate) start: u64,
    /// Its length as it was asked for.
    pub(crate) size: usize,
    /// The callers, innermost first; empty for a block allocated during a recorded operation.
    pub(crate) calls: Vec<u64>,
}

pub(super) fn start() {
    let table = Table {
        blocks: HashMap::with_capacity(BLOCKS),
        indices: HashMap::with_capacity(PLACES),
        calls: Vec::with_capacity(PLACES),
    };
    *lock() = Some(table);
    NOTES.wanted.store(true, Ordering::Release);
}

/// Are notes to be taken? Pairs with the release in [`start`].
pub(super) fn wanted() -> bool {
    NOTES.wanted.load(Ordering::Acquire)
}

pub(super) fn add(address: u64, size: usize, calls: Calls) {
    let mut table = lock();
    let Some(table) = table.as_mut() else { return };
    if table.blocks.len() == BLOCKS {
        return;
    }
    let index = match table.indices.get(&calls) {
        Some(&known) => known,
        None if table.calls.len() == PLACES => return,
        None => {
            table.calls.push(calls);
            table.indices.insert(calls, table.calls.len() - 1);
            table.calls.len() - 1
        }
    };
    table.blocks.insert(address, (size, index));
}

pub(super) fn remove(address: u64) {
    if let Some(table) = lock().as_mut() {
        table.blocks.remove(&address);
    }
}

/// The blocks with bytes in `start..end`.
pub(super) fn within(start: u64, end: u64) -> Vec<Origin> {
    let table = lock();
    let Some(table) = table.as_ref() else {
        return Vec::new();
    };
    let mut found: Vec<Origin> = table
        .blocks
        .iter()
        .filter(|&(&at, &(size, _))| at < end && at + size as u64 > start)
        .map(|(&at, &(size, index))| Origin {
            start: at,
            size,
            calls: table.calls[index]
                .iter()
                .copied()
                .take_while(|&call| call != 0)
                .collect(),
        })
        .collect();
    found.sort_by_key(|origin| origin.start);
    found
}

fn lock() -> std::sync::MutexGuard<'static, Option<Table>> {
    // A panic while it was held leaves a table that is whole but for one note.
    NOTES
        .table
        .lock()
        .unwrap_or_else(std::sync::PoisonError::into_inner)
}
