//! File systems of several machines, `pg://...`: what the commands share.

pub(crate) mod fsck;
pub(crate) mod mkfs;
pub(crate) mod report;
pub(crate) mod tools;

use crate::message::{Failure, Result};
use holdfast::types::Errno;
use holdfast_cluster::address::{Address, Environment};
use holdfast_cluster::{Client, FileOptions, Tree, TreeError};
use nix::unistd::{User, geteuid};
use std::ffi::{OsStr, OsString};
use std::time::Duration;

/// How long the calls of a command wait for the database. Some questions concern all inodes.
const RETRY: Duration = Duration::from_secs(3600);

/// The address that an argument is; `None`: it is none. Warns of a password in it.
///
/// # Errors
/// If the address is malformed.
pub(crate) fn named(given: &OsStr) -> Result<Option<Address>> {
    let address = parse(given)?;
    if let Some(address) = &address {
        warn_of_password(address);
    }
    Ok(address)
}

/// The same without a warning.
pub(crate) fn parse(given: &OsStr) -> Result<Option<Address>> {
    let Some(text) = given.to_str().filter(|text| Address::is_one(text)) else {
        return Ok(None);
    };
    // The text is not repeated: it may have a password.
    let wrong = |error| Failure::new(error).about("the address pg://...");
    Address::parse(text).map(Some).map_err(wrong)
}

pub(crate) fn warn_of_password(address: &Address) {
    if address.password().is_some() {
        anstream::eprintln!(
            "holdfast: {address}: the password in an address can be read in the list of processes: \
             put it into ~/.pgpass, or into PGPASSWORD"
        );
    }
}

/// The environment of this process, with the home directory of its user.
pub(crate) fn environment() -> Environment {
    // Of an unknown user nothing is known but the variables.
    let user = User::from_uid(geteuid()).ok().flatten();
    let home = user.as_ref().map(|user| OsString::from(&user.dir));
    let find = move |name: &str| {
        let found = std::env::var_os(name).filter(|value| !value.is_empty());
        // mount(8) is run at the start of a system without HOME.
        found.or_else(|| home.clone().filter(|_| name == "HOME"))
    };
    Environment::new(find, user.map_or_else(|| "root".into(), |user| user.name))
}

/// This machine, as others see it.
pub(crate) fn client(retry: Duration) -> Client {
    let name = rustix::system::uname();
    Client {
        host: name.nodename().to_string_lossy().into_owned(),
        retry,
        bucket_retry: FileOptions::default().retry,
    }
}

/// Opens a file system for a command.
pub(crate) fn open(address: &Address) -> Result<Tree> {
    let opened = Tree::open(address, &environment(), &client(RETRY));
    opened.map_err(|error| failure(address, &error))
}

/// Ends the session, after the work of a command. A session that is not ended ends by itself.
pub(crate) fn end(tree: &Tree) {
    if let Err(error) = tree.end_session() {
        tracing::warn!("the session lasts for another minute: {error}");
    }
}

pub(crate) fn failure(address: &Address, error: &TreeError) -> Failure {
    let failure = Failure::new(error).about(address);
    match error.remedy() {
        Some(remedy) => failure.hint(remedy),
        None => failure,
    }
}

/// The failure of a request.
pub(crate) fn refusal(address: &Address, error: Errno) -> Failure {
    let failure = Failure::new(error).about(address);
    match error {
        Errno::EIO => failure.hint("the database or the bucket did not answer in time"),
        Errno::ESTALE => failure.hint("another client has ended this session"),
        _ => failure,
    }
}
