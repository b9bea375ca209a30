//! The conformance suite over the library, over a plain store, over the host's tmpfs, and over
//! the directory that `HOLDFAST_CONFORMANCE_DIR` names (a mount of ours, say).

use holdfast_core::store::Coherence;
use holdfast_core::{FileSystem, Options};
use holdfast_testkit::conformance::{Case, LibrarySubject, Subject, all, failures};
use holdfast_testkit::diff::cast::cast;
use holdfast_testkit::diff::host::{AtimeRule, HostCallers, HostTarget};
use holdfast_testkit::diff::library::options;
use holdfast_testkit::memory::{partial, within};
use holdfast_testkit::skip::skipped;
use holdfast_testkit::store::{ModelStore, SharedStore};
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

/// Cases that no FUSE mount can pass, and why.
const IMPOSSIBLE_OVER_FUSE: &[(&str, &str)] = &[(
    "a_read_touches_atime_unless_asked_not_to",
    "reads that the kernel's page cache serves are never told to the file system",
)];

/// Cases that are not so over a store that is written through, and why.
const NOT_THROUGH: &[(&str, &str)] = &[(
    "a_read_touches_atime_unless_asked_not_to",
    "the times of such a store are its own, and it does not hear of reads",
)];

/// Cases that need extended attributes or ACLs: a file system that has none
/// (`HOLDFAST_CONFORMANCE_NOXATTR` is set) fails exactly these.
const NEED_ATTRIBUTES: [&str; 3] = [
    "an_acl_lets_a_named_user_in_up_to_the_mask",
    "a_default_acl_is_inherited_instead_of_the_umask",
    "extended_attributes_keep_to_their_namespaces",
];

fn assert_conforms(subject: Arc<dyn Subject>) {
    assert_conforms_to(subject, &all());
}

fn assert_conforms_to(subject: Arc<dyn Subject>, cases: &[Case]) {
    let failures = failures(&subject, cases);
    assert!(failures.is_empty(), "{}", failures.join("\n"));
}

#[test]
fn the_library_over_memory_conforms() {
    let fs = FileSystem::memory(Default::default(), options(AtimeRule::Relative));
    assert_conforms(Arc::new(LibrarySubject::new(&fs, &cast())));
    assert_eq!(fs.stats().inodes, 1, "nothing but the root is left");
    assert_eq!(
        (fs.stats().pages, fs.stats().locks),
        (0, 0),
        "no page, no lock is left"
    );
}

#[test]
fn the_library_over_a_plain_store_conforms() {
    // Once with so little memory that all comes and goes.
    for memory in [None, Some(256 << 10)] {
        let store = Arc::new(ModelStore::new());
        let fs = within(store.clone(), options(AtimeRule::Relative), memory).unwrap();
        assert_conforms(Arc::new(LibrarySubject::new(&fs, &cast())));
        assert_eq!(store.contradictions(), [""; 0]);
    }
}

#[test]
fn the_library_conforms_without_stat_ahead() {
    let store = Arc::new(ModelStore::new());
    let options = Options {
        statahead: false,
        ..options(AtimeRule::Relative)
    };
    let fs = within(store.clone(), options, Some(256 << 10)).unwrap();
    assert_conforms(Arc::new(LibrarySubject::new(&fs, &cast())));
    assert_eq!(fs.stats().statahead_issued, 0);
    assert_eq!(store.contradictions(), [""; 0]);
}

#[test]
fn the_library_conforms_with_no_directory_in_memory_as_a_whole() {
    let store = Arc::new(ModelStore::new());
    let options = partial(options(AtimeRule::Relative));
    let fs = within(store.clone(), options, None).unwrap();
    assert_conforms(Arc::new(LibrarySubject::new(&fs, &cast())));
    assert_eq!(store.contradictions(), [""; 0]);
}

#[test]
fn the_library_over_a_store_that_is_written_through_conforms() {
    let mut cases = all();
    cases.retain(|case| NOT_THROUGH.iter().all(|(name, _)| *name != case.name));
    for coherence in [
        Coherence::Exclusive,
        Coherence::For(Duration::from_secs(3600)),
        Coherence::For(Duration::ZERO),
    ] {
        let mut cases = cases.clone();
        if coherence != Coherence::Exclusive {
            // Its 100,000 names are asked for one by one: once is enough.
            cases.retain(|case| case.name != "a_large_directory_lists_every_name_once");
        }
        if coherence == Coherence::For(Duration::ZERO) {
            // Each step of each way is asked for each time: some million questions.
            cases.retain(|case| case.name != "a_tree_4096_deep_is_made_walked_and_removed");
        }
        for silent in [false, true] {
            println!("{coherence:?}, silent: {silent}");
            let store = Arc::new(SharedStore::new(coherence));
            if silent {
                store.silence();
            }
            let fs = within(store.clone(), options(AtimeRule::Relative), None).unwrap();
            assert_conforms_to(Arc::new(LibrarySubject::new(&fs, &cast())), &cases);
            fs.drop_caches().unwrap();
            assert_eq!(store.known(), 1, "nothing but the root is known");
            assert_eq!(store.inodes(), 1, "nothing but the root is left");
        }
    }
}

/// The suite must not ask for what the kernel's own file system does not do.
#[test]
fn the_hosts_tmpfs_conforms() {
    match HostTarget::obstacle() {
        Some(obstacle) => skipped(&obstacle),
        None => assert_conforms(Arc::new(HostCallers::on_tmpfs(&cast()).unwrap())),
    }
}

#[test]
#[ignore = "of a mount that scripts/conformance.sh makes"]
fn the_directory_of_the_environment_conforms() {
    let dir = std::env::var("HOLDFAST_CONFORMANCE_DIR").expect("HOLDFAST_CONFORMANCE_DIR names it");
    let mut cases = all();
    const FUSE_SUPER_MAGIC: i64 = 0x6573_5546;
    if rustix::fs::statfs(&dir).unwrap().f_type == FUSE_SUPER_MAGIC {
        cases.retain(|case| {
            IMPOSSIBLE_OVER_FUSE
                .iter()
                .all(|(name, _)| *name != case.name)
        });
    }
    let subject = Arc::new(HostCallers::inside(Path::new(&dir), &cast()).unwrap());
    let subject: Arc<dyn Subject> = subject;
    if std::env::var_os("HOLDFAST_CONFORMANCE_NOXATTR").is_some() {
        let (need, rest) = cases
            .into_iter()
            .partition(|case| NEED_ATTRIBUTES.contains(&case.name));
        let need: Vec<Case> = need;
        assert_eq!(failures(&subject, &need).len(), NEED_ATTRIBUTES.len());
        cases = rest;
    }
    assert_conforms_to(subject, &cases);
}
