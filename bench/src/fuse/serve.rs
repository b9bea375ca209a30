//! The server's side: a process that mounts, tells so, and serves until its standard input ends.
//!
//! It is a process of its own because a client that dies within the server's process, a request
//! under way, can wait for itself for ever. It serves until its standard input ends, which is
//! also what happens when the measuring process is killed: no mount is left behind.

use super::null::Null;
use super::slow::SlowHost;
use anyhow::Result;
use clap::{Args, ValueEnum};
use holdfast_core::{FileSystem, MemoryLimits, Options};
use holdfast_fuse::mount::UmountFlags;
use holdfast_fuse::serve::mount;
use holdfast_fuse::{Config, ListingChoice, Session, TransportChoice};
use serde::{Deserialize, Serialize};
use std::fmt;
use std::io::{self, BufRead, Write};
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

/// Longer than anything is measured.
const FOR_EVER: Duration = Duration::from_secs(24 * 3600);
/// Answers of a slow host that are under way at once: more than any client asks for.
const SLOW_THREADS: usize = 256;

/// Mount a file system for measuring, until standard input ends
#[derive(Args, Clone, Debug)]
pub(crate) struct ServeArgs {
    #[arg(value_enum)]
    pub(crate) kind: Kind,
    pub(crate) mount_point: PathBuf,
    #[command(flatten)]
    pub(crate) how: MountHow,
    /// Files of a slow host
    #[arg(long, default_value_t = 0)]
    pub(crate) files: u64,
    /// Milliseconds that each of its answers takes
    #[arg(long, default_value_t = 0.0)]
    pub(crate) delay: f64,
}

/// How both file systems are mounted
#[derive(Args, Clone, Copy, Debug, Default)]
pub(crate) struct MountHow {
    /// How requests come
    #[arg(long, value_enum, default_value_t)]
    pub(crate) transport: TransportName,
    /// Let the kernel check permissions, as ordinary mounts do; with attributes that are never
    /// valid it asks for the directory's before every use of a name in it
    #[arg(long)]
    pub(crate) default_permissions: bool,
}

/// A file system to be measured.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum Kind {
    /// Answers everything, keeps nothing
    Null,
    /// Holdfast's file system in memory
    #[value(name = "mem")]
    Memory,
    /// Takes its time for each answer
    Slow,
}

/// The ways for requests to come.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum)]
pub(crate) enum TransportName {
    /// io_uring where the kernel offers it
    #[default]
    Auto,
    /// io_uring or nothing
    Uring,
    /// Reads and writes of /dev/fuse
    Dev,
}

impl fmt::Display for Kind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Null => "null",
            Self::Memory => "mem",
            Self::Slow => "slow",
        })
    }
}

impl fmt::Display for TransportName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Auto => "auto",
            Self::Uring => "uring",
            Self::Dev => "dev",
        })
    }
}

impl MountHow {
    /// Arguments that say the same.
    pub(super) fn arguments(self) -> Vec<String> {
        let mut arguments = vec!["--transport".to_owned(), self.transport.to_string()];
        if self.default_permissions {
            arguments.push("--default-permissions".to_owned());
        }
        arguments
    }

    /// Nothing is believed for any time, so that each call is a request; what a slow host tells is,
    /// so that it is asked once.
    fn config(self, kind: Kind) -> Config {
        let mut config = Config {
            transport: match self.transport {
                TransportName::Auto => TransportChoice::Auto,
                TransportName::Uring => TransportChoice::Uring,
                TransportName::Dev => TransportChoice::Dev,
            },
            entry_timeout: Duration::ZERO,
            attr_timeout: Duration::ZERO,
            negative_timeout: Duration::ZERO,
            // The kernel takes ACLs as a wish for its own checks.
            posix_acl: self.default_permissions,
            ..Config::default()
        };
        config.mount.default_permissions = self.default_permissions;
        config.mount.fsname = format!("holdfast-bench-{kind}");
        if kind == Kind::Slow {
            config.entry_timeout = FOR_EVER;
            config.attr_timeout = FOR_EVER;
            config.listing = ListingChoice::Plain;
            config.threads_max = SLOW_THREADS;
        }
        config
    }
}

/// What a server says, one line each.
#[derive(Debug, Deserialize, Serialize)]
pub(super) enum Word {
    /// The mount is live.
    Live {
        /// How requests come.
        transport: String,
    },
    /// Requests served so far, forgets left out: they come when the kernel finds time.
    Requests(u64),
}

/// Mounts and serves; says how many requests there were whenever it reads a line.
///
/// # Errors
/// If it cannot be mounted, or not unmounted.
pub(crate) fn run(args: &ServeArgs) -> Result<()> {
    let config = args.how.config(args.kind);
    let session = match args.kind {
        Kind::Null => Session::mount(Arc::new(Null), &args.mount_point, &config)?,
        Kind::Slow => {
            let delay = Duration::try_from_secs_f64(args.delay / 1e3)?;
            let host = SlowHost::new(args.files, delay);
            Session::mount(Arc::new(host), &args.mount_point, &config)?
        }
        Kind::Memory => {
            let fs = FileSystem::memory(MemoryLimits::default(), Options::default());
            mount(&fs, &args.mount_point, &config, None)?
        }
    };
    say(&Word::Live {
        transport: session.info().transport.to_string(),
    })?;
    for line in io::stdin().lock().lines() {
        line?;
        let totals = session.totals().requests;
        let counted = totals
            .iter()
            .filter(|(opcode, _)| !opcode.name().contains("FORGET"));
        say(&Word::Requests(counted.map(|(_, count)| count).sum()))?;
    }
    let gentle = session.unmount(UmountFlags::default());
    if gentle.is_err() {
        // A process still uses the mount; the measurement is over all the same.
        session.unmount(UmountFlags {
            lazy: true,
            force: true,
        })?;
    }
    Ok(())
}

fn say(word: &Word) -> Result<()> {
    let mut out = io::stdout().lock();
    writeln!(out, "{}", serde_json::to_string(word)?)?;
    Ok(out.flush()?)
}
