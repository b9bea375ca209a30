//! Which files a process has mapped.
//!
//! The kernel tells nobody of mmap(2). Pages that were stored to through a shared mapping are dirty only
//! while there is one: it writes them at munmap(2).

use super::sys::shared_mapping;
use holdfast_core::types::Ino;
use rustix::io::Errno as Code;
use std::{cell::RefCell, fs::File};

/// Mappings that are looked at. A process with more counts as one that has mapped everything.
const LOOKED_AT_MAX: usize = 64;

thread_local! {
    /// The process that was looked at last by this thread, and its `maps`: to open it costs ten times what
    /// the question does, and a program that unpacks an archive asks for each file.
    static LAST: RefCell<Option<(u32, File)>> = const { RefCell::new(None) };
}

/// Has this process a shared mapping of a file of this number? One that cannot be looked at has none,
/// and before Linux 6.11 none can.
pub(super) fn has_mapped(pid: u32, ino: Ino) -> bool {
    LAST.with_borrow_mut(|last| {
        if let Some((_, maps)) = last.as_ref().filter(|(known, _)| *known == pid) {
            match is_in(maps, ino) {
                // Another program runs there now, or another process.
                Err(Code::SRCH) => {}
                found => return found.unwrap_or(false),
            }
        }
        *last = File::open(format!("/proc/{pid}/maps"))
            .ok()
            .map(|maps| (pid, maps));
        last.as_ref()
            .is_some_and(|(_, maps)| is_in(maps, ino).unwrap_or(false))
    })
}

/// # Errors
/// `ESRCH` when the address space that it was opened for is gone.
fn is_in(maps: &File, ino: Ino) -> Result<bool, Code> {
    let mut address = 0;
    for _ in 0..LOOKED_AT_MAX {
        match shared_mapping(maps, address)? {
            Some(mapping) if mapping.inode == ino.0 => return Ok(true),
            Some(mapping) => address = mapping.end,
            None => return Ok(false),
        }
    }
    Ok(true)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nobody_has_mapped_what_there_is_not_nor_what_is_private() {
        use std::os::unix::fs::MetadataExt;
        let own = std::process::id();
        let program = std::fs::metadata("/proc/self/exe").unwrap().ino();
        assert!(!has_mapped(own, Ino(program)));
        assert!(!has_mapped(own, Ino(u64::MAX)));
        // No process has this number.
        assert!(!has_mapped(u32::MAX, Ino(program)));
    }
}
