//! fallocate(2).

use std::ops::Range;

use holdfast_cache::{Account, PagesLock};

use crate::FileSystem;
use crate::attributes::privileges::drop_privileges;
use crate::core::Core;
use crate::events::notify_event;
use crate::inode::{Inode, Numbered as _};
use crate::io::checks::{SIZE_MAX, writable};
use crate::io::pages::PAGE;
use crate::io::populate::{lock_with, map_missing};
use crate::notify::notify_inode;
use crate::open_file::OpenFile;
use crate::quota::Check;
use crate::shared::refresh_inode;
use crate::space::FileSpace;
use crate::store::{Change, Class, Intent, Operation, Reservation};
use crate::through::Changed;
use crate::transaction::{Begun, Transaction, begin_content};
use crate::types::{Caller, Errno, Fallocate, FileType, Ino, Result};
use crate::watch::EventMask;

/// Bytes that are allocated in one step over a store that reserves space.
const PART: u64 = 16 << 20;

/// The operation that a mode word requests.
#[derive(Clone, Copy, PartialEq, Eq)]
enum What {
    Allocate,
    Punch,
    Zero,
    Collapse,
    Insert,
}

/// A request with a valid mode.
#[derive(Clone, Copy)]
struct Request {
    what: What,
    keep_size: bool,
    offset: u64,
    len: u64,
}

impl Request {
    /// Does it allocate space?
    fn takes_space(self) -> bool {
        matches!(self.what, What::Allocate | What::Zero)
    }

    fn end(self) -> u64 {
        self.offset + self.len
    }

    fn pages(self) -> Range<u64> {
        self.offset / PAGE..self.end().div_ceil(PAGE)
    }
}

impl FileSystem {
    /// Allocates, frees, zeroes, removes or inserts a range, as `mode` says.
    ///
    /// # Errors
    /// `EINVAL` for an empty range, and for COLLAPSE and INSERT of ranges that are not whole pages
    /// or reach the end. `EOPNOTSUPP` for modes that cannot be combined. `EBADF` if not open for
    /// writing. `EISDIR`; `ENODEV` for other kinds of inode. `ENOSPC`, `EDQUOT`: nothing changed,
    /// except that the first part of a long range may be allocated. `EPERM` if the file is
    /// immutable, or append-only and this is more than allocating. `EFBIG`.
    pub fn fallocate(
        &self,
        who: &Caller,
        file: &OpenFile,
        mode: Fallocate,
        offset: u64,
        len: u64,
    ) -> Result<()> {
        let core = &self.core;
        let request = parse(file, mode, offset, len)?;
        let pages = writable(file)?;
        core.writable()?;
        let node = file.node();
        let inode = node.inode();
        let may_change = || match mode.difference(Fallocate::KEEP_SIZE).is_empty() {
            true => inode.not_immutable(),
            false => inode.allow_change(),
        };
        let begun = begin_content(core, |through| {
            may_change()?;
            refresh_inode(core, inode)?;
            new_size(request, inode.size())?;
            drop_privileges(core, who, node)?;
            let ino = inode.ino();
            let operation = Operation::Allocate {
                ino,
                mode,
                offset,
                len,
            };
            through.perform(who, &operation)
        });
        match begun? {
            Begun::Done(performed) => performed.update(node, Changed::Content)?,
            Begun::Decide(transaction) => {
                let mut pages = lock_with(core, inode, pages, |_| {
                    may_change()?;
                    Ok(map_missing(inode))
                })?;
                drop_privileges(core, who, node)?;
                has_room_for(core, request, &pages)?;
                for part in parts(core, request) {
                    fallocate(core, who, transaction.part(), inode, &mut pages, part)?;
                }
            }
        }
        notify_event(core, inode, EventMask::MODIFY);
        notify_inode(core, who, inode.ino(), true);
        Ok(())
    }
}

/// Performs a request, all or nothing.
fn fallocate(
    core: &Core,
    who: &Caller,
    mut transaction: Transaction<'_>,
    inode: &Inode,
    pages: &mut PagesLock<'_>,
    request: Request,
) -> Result<()> {
    let size = inode.size();
    let new_size = new_size(request, size)?;
    let bytes = request.offset..request.end();
    let intent = || intent_of(core, request, size, pages.pages());
    transaction.reserve(inode, pages, bytes, intent)?;
    let space = FileSpace::new(core, inode, Check::of(who));
    if new_size < size {
        pages.begin();
    }
    let change = perform(request, inode.ino(), pages, space.account())?;
    let mut transaction = transaction.lock([inode]);
    {
        let mut meta = inode.write();
        meta.size = new_size;
        meta.modified(inode.time_of_change());
        if request.takes_space() && request.end() > new_size {
            // Space behind the end is rare. The mark makes a later load ask the store for it.
            meta.extra_attrs();
        }
    }
    let record = inode.record(&inode.meta());
    pages.has_size(new_size);
    space.submit(transaction.reservation());
    transaction.commit(&[change, Change::Attributes { inode: record }])
}

