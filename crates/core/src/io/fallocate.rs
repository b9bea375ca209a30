//! fallocate(2): space, holes, and ranges that come and go.

use holdfast_cache::PagesLock;
use holdfast_cache::{Account, PAGE_SIZE};

use super::{SIZE_MAX, writable};
use crate::FileSystem;
use crate::file_system::Core;
use crate::inode::{Inode, Numbered as _};
use crate::open::OpenFile;
use crate::quota::Check;
use crate::store::{Change, Class, Intent};
use crate::types::{Caller, Errno, Fallocate, FileType, Ino, Result};
use crate::watch::EventMask;

/// Bytes that are allocated at once over a store that is asked for room for them.
const PART: u64 = 16 << 20;

/// What a mode word asks for.
#[derive(Clone, Copy, PartialEq, Eq)]
enum What {
    Allocate,
    Punch,
    Zero,
    Collapse,
    Insert,
}

/// A request whose mode made sense.
#[derive(Clone, Copy)]
struct Request {
    what: What,
    keep_size: bool,
    offset: u64,
    len: u64,
}

impl Request {
    fn takes_space_behind(self, size: u64) -> bool {
        matches!(self.what, What::Allocate | What::Zero) && self.offset + self.len > size
    }
}

impl FileSystem {
    /// Allocates, frees, zeroes, removes or inserts a range, as `mode` says.
    ///
    /// # Errors
    /// `EINVAL` for an empty range, for COLLAPSE and INSERT of ranges that are not whole pages or
    /// reach the end; `EOPNOTSUPP` for modes that make no sense together; `EBADF` if not open for
    /// writing; `EFBIG`; `ENOSPC`, `EDQUOT`: then nothing changed, but that of much the first part may be there; `EISDIR`; `ENODEV` for other kinds of
    /// inode; `EPERM` if the file is immutable, or only appended to and this is more than allocating.
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
        if let Some(through) = core.through() {
            match mode.difference(Fallocate::KEEP_SIZE).is_empty() {
                true => inode.not_immutable()?,
                false => inode.allow_change()?,
            }
            core.refresh(inode)?;
            new_size(request, inode.size())?;
            return through.allocate(who, file, mode, (offset, len));
        }
        {
            let mut pages = core.lock_with(inode, pages, |_| {
                match mode.difference(Fallocate::KEEP_SIZE).is_empty() {
                    true => inode.not_immutable()?,
                    false => inode.allow_change()?,
                }
                Ok(core.map_missing(inode))
            })?;
            core.drop_privileges(who, node)?;
            core.has_room_for(request, &pages)?;
            for part in core.parts(request) {
                core.fallocate(who, inode, &mut pages, part)?;
            }
        }
        core.notify_event(inode, EventMask::MODIFY);
        core.notify_inode(who, inode.ino(), true);
        Ok(())
    }
}

impl Core {
    /// Does what is asked for, all or nothing.
    fn fallocate(
        &self,
        who: &Caller,
        inode: &Inode,
        pages: &mut PagesLock<'_>,
        request: Request,
    ) -> Result<()> {
        let size = inode.size();
        let new_size = new_size(request, size)?;
        let bytes = request.offset..request.offset + request.len;
        let mut reservation = self.reserve_for(inode, pages, bytes, || {
            self.intent_of(request, size, pages.pages())
        })?;
        let space = self.space_of(inode, Check::of(who));
        if new_size < size {
            pages.begin();
        }
        carry_out(request, pages, space.account())?;
        let turn = self.log_order([inode]);
        let record = {
            let mut meta = inode.write();
            meta.size = new_size;
            meta.modified(inode.time_of_change());
            if !self.pinned && request.takes_space_behind(new_size) {
                // Of few inodes: so that it is asked for when the inode was not in memory.
                meta.extra_attrs();
            }
            inode.record(&meta)
        };
        pages.has_size(new_size);
        if self.pinned {
            return Ok(());
        }
        space.hand_over(&mut reservation);
        let batch = [
            change(request, inode.ino()),
            Change::Attributes { inode: record },
        ];
        self.apply_in(turn, &mut reservation, [inode], &batch)
    }

    /// What a store is asked for at once: each place that it finds is a record of its journal.
    fn parts(&self, request: Request) -> impl Iterator<Item = Request> {
        let takes = matches!(request.what, What::Allocate | What::Zero);
        let most = match takes && !self.pinned {
            true => PART,
            false => u64::MAX,
        };
        let end = request.offset + request.len;
        let mut next = Some(request.offset).filter(|at| *at < end);
        std::iter::from_fn(move || {
            let offset = next?;
            // Parts meet at whole ones.
            let len = most.saturating_sub(offset % most).min(end - offset);
            next = Some(offset + len).filter(|at| *at < end);
            Some(Request {
                offset,
                len,
                ..request
            })
        })
    }

    /// Refuses what comes in several parts and has no room, before the first of them.
    fn has_room_for(&self, request: Request, held: &PagesLock<'_>) -> Result<()> {
        let takes = matches!(request.what, What::Allocate | What::Zero);
        if self.pinned || !takes || request.len <= PART {
            return Ok(());
        }
        let page = PAGE_SIZE as u64;
        let end = request.offset + request.len;
        if held.have_space(&(request.offset / page..end.div_ceil(page))) {
            return Ok(());
        }
        let pages = (request.len / page).saturating_sub(held.pages());
        self.reserve(&Intent {
            pages,
            ..Intent::default()
        })
        .map(drop)
    }

    /// What a request may take of the store, besides space for pages that have none.
    fn intent_of(&self, request: Request, size: u64, held: u64) -> Intent {
        let Request {
            what, offset, len, ..
        } = request;
        let page = PAGE_SIZE as u64;
        let pages = (offset + len).div_ceil(page) - offset / page;
        let small = u64::from(0 < size && size <= self.small);
        let intent = Intent {
            ranges: 1,
            records: 1,
            moved: small,
            ..Intent::default()
        };
        match what {
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
            What::Collapse => Intent {
                class: Class::GivingBack,
                touched: held,
                moved: 0,
                ..intent
            },
            What::Punch => Intent {
                class: Class::GivingBack,
                moved: 0,
                ..intent
            },
        }
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
    let aligned = |value: u64| value.is_multiple_of(PAGE_SIZE as u64);
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

fn change(request: Request, ino: Ino) -> Change<'static> {
    let Request {
        what, offset, len, ..
    } = request;
    match what {
        What::Allocate => Change::Allocate { ino, offset, len },
        What::Punch => Change::Zero {
            ino,
            offset,
            len,
            keep: false,
        },
        What::Zero => Change::Zero {
            ino,
            offset,
            len,
            keep: true,
        },
        What::Collapse => Change::Collapse { ino, offset, len },
        What::Insert => Change::Insert { ino, offset, len },
    }
}

fn carry_out(request: Request, pages: &mut PagesLock<'_>, account: Account<'_>) -> Result<()> {
    let Request {
        what, offset, len, ..
    } = request;
    match what {
        What::Allocate => pages.allocate(offset, len, account),
        What::Punch => {
            pages.punch(offset, len, account);
            Ok(())
        }
        What::Zero => pages.zero(offset, len, account),
        What::Collapse => pages.collapse(offset, len, account),
        What::Insert => pages.insert(offset, len, account),
    }
}
