//! INIT: negotiation with the kernel.

use super::{Config, KeptContent, ListingChoice};
use crate::wire::{ABI_MAJOR, ABI_MINOR, ABI_MINOR_MIN, InitFlags, InitRequest, layout};

/// The outcome of INIT.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Negotiated {
    /// Minor version of the ABI in use (the major one is 7).
    pub minor: u32,
    /// Minor version that the kernel speaks.
    pub kernel_minor: u32,
    /// What is in force.
    pub flags: InitFlags,
    /// What the kernel offered.
    pub offered: InitFlags,
    /// Largest write in bytes.
    pub max_write: u32,
    /// Readahead in bytes.
    pub max_readahead: u32,
}

/// Most background requests of the kernel under way.
const BACKGROUND: u16 = 256;

/// Stacking depth for passthrough: this file system may lie over one that lies over none.
const STACK_DEPTH_MAX: u32 = 1;

impl Negotiated {
    /// The answer to the kernel's INIT; `uring` says whether rings are at hand. `None`: it is too
    /// old.
    pub(super) fn of(init: &InitRequest, config: &Config, uring: bool) -> Option<Self> {
        let speaks = init.major == ABI_MAJOR && init.minor >= ABI_MINOR_MIN;
        speaks.then(|| Self {
            minor: init.minor.min(ABI_MINOR),
            kernel_minor: init.minor,
            flags: wanted(config, uring) & init.flags,
            offered: init.flags,
            max_write: config.max_write(),
            max_readahead: init.max_readahead,
        })
    }

    /// The largest payload of a request or a reply, in bytes.
    pub(crate) fn payload_max(&self) -> usize {
        self.max_write as usize
    }

    /// The structure that says so.
    pub(super) fn reply(&self) -> layout::InitOut {
        let flags = self.flags.bits();
        layout::InitOut {
            major: ABI_MAJOR,
            minor: self.minor,
            max_readahead: self.max_readahead,
            flags: flags as u32,
            max_background: BACKGROUND,
            congestion_threshold: BACKGROUND / 4 * 3,
            max_write: self.max_write,
            time_gran: 1,
            max_pages: (self.max_write / 4096) as u16,
            flags2: (flags >> 32) as u32,
            max_stack_depth: match self.flags.contains(InitFlags::PASSTHROUGH) {
                true => STACK_DEPTH_MAX,
                false => 0,
            },
            ..Default::default()
        }
    }
}

/// The flags that this side wants.
///
/// Not `ASYNC_DIO`: with it the kernel keeps cached pages that an asynchronous direct write
/// changed.
fn wanted(config: &Config, uring: bool) -> InitFlags {
    let mut flags = InitFlags::ASYNC_READ
        | InitFlags::BIG_WRITES
        | InitFlags::DONT_MASK
        | InitFlags::PARALLEL_DIROPS
        | InitFlags::MAX_PAGES
        | InitFlags::HANDLE_KILLPRIV_V2
        | InitFlags::SETXATTR_EXT
        | InitFlags::INIT_EXT
        | InitFlags::CREATE_SUPP_GROUP
        | InitFlags::HAS_EXPIRE_ONLY
        | InitFlags::DIRECT_IO_ALLOW_MMAP;
    let by_attributes = config.content != KeptContent::Notified;
    flags.set(InitFlags::EXPLICIT_INVAL_DATA, !by_attributes);
    flags.set(InitFlags::AUTO_INVAL_DATA, by_attributes);
    flags.set(InitFlags::CACHE_SYMLINKS, config.cache_links);
    flags.set(InitFlags::OVER_IO_URING, uring);
    flags.set(InitFlags::WRITEBACK_CACHE, config.writeback);
    flags.set(InitFlags::EXPORT_SUPPORT, config.export);
    flags.set(InitFlags::NO_EXPORT_SUPPORT, !config.export);
    flags.set(
        InitFlags::DO_READDIRPLUS,
        config.listing != ListingChoice::Plain,
    );
    flags.set(
        InitFlags::READDIRPLUS_AUTO,
        config.listing == ListingChoice::Auto,
    );
    flags.set(
        InitFlags::POSIX_LOCKS | InitFlags::FLOCK_LOCKS,
        // Without FLUSH no request says that a process released its locks.
        config.serve_locks && !config.no_open,
    );
    flags.set(InitFlags::NO_OPEN_SUPPORT, config.no_open);
    // Without OPEN there is no truncation at open, and the kernel would skip it. With this flag the
    // kernel lets an open truncate a running program, which `open_file` refuses.
    flags.set(InitFlags::ATOMIC_O_TRUNC, !config.no_open);
    flags.set(InitFlags::NO_OPENDIR_SUPPORT, config.opens_no_directories());
    flags.set(InitFlags::PASSTHROUGH, config.passes_through());
    flags.set(InitFlags::POSIX_ACL, config.posix_acl && config.xattrs);
    // The kernel refuses an INIT with idmap but without `default_permissions`.
    flags.set(
        InitFlags::ALLOW_IDMAP,
        config.idmap && config.mount.default_permissions,
    );
    flags
}

