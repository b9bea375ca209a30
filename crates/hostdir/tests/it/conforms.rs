//! The conformance suite over a file system over a directory of the host.

use crate::NOTIFIED;
use holdfast_core::store::Coherence;
use holdfast_core::{FileSystem, Options as CoreOptions};
use holdfast_hostdir::{HostDirectory, Options};
use holdfast_testkit::conformance::{LibrarySubject, Subject, all, failures};
use holdfast_testkit::diff::cast::cast;
use holdfast_testkit::skip::skipped;
use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::sync::Arc;
use std::time::Duration;

/// Cases that are not so over a directory of the host, and why.
const NOT_HERE: &[(&str, &str)] = &[(
    "a_read_touches_atime_unless_asked_not_to",
    "the times are the host's, and it does not hear of reads from memory",
)];

#[test]
fn a_file_system_over_a_directory_of_the_host_conforms() {
    if !rustix::process::geteuid().is_root() {
        return skipped("only root acts as all callers of the suite");
    }
    let mut cases = all();
    cases.retain(|case| NOT_HERE.iter().all(|(name, _)| *name != case.name));
    for coherence in [
        Coherence::Exclusive,
        Coherence::For(Duration::ZERO),
        NOTIFIED,
    ] {
        println!("{coherence:?}");
        let mut cases = cases.clone();
        if coherence != Coherence::Exclusive {
            // Its 100,000 names are asked for one by one: once is enough.
            cases.retain(|case| case.name != "a_large_directory_lists_every_name_once");
        }
        if coherence == Coherence::For(Duration::ZERO) {
            // Each step of each way is asked for each time: some million questions.
            cases.retain(|case| case.name != "a_tree_4096_deep_is_made_walked_and_removed");
        }
        let dir = tempfile::tempdir().unwrap();
        fs::set_permissions(dir.path(), fs::Permissions::from_mode(0o755)).unwrap();
        let options = Options {
            coherence,
            ..Options::default()
        };
        let store = HostDirectory::open(dir.path(), options).unwrap();
        let core = CoreOptions {
            nodev: true,
            ..CoreOptions::default()
        };
        let fs = FileSystem::new(Arc::new(store), core).unwrap();
        let subject: Arc<dyn Subject> = Arc::new(LibrarySubject::new(&fs, &cast()));
        let failures = failures(&subject, &cases);
        assert!(failures.is_empty(), "{}", failures.join("\n"));
        assert_eq!(std::fs::read_dir(dir.path()).unwrap().count(), 0);
    }
}
