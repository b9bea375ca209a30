//! `holdfast gc` and `holdfast fence`.

use super::{end, named, open, refusal};
use crate::info::units::number;
use crate::message::{Failure, Result};
use crate::output::Output;
use holdfast::types::Errno;
use holdfast_cluster::Tree;
use holdfast_cluster::address::Address;
use serde_json::json;
use std::ffi::{OsStr, OsString};

/// Free what nobody needs in a file system of several machines
///
/// Inodes without names that no client uses, objects that no file needs any more, and objects that
/// a client stored and did not come to map before it was ended. Mounts do this by themselves; the
/// command is for a file system that is not mounted, or to look. It may run beside all of them.
#[derive(Debug, clap::Args)]
pub(crate) struct CollectArguments {
    /// The file system: pg://USER@HOST/DATABASE?fs=NAME
    #[arg(value_name = "URL")]
    url: OsString,

    /// Only count the objects that could be deleted
    #[arg(long)]
    dry_run: bool,

    #[command(flatten)]
    output: Output,
}

/// End a client of a file system of several machines
///
/// For a machine that is gone for good: its open files and all that it kept are free at once, and
/// not after a minute. If it is there still, it can change nothing any more: its mount answers
/// errors until it is mounted anew.
#[derive(Debug, clap::Args)]
pub(crate) struct FenceArguments {
    /// The file system: pg://USER@HOST/DATABASE?fs=NAME
    #[arg(value_name = "URL")]
    url: OsString,

    /// The client's number, as `holdfast info URL` prints it, or its host if that has one mount
    #[arg(value_name = "CLIENT")]
    client: String,

    #[command(flatten)]
    output: Output,
}

pub(crate) fn collect(arguments: &CollectArguments) -> Result<()> {
    let address = needed(&arguments.url)?;
    let tree = open(&address)?;
    let collected = tree.delete_garbage(arguments.dry_run);
    end(&tree);
    let collected = collected.map_err(|error| refusal(&address, error))?;
    let report = json!({
        "dry_run": arguments.dry_run,
        "inodes": collected.inodes,
        "objects": collected.objects,
    });
    let (inodes, objects) = (number(collected.inodes), number(collected.objects));
    let text = match arguments.dry_run {
        true => format!("{address}: {objects} objects could be deleted\n"),
        false => format!("{address}: {inodes} inodes freed, {objects} objects deleted\n"),
    };
    arguments.output.print(&report, text)
}

pub(crate) fn fence(arguments: &FenceArguments) -> Result<()> {
    let address = needed(&arguments.url)?;
    let tree = open(&address)?;
    let fenced = fence_in(&tree, &address, &arguments.client);
    end(&tree);
    let (session, host) = fenced?;
    let report = json!({ "session": session, "host": host });
    let text = format!("{address}: client {session} on {host} is ended\n");
    arguments.output.print(&report, text)
}

/// Ends the client that is named, and returns its number and its host.
fn fence_in(tree: &Tree, address: &Address, name: &str) -> Result<(u64, String)> {
    let refused = |error| refusal(address, error);
    let clients = tree.meta.clients().map_err(refused)?;
    let is_it = |session: u64, host: &str| session.to_string() == name || host == name;
    let mut found = clients
        .into_iter()
        .filter(|client| !client.own && is_it(client.session, &client.host));
    let hint = format!("holdfast info '{address}' lists the clients");
    let none = || Failure::new("there is no such client").about(name);
    let client = found.next().ok_or_else(|| none().hint(&hint))?;
    if found.next().is_some() {
        let failure = Failure::new("has more than one mount").about(name);
        return Err(failure.hint(format!("name one by its number: {hint}")));
    }
    match tree.meta.fence(client.session) {
        Ok(()) => Ok((client.session, client.host)),
        Err(Errno::ENOENT) => Err(none().hint(&hint)),
        Err(error) => Err(refused(error)),
    }
}

fn needed(url: &OsStr) -> Result<Address> {
    named(url)?.ok_or_else(|| {
        let failure = Failure::new("is no address of a file system").about(url.display());
        failure.hint("pg://USER@HOST/DATABASE?fs=NAME")
    })
}