#[cfg(test)]
mod tests {
    use super::super::Passthrough;
    use super::*;

    fn init(major: u32, minor: u32) -> InitRequest {
        InitRequest {
            major,
            minor,
            max_readahead: 1 << 17,
            flags: InitFlags::all(),
        }
    }

    #[test]
    fn versions_meet_at_the_older_one_and_very_old_ones_are_refused() {
        let config = Config::default();
        let minor = |major, minor| {
            let agreed = Negotiated::of(&init(major, minor), &config, false);
            agreed.map(|agreed| agreed.minor)
        };
        assert_eq!(minor(7, 45), Some(45));
        assert_eq!(minor(7, 99), Some(45));
        assert_eq!(minor(7, 31), Some(31));
        assert_eq!(minor(7, 30), None);
        assert_eq!(minor(6, 99), None);
    }

    #[test]
    fn content_goes_by_attributes_or_is_told_of() {
        for content in [
            KeptContent::Notified,
            KeptContent::ByAttributes,
            KeptContent::Mapped,
        ] {
            let by_attributes = content != KeptContent::Notified;
            let config = Config {
                content,
                ..Config::default()
            };
            let agreed = Negotiated::of(&init(7, 45), &config, false).expect("agreed");
            let (explicit, by) = (InitFlags::EXPLICIT_INVAL_DATA, InitFlags::AUTO_INVAL_DATA);
            assert_eq!(agreed.flags.contains(explicit), !by_attributes);
            assert_eq!(agreed.flags.contains(by), by_attributes);
        }
    }

    #[test]
    fn only_what_is_offered_and_wanted_is_in_force() {
        let mut request = init(7, 45);
        request.flags = InitFlags::BIG_WRITES | InitFlags::OVER_IO_URING | InitFlags::PASSTHROUGH;
        let agreed = Negotiated::of(&request, &Config::default(), true).expect("agreed");
        assert_eq!(
            agreed.flags,
            InitFlags::BIG_WRITES | InitFlags::OVER_IO_URING
        );
        let reply = agreed.reply();
        assert_eq!((reply.flags2, reply.max_pages), (1 << 9, 256));
        assert_eq!(reply.max_stack_depth, 0);
    }

    #[test]
    fn files_are_passed_through_only_where_they_are_opened_and_writes_are_not_collected() {
        let passed = |change: fn(&mut Config)| {
            let mut config = Config {
                passthrough: Passthrough::Auto,
                ..Config::default()
            };
            change(&mut config);
            let agreed = Negotiated::of(&init(7, 45), &config, false).expect("agreed");
            let passed = agreed.flags.contains(InitFlags::PASSTHROUGH);
            assert_eq!(agreed.reply().max_stack_depth, u32::from(passed));
            passed
        };
        assert!(passed(|_| ()));
        assert!(!passed(|config| config.writeback = true));
        assert!(!passed(|config| config.no_open = true));
        assert!(!passed(|config| config.passthrough = Passthrough::Off));
    }
}
