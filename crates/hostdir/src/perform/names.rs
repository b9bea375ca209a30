//! Removing and moving names.

use holdfast_core::store::{Done, Touched};
use holdfast_core::types::{Errno, FileType, Ino, RenameFlags, Result};
use rustix::fs::{AtFlags, Mode, OFlags, RenameFlags as HostFlags, Statx, renameat_with, unlinkat};
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};

use super::{Performer, version};
use crate::host::lookup::Found;
use crate::identity::Identity;
use crate::one_name::open_name;
use crate::record::record;
use crate::sys::errno;

/// An inode that is about to lose a name.
type Victim = (OwnedFd, Found);

impl Performer<'_> {
    /// The inode of a name, to report its state after the name is removed. `None`: it is a mount
    /// point or was removed; the operation itself reports that.
    fn victim(self, dir: BorrowedFd<'_>, name: &[u8]) -> Result<Option<Victim>> {
        let open = match open_name(dir, name, OFlags::PATH, Mode::empty()) {
            Err(Errno::ENOENT | Errno::EXDEV | Errno::EACCES) => return Ok(None),
            open => open?,
        };
        let stat = self.host.stat(open.as_fd())?;
        let is = Identity::of(&stat);
        let ino = self.host.number(is.host, &is);
        Ok(Some((open, Found { stat, is, ino })))
    }

    /// The inode lost its name: keeps it reachable while the core knows it.
    fn lost(self, dir: Ino, name: &[u8], victim: Victim, done: &mut Done) {
        let host = self.host;
        let (open, Found { stat, is, ino }) = victim;
        let nlink = match is.kind {
            FileType::Directory => 0,
            _ => stat.stx_nlink.saturating_sub(1),
        };
        let after = host.stat(open.as_fd()).unwrap_or(stat);
        // Some hosts rename an open file instead of removing it.
        let nlink = nlink.min(after.stx_nlink);
        let place = host.places.get(ino);
        let parent = place.as_ref().map_or(dir, |place| place.parent);
        let mut touched = self.moved(parent, &stat, &after, ino);
        touched.record.nlink = nlink;
        done.touched.push(touched);
        match place {
            // The core does not know it.
            None => {}
            Some(_) if nlink == 0 => _ = host.held.nameless.keep(ino, open),
            Some(place) if place.parent == dir && *place.name == *name => {
                host.note_handle(ino, open.as_fd());
                host.held.displaced.keep(ino, open);
            }
            Some(_) => {}
        }
    }

    pub(super) fn remove(self, dir: Ino, name: &[u8], directory: bool) -> Result<Done> {
        let host = self.host;
        let opened = host.opened(dir)?;
        let at = opened.get(host);
        let before = host.stat(at)?;
        let victim = self.victim(at, name)?;
        let flags = match directory {
            true => AtFlags::REMOVEDIR,
            false => AtFlags::empty(),
        };
        {
            let _acting = self.act()?;
            unlinkat(at, name, flags).map_err(errno)?;
        }
        let mut done = self.changed();
        done.touched.extend(self.touched(dir, Some(&before), at));
        if let Some(victim) = victim {
            done.entry = Some((victim.1.ino, victim.1.is.kind));
            self.lost(dir, name, victim, &mut done);
        }
        Ok(done)
    }

    pub(super) fn rename(
        self,
        from: (Ino, &[u8]),
        to: (Ino, &[u8]),
        flags: RenameFlags,
    ) -> Result<Done> {
        let host = self.host;
        let dirs = [host.opened(from.0)?, host.opened(to.0)?];
        let [from_at, to_at] = [dirs[0].get(host), dirs[1].get(host)];
        let before = [host.stat(from_at)?, host.stat(to_at)?];
        let source = host.find(from_at, from.1)?.ok_or(Errno::ENOENT)?;
        let target = self.victim(to_at, to.1)?;
        {
            let _acting = self.act()?;
            let flags = HostFlags::from_bits_retain(flags.bits());
            renameat_with(from_at, from.1, to_at, to.1, flags).map_err(errno)?;
        }
        let mut done = self.changed();
        let Found { stat, is, ino } = source;
        done.entry = Some((ino, is.kind));
        done.other = target.as_ref().map(|(_, it)| (it.ino, it.is.kind));
        done.touched
            .extend(self.touched(from.0, Some(&before[0]), from_at));
        if from.0 != to.0 {
            done.touched
                .extend(self.touched(to.0, Some(&before[1]), to_at));
        }
        if done.other.is_some_and(|(other, _)| other == ino) {
            // Two names of one file: both stay.
            return Ok(done);
        }
        host.places.move_to(ino, to.0, to.1, is);
        if let Some(moved) = host.find(to_at, to.1)?.filter(|found| found.is == is) {
            done.touched
                .push(self.moved(to.0, &stat, &moved.stat, moved.ino));
        }
        match target {
            Some((_, target)) if flags.contains(RenameFlags::EXCHANGE) => {
                host.places.move_to(target.ino, from.0, from.1, target.is);
                let found = host.find(from_at, from.1)?;
                if let Some(found) = found.filter(|found| found.is == target.is) {
                    done.touched
                        .push(self.moved(from.0, &target.stat, &found.stat, found.ino));
                }
            }
            Some(target) => self.lost(to.0, to.1, target, &mut done),
            None => {}
        }
        Ok(done)
    }

    fn moved(self, dir: Ino, before: &Statx, now: &Statx, ino: Ino) -> Touched {
        Touched {
            before: Some(version(before)),
            record: record(ino, dir, now, self.may_have_xattrs()),
        }
    }
}
