//! Memory that a virtual machine's host has taken back.
//!
//! A guest with a balloon that reports free pages (`VIRTIO_BALLOON_F_REPORTING`) gives its host every free piece of
//! 2 MiB within some seconds, and gets it back page by page at the first touch: 12 µs for each page of 4 KiB where a
//! page that is there costs 0.2 to 0.7. What a phase takes then tells how long ago somebody last used the memory that it
//! happens to get: making a file in memory took 230 or 680 ns by nothing else. So as much as the phase may
//! need is touched just before it, and given back: for every target alike.

mod sys;

use rustix::system::sysinfo;

/// Lets the machine have so many bytes of free memory at hand: half of what is free at most.
/// Where there is no such host, it costs the zeroing of that memory, and changes nothing.
pub(crate) fn at_hand(bytes: u64) {
    let told = sysinfo();
    let free = told.freeram as u64 * u64::from(told.mem_unit).max(1);
    let bytes = usize::try_from(bytes.min(free / 2)).unwrap_or(0);
    if let Err(error) = sys::touch(bytes) {
        eprintln!(
            "free memory could not be touched before a phase, which may wait for the host: {error}"
        );
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::process::Process;

    #[test]
    fn what_was_touched_is_free_again() {
        let before = Process::Own.rss_bytes().expect("told");
        at_hand(64 << 20);
        let after = Process::Own.rss_bytes().expect("told");
        assert!(after < before + (32 << 20), "{before} then {after}");
    }

    #[test]
    fn more_than_there_is_and_nothing_at_all_are_asked_for_in_vain() {
        at_hand(0);
        assert!(sys::touch(usize::MAX).is_err());
        sys::touch(1).expect("a page");
    }
}
