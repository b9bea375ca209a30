//! Acting as the caller of an operation, by the thread that performs it.
//!
//! A daemon of root's acts with the file system user, group and supplementary groups of its caller, so that owners, quotas, set-group-id, and what a
//! server on the network allows are the host's to decide. Capabilities are the caller's as well: a kernel in front that has checked permissions
//! gives its callers all but that of passing limits. Everybody else acts as itself.
//!
//! *Invariant.* Credentials are a thread's. They are its own again when the guard is dropped, also by a panic; a thread that could not get them
//! back would go on as somebody else, so the process ends instead.

use holdfast_core::types::{Caller, Caps, Result};
use rustix::process::{Gid, getegid, geteuid, getgroups};
use rustix::thread::{
    CapabilitySet, CapabilitySets, capabilities, set_capabilities, set_thread_groups,
};
use std::marker::PhantomData;

use crate::host::errno;
use crate::sys;

/// What nobody has that a kernel writes for.
const BEYOND_LIMITS: CapabilitySet = CapabilitySet::FSETID.union(CapabilitySet::SYS_RESOURCE);

/// What this process is.
pub(crate) struct Own {
    uid: u32,
    gid: u32,
    groups: Vec<u32>,
    capabilities: CapabilitySets,
}

/// This thread acts as a caller until this is dropped.
pub(crate) struct Acting<'o> {
    own: &'o Own,
    user: bool,
    group: bool,
    groups: bool,
    capabilities: bool,
    /// The guard is its thread's.
    _thread: PhantomData<*const ()>,
}

impl Own {
    /// Of the thread that opens the store: all its others are the same.
    ///
    /// # Errors
    /// Those of capget(2) and getgroups(2).
    pub(crate) fn here() -> Result<Self> {
        let groups = getgroups().map_err(errno)?;
        Ok(Self {
            uid: geteuid().as_raw(),
            gid: getegid().as_raw(),
            groups: groups.into_iter().map(Gid::as_raw).collect(),
            capabilities: capabilities(None).map_err(errno)?,
        })
    }

    fn can_be_others(&self) -> bool {
        let needed = CapabilitySet::SETUID | CapabilitySet::SETGID;
        self.capabilities.effective.contains(needed)
    }

    /// From now on this thread acts as itself, but keeps no set-id bits of files that it writes to, and passes no limits.
    ///
    /// # Errors
    /// Those of capset(2).
    pub(crate) fn act_within_limits(&self) -> Result<Acting<'_>> {
        let mut acting = self.acting();
        let effective = self.capabilities.effective - BEYOND_LIMITS;
        if effective != self.capabilities.effective {
            acting.capabilities = true;
            set_effective(self.capabilities, effective)?;
        }
        Ok(acting)
    }

    /// A thread that acts as itself.
    fn acting(&self) -> Acting<'_> {
        Acting {
            own: self,
            user: false,
            group: false,
            groups: false,
            capabilities: false,
            _thread: PhantomData,
        }
    }

    /// From now on this thread acts as the caller.
    ///
    /// # Errors
    /// `EPERM`: there is no such user here.
    pub(crate) fn act_as(&self, caller: &Caller) -> Result<Acting<'_>> {
        let mut acting = self.acting();
        // A kernel names nobody where it writes back what is mapped.
        if !self.can_be_others() || caller.uid == u32::MAX {
            return Ok(acting);
        }
        if *caller.groups != *self.groups {
            acting.groups = true;
            set_groups(&caller.groups)?;
        }
        if caller.gid != self.gid && caller.gid != u32::MAX {
            acting.group = true;
            sys::set_fs_group(caller.gid)?;
        }
        if caller.uid != self.uid {
            acting.user = true;
            sys::set_fs_user(caller.uid)?;
        }
        let lacks = CapabilitySet::from_bits_retain((Caps::all() - caller.caps).bits());
        let effective = self.capabilities.effective - lacks;
        if acting.user || effective != self.capabilities.effective {
            acting.capabilities = true;
            set_effective(self.capabilities, effective)?;
        }
        Ok(acting)
    }
}

impl Drop for Acting<'_> {
    fn drop(&mut self) {
        if let Err(error) = self.end() {
            eprintln!("holdfast: a thread cannot act as itself again: {error}");
            std::process::abort();
        }
    }
}

