//! FUSE over io_uring: a queue per processor, pinned threads per queue, an entry per thread.
//!
//! The kernel puts a request into the queue of its caller's processor, and the thread that serves
//! it is bound there. So a request costs two switches on one processor, and no wake-up of another
//! one. Of a queue's entries the kernel takes the last used first, so a single caller always meets
//! the same thread.
//!
//! # Invariants
//! One thread serves, commits and arms an entry, and has no other entry. The kernel works on an
//! entry in the context of the thread that armed it, so an entry is dead while its thread waits for
//! a device. A thread that serves therefore has no armed entry.
//!
//! While the connection lives, every queue has an armed entry, or the watch adds one (see
//! [`crate::session::pool`]). The kernel is then nudged to serve what was queued before
//! ([`Kicker`]).

mod kick;
mod queue;
mod sys;

pub(crate) use kick::Kicker;
pub(crate) use queue::{Entry, SpawnQueueWorker};

use std::{fs, io};

/// Does the kernel offer the transport, and may this process use it? If not, why.
pub(crate) fn available() -> Result<(), String> {
    const SWITCH: &str = "/sys/module/fuse/parameters/enable_uring";
    match fs::read_to_string(SWITCH) {
        Ok(text) if text.trim_end() == "Y" => Ok(()),
        Ok(_) => Err(format!(
            "switched off in the kernel (root can: echo Y > {SWITCH})"
        )),
        Err(_) => Err("this kernel has no FUSE over io_uring (Linux 6.14 has)".into()),
    }
}

/// How many queues the kernel wants: one for every processor that could ever be there.
pub(crate) fn queue_count() -> io::Result<u16> {
    let text = fs::read_to_string("/sys/devices/system/cpu/possible")?;
    count_of_list(text.trim_end()).ok_or_else(|| io::ErrorKind::InvalidData.into())
}

/// The length of a list such as `0-3,8`.
fn count_of_list(list: &str) -> Option<u16> {
    list.split(',').try_fold(0u16, |sum, range| {
        let (first, last) = range.split_once('-').unwrap_or((range, range));
        let (first, last): (u16, u16) = (first.parse().ok()?, last.parse().ok()?);
        sum.checked_add(last.checked_sub(first)?.checked_add(1)?)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn processor_lists_are_counted() {
        assert_eq!(count_of_list("0"), Some(1));
        assert_eq!(count_of_list("0-127"), Some(128));
        assert_eq!(count_of_list("0-3,8,10-11"), Some(7));
        assert_eq!(count_of_list("3-0"), None);
        assert_eq!(count_of_list("x"), None);
    }
}
