//! What `holdfast info` tells of a file system of several machines.

use super::{end, open, refusal};
use crate::info::report::{ClientUse, ClusterUse};
use crate::info::table::{cluster_rows, write_rows};
use crate::message::Result;
use crate::output::print_json;
use holdfast::types::Result as Answer;
use holdfast_cluster::Tree;
use holdfast_cluster::address::Address;
use std::io::Write as _;
use std::time::Duration;

/// Bytes of a page.
const PAGE: u64 = 4096;

/// Prints the report of a file system by its address.
pub(crate) fn print(address: &Address, json: bool) -> Result<()> {
    let tree = open(address)?;
    let found = of(&tree);
    end(&tree);
    let mut found = found.map_err(|error| refusal(address, error))?;
    // This command is no client that anyone looks for.
    found.clients.retain(|client| !client.own);
    found.trips.clear();
    if json {
        return print_json(&found);
    }
    let mut text = String::new();
    let mut rows = vec![("source", address.to_string())];
    rows.extend(cluster_rows(&found));
    // A string takes all.
    let _ = write_rows(&mut text, &rows);
    Ok(anstream::stdout().write_all(text.as_bytes())?)
}

/// Asks the database.
pub(crate) fn of(tree: &Tree) -> Answer<ClusterUse> {
    let (settings, usage) = (&tree.settings, tree.meta.usage()?);
    let millis = |time: Duration| u64::try_from(time.as_millis()).unwrap_or(u64::MAX);
    let clients = tree.meta.clients()?.into_iter().map(|client| ClientUse {
        session: client.session,
        host: client.host,
        version: client.version,
        silent_milliseconds: millis(client.silent),
        messages_waiting: client.waiting,
        own: client.own,
    });
    Ok(ClusterUse {
        uuid: uuid(&settings.uuid),
        incarnation: settings.incarnation,
        bucket: settings.bucket.clone(),
        endpoint: settings.endpoint.clone(),
        region: settings.region.clone(),
        coherence: match settings.notifies {
            true => "told",
            false => "timed",
        }
        .into(),
        lease_milliseconds: millis(settings.lease),
        inline_bytes: settings.inline,
        staged_bytes_max: settings.staged,
        keep_seconds: settings.keep.as_secs(),
        inodes: usage.inodes,
        space_bytes: usage.pages.saturating_mul(PAGE),
        staged_bytes: usage.staged,
        objects: usage.objects,
        object_bytes: usage.object_bytes,
        live_bytes: usage.live_bytes,
        objects_unmapped: usage.unmapped,
        clients: clients.collect(),
        trips: tree.meta.trips(),
    })
}

/// The usual form of an identity.
pub(crate) fn uuid(bytes: &[u8; 16]) -> String {
    let digits: String = bytes.iter().map(|byte| format!("{byte:02x}")).collect();
    let parts = [0..8, 8..12, 12..16, 16..20, 20..32].map(|range| &digits[range]);
    parts.join("-")
}

#[cfg(test)]
mod tests {
    use super::uuid;

    #[test]
    fn an_identity_has_five_parts() {
        let bytes = std::array::from_fn(|at| at as u8);
        assert_eq!(uuid(&bytes), "00010203-0405-0607-0809-0a0b0c0d0e0f");
    }
}
