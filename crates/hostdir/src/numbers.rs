//! Inode numbers: the host's, where possible.
//!
//! Programs compare `st_ino` over remounts, and find hard links by it. So a file of the root's
//! device has the host's number. A file of another device (a subvolume of btrfs, a layer of
//! overlayfs) has the host's number behind that of a *slot*. A device is given its slot when it is
//! first seen. Other numbers are assigned in sequence and kept in a table while the store is open:
//!
//! - of host numbers of more than 48 bits,
//! - of number 1 of the root's device, which is the root's here,
//! - of a file with a reused number that is still known for another file,
//! - of devices without a slot.

use holdfast_core::types::Ino;
use parking_lot::RwLock;
use std::collections::HashMap;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

use crate::identity::HostNumber;

/// Bits of the host's number.
const BITS: u32 = 48;
/// Slots for devices, with that of the root.
const SLOTS: usize = 255;
/// Greater than all numbers of the host.
const FIRST_DEALT: u64 = (SLOTS as u64) << BITS;
/// Bytes of an entry of the table.
const COST: u64 = 64;

pub(crate) struct Numbers {
    root: HostNumber,
    /// By slot.
    devices: RwLock<Vec<(u32, u32)>>,
    dealt: RwLock<HashMap<HostNumber, Ino>>,
    next: AtomicU64,
}

impl Numbers {
    pub(crate) fn new(root: HostNumber) -> Self {
        Self {
            root,
            devices: RwLock::new(vec![root.device]),
            dealt: RwLock::default(),
            next: AtomicU64::new(FIRST_DEALT),
        }
    }

    /// The number of this file.
    pub(crate) fn of(&self, host: HostNumber) -> Ino {
        if host == self.root {
            return Ino::ROOT;
        }
        // Relaxed: a number assigned to another file does not matter here.
        if self.next.load(Relaxed) != FIRST_DEALT
            && let Some(dealt) = self.dealt.read().get(&host)
        {
            return *dealt;
        }
        let slot = match host.device == self.root.device {
            true => Some(0),
            false => self.slot(host.device),
        };
        if host.number >> BITS == 0
            && let Some(slot) = slot
        {
            let number = slot << BITS | host.number;
            if number > Ino::ROOT.0 {
                return Ino(number);
            }
        }
        let mut dealt = self.dealt.write();
        *dealt.entry(host).or_insert_with(|| self.deal())
    }

    fn slot(&self, device: (u32, u32)) -> Option<u64> {
        let place = |devices: &[(u32, u32)]| devices.iter().position(|it| *it == device);
        if let Some(slot) = place(&self.devices.read()) {
            return Some(slot as u64);
        }
        let mut devices = self.devices.write();
        if let Some(slot) = place(&devices) {
            return Some(slot as u64);
        }
        (devices.len() < SLOTS).then(|| {
            devices.push(device);
            devices.len() as u64 - 1
        })
    }

    /// Assigns another number to a file that has the number `was` of another known file. If another
    /// thread has already done so, returns that number.
    pub(crate) fn change(&self, host: HostNumber, was: Ino) -> Ino {
        let mut dealt = self.dealt.write();
        match dealt.get(&host) {
            Some(now) if *now != was => *now,
            _ => {
                let now = self.deal();
                dealt.insert(host, now);
                now
            }
        }
    }

    /// Bytes of memory.
    pub(crate) fn bytes(&self) -> u64 {
        self.dealt.read().len() as u64 * COST
    }

    fn deal(&self) -> Ino {
        Ino(self.next.fetch_add(1, Relaxed))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn host(device: u32, number: u64) -> HostNumber {
        HostNumber {
            device: (0, device),
            number,
        }
    }

    #[test]
    fn numbers_are_the_hosts_where_they_fit() {
        let numbers = Numbers::new(host(7, 2));
        let last = (1 << BITS) - 1;
        assert_eq!(numbers.of(host(7, 2)), Ino::ROOT);
        assert_eq!(numbers.of(host(7, 12)), Ino(12));
        assert_eq!(numbers.of(host(7, last)), Ino(last));
        assert_eq!(numbers.of(host(8, 2)), Ino(1 << BITS | 2));
        assert_eq!(numbers.of(host(9, 1)), Ino(2 << BITS | 1));
        assert_eq!(numbers.bytes(), 0);
        assert_eq!(numbers.of(host(7, 1)), Ino(FIRST_DEALT));
        assert_eq!(numbers.of(host(7, u64::MAX)), Ino(FIRST_DEALT + 1));
        assert_eq!(numbers.of(host(8, 2)), Ino(1 << BITS | 2));
        assert_eq!(numbers.of(host(7, 1)), Ino(FIRST_DEALT));
    }

    #[test]
    fn devices_beyond_the_slots_have_numbers_of_their_own_all_the_same() {
        let numbers = Numbers::new(host(0, 2));
        let all: Vec<Ino> = (1..300).map(|device| numbers.of(host(device, 5))).collect();
        let again: Vec<Ino> = (1..300).map(|device| numbers.of(host(device, 5))).collect();
        assert_eq!(all, again);
        let distinct: std::collections::HashSet<_> = all.into_iter().collect();
        assert_eq!(distinct.len(), 299);
    }

    #[test]
    fn a_number_that_is_used_again_becomes_another_once() {
        let numbers = Numbers::new(host(7, 2));
        let was = numbers.of(host(7, 12));
        let now = numbers.change(host(7, 12), was);
        assert_ne!(now, was);
        assert_eq!(numbers.change(host(7, 12), was), now);
        assert_eq!(numbers.of(host(7, 12)), now);
        assert_ne!(numbers.change(host(7, 12), now), now);
    }
}
