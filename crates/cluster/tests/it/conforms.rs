//! testkit's suites over one mount.

use crate::{Client, Cluster};
use holdfast_cluster::meta::{Meta as _, Settings};
use holdfast_testkit::conformance::{LibrarySubject, Subject, all, failures};
use holdfast_testkit::diff::cast::cast;
use holdfast_testkit::diff::host::{AtimeRule, HostTarget};
use holdfast_testkit::diff::library::{LibraryTarget, options};
use holdfast_testkit::diff::run::{Plan, Sides, generated, on_own_thread};
use holdfast_testkit::fsx;
use holdfast_testkit::skip::skipped;
use holdfast_testkit::{effort, seed};
use holdfast_types::Ino;
use std::sync::Arc;
use std::time::Duration;

/// Cases that are not so over this store, and why.
pub(crate) const NOT_HERE: &[(&str, &str)] = &[(
    "a_read_touches_atime_unless_asked_not_to",
    "the times are the database's, and it does not hear of reads",
)];

/// Operations that fail for two reasons, of which a store that is written through finds the other
/// first.
const OTHER_ERRORS: &[&str] = &["Rename: kernel ENOENT, library ENAMETOOLONG"];

/// Beats that are enough for the inodes that the suite leaves without names.
const BEATS: usize = 10;

const HOUR: Duration = Duration::from_secs(3600);

#[test]
fn a_mount_conforms() {
    let mut cases = all();
    cases.retain(|case| NOT_HERE.iter().all(|(name, _)| *name != case.name));
    for (lease, notifies) in [(Duration::ZERO, false), (HOUR, false), (HOUR, true)] {
        println!("lease {lease:?}, notifies: {notifies}");
        let mut cases = cases.clone();
        if lease == Duration::ZERO {
            // Each step of each way is asked for each time: some million questions.
            cases.retain(|case| {
                ![
                    "a_tree_4096_deep_is_made_walked_and_removed",
                    "a_large_directory_lists_every_name_once",
                ]
                .contains(&case.name)
            });
        }
        let cluster = Cluster::with(Settings {
            lease,
            notifies,
            ..Settings::default()
        });
        let client = cluster.client_with(options(AtimeRule::Relative));
        let subject: Arc<dyn Subject> = Arc::new(LibrarySubject::new(&client.fs, &cast()));
        let failures = failures(&subject, &cases);
        assert!(failures.is_empty(), "{}", failures.join("\n"));
        client.fs.sync().unwrap();
        let found = cluster.database.session().check(false);
        assert_eq!(found, Ok(Vec::new()));
        // It holds directories open.
        drop(subject);
        client.frees_all();
    }
}

impl Client {
    /// Nothing but the root is left, once the sweep has freed all inodes without names.
    pub(crate) fn frees_all(&self) {
        self.fs.drop_caches().unwrap();
        // A beat asks about some thousand inodes, and the next one answers.
        (0..BEATS).for_each(|_| self.store.beat().unwrap());
        self.store.sweep().unwrap();
        let left = self.meta.walk(Ino(0), 10).unwrap();
        let left: Vec<_> = left.into_iter().map(|node| node.record).collect();
        assert!(left.len() == 1 && left[0].ino == Ino::ROOT, "{left:#?}");
        assert_eq!(self.meta.usage().unwrap().inodes, 1);
    }
}

#[test]
fn a_mount_answers_as_the_kernel_does() {
    if let Some(obstacle) = HostTarget::obstacle() {
        return skipped(&obstacle);
    }
    for number in 0..4 {
        let plan = Plan {
            cast: cast(),
            atime: AtimeRule::Never,
            opens_local: false,
            seed: seed(1) + number,
            steps: effort().of(2_500, 25_000),
            between_snapshots: 500,
            collect: true,
            cpu: None,
        };
        let cluster = Cluster::new([Duration::ZERO, HOUR][number as usize % 2]);
        let ran = on_own_thread(|| {
            let client = cluster.client_with(options(AtimeRule::Never));
            let sides = Sides {
                kernel: Box::new(HostTarget::enter(&plan.cast, plan.atime).unwrap()),
                library: Box::new(LibraryTarget::over(client.fs, &plan.cast)),
            };
            generated(sides, &plan)
        });
        match ran {
            Ok(summary) => {
                let is_known = |key: &&String| OTHER_ERRORS.contains(&key.as_str());
                let others: Vec<&String> = summary.errors.keys().collect();
                assert!(others.iter().all(is_known), "{others:?}");
            }
            Err(failure) => panic!("seed {}: {failure}", plan.seed),
        }
    }
}

#[test]
fn every_byte_is_as_in_the_image() {
    for number in 0..4 {
        let plan = fsx::Plan {
            seed: seed(1) + number,
            operations: effort().of(10_000, 250_000),
            most: 256 * 1024,
            between_checks: 1000,
        };
        let client = Cluster::new(HOUR).client();
        if let Err(report) = fsx::exercise(&client.fs, "fsx", &plan) {
            panic!("{report}");
        }
    }
}