impl Acting<'_> {
    fn end(&self) -> Result<()> {
        if self.user {
            sys::set_fs_user(self.own.uid)?;
        }
        if self.group {
            sys::set_fs_group(self.own.gid)?;
        }
        if self.groups {
            set_groups(&self.own.groups)?;
        }
        if self.capabilities {
            set_effective(self.own.capabilities, self.own.capabilities.effective)?;
        }
        Ok(())
    }
}

fn set_groups(groups: &[u32]) -> Result<()> {
    // The kernel knows no such group.
    let valid = groups.iter().filter(|group| **group != u32::MAX);
    let groups: Vec<Gid> = valid.map(|group| Gid::from_raw(*group)).collect();
    set_thread_groups(&groups).map_err(errno)
}

fn set_effective(sets: CapabilitySets, effective: CapabilitySet) -> Result<()> {
    set_capabilities(None, CapabilitySets { effective, ..sets }).map_err(errno)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::MetadataExt;

    /// Runs on a thread of its own: its credentials go with it.
    fn apart(act: impl FnOnce() + Send) {
        std::thread::scope(|scope| scope.spawn(act).join().unwrap());
    }

    fn owner_of_a_new_file(dir: &std::path::Path) -> (u32, u32) {
        let file = tempfile::tempfile_in(dir).unwrap();
        let made = file.metadata().unwrap();
        (made.uid(), made.gid())
    }

    #[test]
    fn a_thread_acts_as_the_caller_and_then_as_itself_again_also_after_a_panic() {
        let own = Own::here().unwrap();
        if !own.can_be_others() {
            println!("skipped: only root acts as others");
            return;
        }
        let dir = tempfile::tempdir().unwrap();
        std::fs::set_permissions(
            dir.path(),
            std::os::unix::fs::PermissionsExt::from_mode(0o777),
        )
        .unwrap();
        let caller = Caller {
            groups: vec![7, 8].into(),
            ..Caller::user(1234, 567)
        };
        apart(|| {
            let acting = own.act_as(&caller).unwrap();
            assert_eq!(owner_of_a_new_file(dir.path()), (1234, 567));
            assert_eq!(getgroups().unwrap().len(), 2);
            let now = capabilities(None).unwrap().effective;
            assert!(!now.intersects(CapabilitySet::DAC_OVERRIDE | CapabilitySet::SYS_RESOURCE));
            drop(acting);
            let panics = std::panic::AssertUnwindSafe(|| {
                let _acting = own.act_as(&caller).unwrap();
                panic!("on purpose");
            });
            assert!(std::panic::catch_unwind(panics).is_err());
            assert_eq!(owner_of_a_new_file(dir.path()), (own.uid, own.gid));
            let now = capabilities(None).unwrap();
            assert_eq!(now.effective, own.capabilities.effective);
            let groups: Vec<u32> = getgroups().unwrap().into_iter().map(Gid::as_raw).collect();
            assert_eq!(groups, own.groups);
        });
    }

    #[test]
    fn what_a_kernel_writes_for_keeps_no_set_id_bits_and_passes_no_limits() {
        let own = Own::here().unwrap();
        apart(|| {
            let acting = own.act_within_limits().unwrap();
            let now = capabilities(None).unwrap().effective;
            assert!(!now.intersects(CapabilitySet::FSETID | CapabilitySet::SYS_RESOURCE));
            drop(acting);
            let now = capabilities(None).unwrap().effective;
            assert_eq!(now, own.capabilities.effective);
        });
    }

    #[test]
    fn a_caller_that_a_kernel_has_checked_passes_permissions_and_no_limits() {
        let own = Own::here().unwrap();
        if !own.can_be_others() {
            println!("skipped: only root acts as others");
            return;
        }
        let caller = Caller {
            caps: Caps::all() - Caps::SYS_RESOURCE,
            checked: true,
            ..Caller::user(1234, 567)
        };
        apart(|| {
            let _acting = own.act_as(&caller).unwrap();
            let now = capabilities(None).unwrap().effective;
            let has =
                |set: CapabilitySet| own.capabilities.effective.contains(set) == now.contains(set);
            assert!(has(CapabilitySet::DAC_OVERRIDE) && has(CapabilitySet::CHOWN));
            assert!(!now.contains(CapabilitySet::SYS_RESOURCE));
        });
    }
}
