//! testkit's suites over a mount of the store, with its names in PostgreSQL.

use super::server::Server;
use crate::Client;
use crate::conforms::NOT_HERE;
use crate::counting::Counting;
use holdfast_cluster::memory::MemoryObjects;
use holdfast_cluster::meta::{Meta as _, Settings};
use holdfast_cluster::{ClusterStore, FileOptions};
use holdfast_core::{FileSystem, Options};
use holdfast_testkit::conformance::{LibrarySubject, Subject, all, failures};
use holdfast_testkit::diff::cast::cast;
use holdfast_testkit::diff::host::AtimeRule;
use holdfast_testkit::diff::library::options;
use holdfast_testkit::{effort, fsx, seed};
use std::sync::Arc;

fn mount(server: &Server, options: Options) -> Client {
    server.mkfs("holdfast", Settings::default());
    let meta = Counting::new(server.session("holdfast"));
    let objects = MemoryObjects::new();
    let store = ClusterStore::new(meta.clone(), objects, FileOptions::default()).unwrap();
    Client {
        meta,
        fs: FileSystem::new(store.clone(), options).unwrap(),
        store,
    }
}

#[test]
fn a_mount_conforms() {
    let Some(server) = Server::start(&[]) else {
        return;
    };
    let mut cases = all();
    let is_left_out = |name: &str| {
        let large = [
            "a_tree_4096_deep_is_made_walked_and_removed",
            "a_large_directory_lists_every_name_once",
        ];
        effort().of(large.contains(&name), false)
    };
    cases.retain(|case| {
        NOT_HERE.iter().all(|(name, _)| *name != case.name) && !is_left_out(case.name)
    });
    let client = mount(&server, options(AtimeRule::Relative));
    let subject: Arc<dyn Subject> = Arc::new(LibrarySubject::new(&client.fs, &cast()));
    let failures = failures(&subject, &cases);
    assert!(failures.is_empty(), "{}", failures.join("\n"));
    client.fs.sync().unwrap();
    assert_eq!(client.meta.check(false), Ok(vec![]));
    // It holds directories open.
    drop(subject);
    client.frees_all();
    let tables = [
        "entry", "gone", "sustain", "body", "extent", "target", "xattr",
    ];
    for table in tables {
        let rows = server.count(&format!("SELECT count(*) FROM holdfast.{table}"));
        assert_eq!(rows, 0, "{table}");
    }
}

#[test]
fn every_byte_is_as_in_the_image() {
    let Some(server) = Server::start(&[]) else {
        return;
    };
    let client = mount(&server, Options::default());
    let plan = fsx::Plan {
        seed: seed(1),
        operations: effort().of(3_000, 250_000),
        most: 256 * 1024,
        between_checks: 1000,
    };
    if let Err(report) = fsx::exercise(&client.fs, "fsx", &plan) {
        panic!("{report}");
    }
    client.fs.sync().unwrap();
    assert_eq!(client.meta.check(false), Ok(vec![]));
}
