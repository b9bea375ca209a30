//! Which file system an inode belongs to.
//!
//! A [`crate::Node`] is one pointer, so that it costs nothing to copy but its count. The last one of
//! an orphan has to tell the file system, and finds it here by the small number that every inode
//! carries. That is rare: operations end orphans themselves.

use parking_lot::RwLock;
use std::sync::{Arc, Weak};

use crate::file_system::Core;
use crate::types::{Errno, Result};

static LIVE: RwLock<Vec<Option<Weak<Core>>>> = RwLock::new(Vec::new());

/// A file system's place in the list of those that live. Dropped after the inodes.
pub(crate) struct Enrolment(u16);

impl Enrolment {
    /// Takes a place.
    ///
    /// # Errors
    /// `ENFILE` when the process has 65,536 file systems already.
    pub(crate) fn new() -> Result<Self> {
        let mut live = LIVE.write();
        let free = live.iter().position(Option::is_none);
        let place = free.unwrap_or(live.len());
        let number = u16::try_from(place).map_err(|_| Errno::ENFILE)?;
        if place == live.len() {
            live.push(None);
        }
        live[place] = Some(Weak::new());
        Ok(Self(number))
    }

    /// Its number.
    pub(crate) fn number(&self) -> u16 {
        self.0
    }

    /// From now on the number leads to this file system.
    pub(crate) fn announce(&self, core: Weak<Core>) {
        LIVE.write()[usize::from(self.0)] = Some(core);
    }
}

impl Drop for Enrolment {
    fn drop(&mut self) {
        LIVE.write()[usize::from(self.0)] = None;
    }
}

/// The file system of this number, if it still lives.
#[cold]
pub(crate) fn find(number: u16) -> Option<Arc<Core>> {
    let weak = LIVE.read().get(usize::from(number))?.clone();
    weak?.upgrade()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn places_of_the_living_differ_and_nobody_is_found_before_the_announcement() {
        let (a, b) = (Enrolment::new().unwrap(), Enrolment::new().unwrap());
        assert_ne!(a.number(), b.number());
        assert!(find(a.number()).is_none());
        assert!(find(u16::MAX).is_none());
    }
}