/// Splits a request into steps: each extent that the store allocates is a record of its
/// journal.
fn parts(core: &Core, request: Request) -> impl Iterator<Item = Request> {
    let most = match request.takes_space() && !core.pinned {
        true => PART,
        false => u64::MAX,
    };
    let end = request.end();
    let mut next = Some(request.offset).filter(|at| *at < end);
    std::iter::from_fn(move || {
        let offset = next?;
        // Parts begin at multiples of `PART`.
        let len = most.saturating_sub(offset % most).min(end - offset);
        next = Some(offset + len).filter(|at| *at < end);
        Some(Request {
            offset,
            len,
            ..request
        })
    })
}

/// Refuses a request of several parts without room, before the first of them.
fn has_room_for(core: &Core, request: Request, held: &PagesLock<'_>) -> Result<()> {
    if core.pinned || !request.takes_space() || request.len <= PART {
        return Ok(());
    }
    if held.have_space(&request.pages()) {
        return Ok(());
    }
    let pages = (request.len / PAGE).saturating_sub(held.pages());
    Reservation::of(
        &*core.behind,
        &Intent {
            pages,
            ..Intent::default()
        },
    )
    .map(drop)
}

/// Upper bounds for a request, without space for pages that have none.
fn intent_of(core: &Core, request: Request, size: u64, held: u64) -> Intent {
    let pages = request.pages();
    let pages = pages.end - pages.start;
    let intent = Intent {
        ranges: 1,
        records: 1,
        moved: u64::from(0 < size && size <= core.small),
        ..Intent::default()
    };
    match request.what {
        What::Allocate => Intent {
            allocated: pages,
            ..intent
        },
        What::Zero => Intent {
            allocated: pages,
            touched: pages.min(held),
            ..intent
        },
        What::Insert => Intent {
            touched: held,
            ..intent
        },
        What::Collapse | What::Punch => Intent {
            class: Class::GivingBack,
            touched: if request.what == What::Collapse {
                held
            } else {
                0
            },
            moved: 0,
            ..intent
        },
    }
}

fn parse(file: &OpenFile, mode: Fallocate, offset: u64, len: u64) -> Result<Request> {
    if len == 0 || offset > SIZE_MAX || len > SIZE_MAX {
        return Err(Errno::EINVAL);
    }
    let keep_size = mode.contains(Fallocate::KEEP_SIZE);
    let rest = mode.difference(Fallocate::KEEP_SIZE);
    let what = if rest.is_empty() || rest == Fallocate::UNSHARE_RANGE {
        What::Allocate
    } else if rest == Fallocate::PUNCH_HOLE && keep_size {
        What::Punch
    } else if rest == Fallocate::ZERO_RANGE {
        What::Zero
    } else if mode == Fallocate::COLLAPSE_RANGE {
        What::Collapse
    } else if mode == Fallocate::INSERT_RANGE {
        What::Insert
    } else if Fallocate::all().contains(mode)
        && mode.intersects(Fallocate::COLLAPSE_RANGE | Fallocate::INSERT_RANGE)
        && !mode.contains(Fallocate::PUNCH_HOLE | Fallocate::ZERO_RANGE)
    {
        return Err(Errno::EINVAL);
    } else {
        return Err(Errno::EOPNOTSUPP);
    };
    if !file.flags().writable() {
        return Err(Errno::EBADF);
    }
    match file.node().kind() {
        FileType::Regular => {}
        FileType::Directory => return Err(Errno::EISDIR),
        _ => return Err(Errno::ENODEV),
    }
    if offset + len > SIZE_MAX {
        return Err(Errno::EFBIG);
    }
    Ok(Request {
        what,
        keep_size,
        offset,
        len,
    })
}

fn new_size(request: Request, size: u64) -> Result<u64> {
    let Request {
        what,
        keep_size,
        offset,
        len,
    } = request;
    let aligned = |value: u64| value.is_multiple_of(PAGE);
    match what {
        What::Punch => Ok(size),
        What::Allocate | What::Zero if keep_size => Ok(size),
        What::Allocate | What::Zero => Ok(size.max(offset + len)),
        What::Collapse | What::Insert if !aligned(offset) || !aligned(len) => Err(Errno::EINVAL),
        What::Collapse if offset + len >= size => Err(Errno::EINVAL),
        What::Collapse => Ok(size - len),
        What::Insert if size + len > SIZE_MAX => Err(Errno::EFBIG),
        What::Insert if offset >= size => Err(Errno::EINVAL),
        What::Insert => Ok(size + len),
    }
}

/// Performs a request in memory; returns the change for the store.
fn perform(
    request: Request,
    ino: Ino,
    pages: &mut PagesLock<'_>,
    account: Account<'_>,
) -> Result<Change<'static>> {
    let Request {
        what, offset, len, ..
    } = request;
    let zero = |keep| Change::Zero {
        ino,
        offset,
        len,
        keep,
    };
    Ok(match what {
        What::Allocate => {
            pages.allocate(offset, len, account)?;
            Change::Allocate { ino, offset, len }
        }
        What::Punch => {
            pages.punch(offset, len, account);
            zero(false)
        }
        What::Zero => {
            pages.zero(offset, len, account)?;
            zero(true)
        }
        What::Collapse => {
            pages.collapse(offset, len, account)?;
            Change::Collapse { ino, offset, len }
        }
        What::Insert => {
            pages.insert(offset, len, account)?;
            Change::Insert { ino, offset, len }
        }
    })
}
