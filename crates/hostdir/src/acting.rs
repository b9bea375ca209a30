//! Taking the credentials of an operation's caller for the thread that performs it.
//!
//! A daemon of root takes the file system user, group and supplementary groups of its caller. The
//! host then decides about owners, quotas and set-group-id, and so does a network server behind it.
//! It also takes the caller's capabilities. A kernel in front that has checked permissions gives
//! its callers all but `CAP_SYS_RESOURCE`. Other daemons keep their own credentials.
//!
//! *Invariant.* Credentials belong to a thread. Dropping the guard restores them, also after a
//! panic. If that fails, the process ends: the thread would go on as another user.

use holdfast_core::types::{Caller, Caps, Result};
use rustix::process::{Gid, getegid, geteuid, getgroups};
use rustix::thread::{
    CapabilitySet, CapabilitySets, capabilities, set_capabilities, set_thread_groups,
};
use std::marker::PhantomData;

use crate::sys::{self, errno};

/// Capabilities that a writer on behalf of the kernel must not have.
const BEYOND_LIMITS: CapabilitySet = CapabilitySet::FSETID.union(CapabilitySet::SYS_RESOURCE);

/// The credentials of this process.
pub(crate) struct Own {
    uid: u32,
    gid: u32,
    groups: Vec<u32>,
    capabilities: CapabilitySets,
}

/// The thread has other credentials until this is dropped.
pub(crate) struct Acting<'o> {
    own: &'o Own,
    user: bool,
    group: bool,
    groups: bool,
    capabilities: bool,
    /// The guard must stay on its thread.
    _thread: PhantomData<*const ()>,
}

impl Own {
    /// Those of the calling thread, which opens the store: all threads have the same.
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

    /// Keeps the thread's own credentials, without the capabilities to keep set-id bits of written
    /// files and to pass limits.
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

    /// A guard that restores nothing yet.
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

    /// Gives the thread the caller's credentials.
    ///
    /// # Errors
    /// `EPERM`: there is no such user here.
    pub(crate) fn act_as(&self, caller: &Caller) -> Result<Acting<'_>> {
        let mut acting = self.acting();
        // The kernel sends no user where it writes mapped pages.
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
        let missing = CapabilitySet::from_bits_retain((Caps::all() - caller.caps).bits());
        let effective = self.capabilities.effective - missing;
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
    // `u32::MAX` is no valid group.
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

    /// Runs `act` on another thread, which ends with its credentials.
    fn on_its_own_thread(act: impl FnOnce() + Send) {
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
        on_its_own_thread(|| {
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
        on_its_own_thread(|| {
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
        on_its_own_thread(|| {
            let _acting = own.act_as(&caller).unwrap();
            let now = capabilities(None).unwrap().effective;
            let has =
                |set: CapabilitySet| own.capabilities.effective.contains(set) == now.contains(set);
            assert!(has(CapabilitySet::DAC_OVERRIDE) && has(CapabilitySet::CHOWN));
            assert!(!now.contains(CapabilitySet::SYS_RESOURCE));
        });
    }
}
