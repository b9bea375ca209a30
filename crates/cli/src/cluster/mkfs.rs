//! `holdfast mkfs pg://...`.

use super::{client, end, environment, failure, refusal};
use crate::message::{Failure, Result};
use crate::mount::size::amount;
use crate::output::Output;
use holdfast::types::Ino;
use holdfast_cluster::Tree;
use holdfast_cluster::address::Address;
use holdfast_cluster::meta::{Change, Request, Settings};
use holdfast_cluster::postgres::MkfsOptions;
use serde_json::json;
use std::time::Duration;

/// How long the database may take: it makes all tables.
const RETRY: Duration = Duration::from_secs(60);

/// Options of a file system of several machines.
#[derive(Debug, Default, clap::Args)]
#[command(next_help_heading = "Options for pg://...")]
pub(crate) struct ClusterOptions {
    /// Files of up to this many bytes stay in the database (default: 4k)
    #[arg(long, value_name = "AMOUNT", value_parser = amount)]
    inline: Option<u64>,

    /// Files of up to this many bytes, 256k at most, are written into the database, and moved into
    /// the bucket later (default: 64k)
    #[arg(long, value_name = "AMOUNT", value_parser = amount)]
    staged: Option<u64>,

    /// Seconds for which objects are kept that no file needs any more: a backup of the database is
    /// usable for so long (default: 3600)
    #[arg(long, value_name = "SECONDS", value_parser = clap::value_parser!(u64).range(0..=315_360_000))]
    keep: Option<u64>,

    /// How clients learn of each other's changes. told: by messages, which take some milliseconds;
    /// timed: what was read is asked for anew after a second (default: told)
    #[arg(long, value_name = "HOW", value_parser = ["told", "timed"])]
    coherence: Option<String>,

    /// A role of the database that may mount it, beside the one that makes it
    #[arg(long, value_name = "NAME")]
    role: Option<String>,
}

impl ClusterOptions {
    /// The option that was given, if any: a volume has none of them.
    pub(crate) fn given(&self) -> Option<&'static str> {
        let all = [
            (self.inline.is_some(), "--inline"),
            (self.staged.is_some(), "--staged"),
            (self.keep.is_some(), "--keep"),
            (self.coherence.is_some(), "--coherence"),
            (self.role.is_some(), "--role"),
        ];
        all.into_iter()
            .find_map(|(is_given, name)| is_given.then_some(name))
    }

    fn settings(&self) -> Settings {
        let mut settings = Settings::default();
        let (inline, staged) = (self.inline, self.staged);
        settings.inline = inline.unwrap_or(settings.inline);
        // A larger limit of what stays in the database stages nothing.
        settings.staged = staged.unwrap_or(settings.staged.max(settings.inline));
        settings.keep = self.keep.map_or(settings.keep, Duration::from_secs);
        settings.notifies = self.coherence.as_deref() != Some("timed");
        settings
    }
}

/// What is asked of a new file system.
pub(crate) struct Make<'a> {
    pub(crate) options: &'a ClusterOptions,
    /// An option that was given, and that only volumes have.
    pub(crate) of_volumes: Option<&'static str>,
    /// User and group of the root directory; `None`: the caller's.
    pub(crate) owner: (Option<u32>, Option<u32>),
    /// Is a file system that is there already replaced?
    pub(crate) force: bool,
    pub(crate) output: &'a Output,
}

/// Makes a file system.
pub(crate) fn run(address: &Address, arguments: &Make<'_>) -> Result<()> {
    if let Some(option) = arguments.of_volumes {
        return Err(Failure::new("it is for volumes")
            .about(format!("option {option}"))
            .hint("leave it out: the database and the bucket grow by themselves"));
    }
    let options = MkfsOptions {
        settings: arguments.options.settings(),
        role: arguments.options.role.clone(),
    };
    let (uid, gid) = arguments.owner;
    let (by, client) = (environment(), client(RETRY));
    let made = Tree::make(address, &by, &client, options, arguments.force);
    let settings = made.map_err(|error| failure(address, &error))?;
    let tree = Tree::open(address, &by, &client).map_err(|error| failure(address, &error))?;
    let owned = tree.meta.perform(Request::SetAttributes {
        ino: Ino::ROOT,
        change: Change {
            uid: Some(uid.unwrap_or_else(|| rustix::process::getuid().as_raw())),
            gid: Some(gid.unwrap_or_else(|| rustix::process::getgid().as_raw())),
            ..Change::default()
        },
    });
    end(&tree);
    owned.map_err(|error| refusal(address, error))?;
    report(address, &settings, arguments.output)
}

fn report(address: &Address, settings: &Settings, output: &Output) -> Result<()> {
    let uuid = super::report::uuid(&settings.uuid);
    let made = json!({
        "file_system": address.to_string(),
        "uuid": uuid,
        "bucket": settings.bucket,
    });
    let text = format!(
        "{address}: a file system with its objects in {}, {uuid}\n",
        settings.bucket
    );
    output.print(&made, text)
}
