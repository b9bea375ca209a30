//! INIT: what both sides can do.

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

/// How to answer an INIT.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Answer {
    /// Agreed.
    Agreed(Negotiated),
    /// The kernel is newer by a major version: name ours, it will ask again.
    AskAgain,
    /// The kernel is too old.
    TooOld,
}

/// Requests in the background that the kernel may have under way.
const BACKGROUND: u16 = 256;

/// File systems that may lie over each other, this one included, where files are passed through: it lies over one that lies
/// over none.
const STACK_DEPTH_MAX: u32 = 1;

impl Negotiated {
    /// Answers the kernel's INIT; `uring` says whether rings are at hand.
    pub(super) fn answer(init: &InitRequest, config: &Config, uring: bool) -> Answer {
        if init.major > ABI_MAJOR {
            return Answer::AskAgain;
        }
        if init.major < ABI_MAJOR || init.minor < ABI_MINOR_MIN {
            return Answer::TooOld;
        }
        let flags = wanted(config, uring) & init.flags;
        Answer::Agreed(Self {
            minor: init.minor.min(ABI_MINOR),
            kernel_minor: init.minor,
            flags,
            offered: init.flags,
            max_write: config.max_write(),
            max_readahead: init.max_readahead,
        })
    }

    /// Pages in the largest request.
    fn max_pages(&self) -> u16 {
        (self.max_write / 4096) as u16
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
            max_pages: self.max_pages(),
            flags2: (flags >> 32) as u32,
            max_stack_depth: match self.flags.contains(InitFlags::PASSTHROUGH) {
                true => STACK_DEPTH_MAX,
                false => 0,
            },
            ..Default::default()
        }
    }
}

/// All that this side would like.
///
/// Not `ASYNC_DIO`: with it the kernel does not drop the pages that it has cached of what an asynchronous
/// direct write changed.
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
    let by_attributes = config.content != KeptContent::Told;
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
        // Without FLUSH nothing would tell that a process gave its locks back.
        config.serve_locks && !config.no_open,
    );
    flags.set(InitFlags::NO_OPEN_SUPPORT, config.no_open);
    // A file that is not opened cannot be truncated on the way: the kernel would forget to.
    // With this flag the kernel lets an open truncate a running program: `open_file` refuses it.
    flags.set(InitFlags::ATOMIC_O_TRUNC, !config.no_open);
    flags.set(InitFlags::NO_OPENDIR_SUPPORT, config.opens_no_directories());
    flags.set(InitFlags::PASSTHROUGH, config.passes_through());
    flags.set(InitFlags::POSIX_ACL, config.posix_acl && config.xattrs);
    // The kernel refuses the mount's INIT if it is asked for idmap without its own checks.
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
        let minor = |major, minor| match Negotiated::answer(&init(major, minor), &config, false) {
            Answer::Agreed(agreed) => Ok(agreed.minor),
            other => Err(other),
        };
        assert_eq!(minor(7, 45), Ok(45));
        assert_eq!(minor(7, 99), Ok(45));
        assert_eq!(minor(7, 31), Ok(31));
        assert_eq!(minor(7, 30), Err(Answer::TooOld));
        assert_eq!(minor(6, 99), Err(Answer::TooOld));
        assert_eq!(minor(8, 0), Err(Answer::AskAgain));
    }

    #[test]
    fn content_goes_by_attributes_or_is_told_of() {
        for content in [
            KeptContent::Told,
            KeptContent::ByAttributes,
            KeptContent::Mapped,
        ] {
            let by_attributes = content != KeptContent::Told;
            let config = Config {
                content,
                ..Config::default()
            };
            let Answer::Agreed(agreed) = Negotiated::answer(&init(7, 45), &config, false) else {
                panic!("refused");
            };
            let (told, by) = (InitFlags::EXPLICIT_INVAL_DATA, InitFlags::AUTO_INVAL_DATA);
            assert_eq!(agreed.flags.contains(told), !by_attributes);
            assert_eq!(agreed.flags.contains(by), by_attributes);
        }
    }

    #[test]
    fn only_what_is_offered_and_wanted_is_in_force() {
        let mut request = init(7, 45);
        request.flags = InitFlags::BIG_WRITES | InitFlags::OVER_IO_URING | InitFlags::PASSTHROUGH;
        let Answer::Agreed(agreed) = Negotiated::answer(&request, &Config::default(), true) else {
            panic!("refused");
        };
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
            let Answer::Agreed(agreed) = Negotiated::answer(&init(7, 45), &config, false) else {
                panic!("refused");
            };
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
