//! Two machines with one tree, in one thread: each caller of a random script is at one of them, and
//! each answers as one file system in memory does.
//!
//! Before an operation, the machine takes in what the other changed, and what it does not watch
//! expires. After it, what was written goes to the database. Record locks are each machine's own,
//! so scripts have none.

use crate::{Client, Cluster};
use holdfast_cluster::meta::Settings;
use holdfast_testkit::diff::cast::cast;
use holdfast_testkit::diff::host::AtimeRule;
use holdfast_testkit::diff::library::{LibraryTarget, options};
use holdfast_testkit::diff::op::{Bytes, Op};
use holdfast_testkit::diff::run::{Plan, Sides, generated, on_own_thread};
use holdfast_testkit::diff::target::{Step, Target};
use holdfast_testkit::diff::view::{Detail, View};
use holdfast_testkit::{effort, seed};
use holdfast_types::{Access, Result};
use std::time::Duration;

/// A machine.
struct Machine {
    client: Client,
    target: LibraryTarget,
}

impl Machine {
    fn new(cluster: &Cluster) -> Self {
        let client = cluster.client_with(options(AtimeRule::Never));
        Self {
            target: LibraryTarget::over(client.fs.clone(), &cast()),
            client,
        }
    }

    /// What the other machine changed is taken in.
    fn takes_in(&self) {
        self.client.store.beat().unwrap();
    }
}

/// Two machines with one tree.
struct Machines {
    machines: [Machine; 2],
    /// How long answers hold that no machine watches.
    lease: Duration,
}

impl Target for Machines {
    fn run(&mut self, caller: usize, op: &Op, slots: &[usize]) -> Step {
        std::thread::sleep(self.lease);
        let machine = &mut self.machines[caller % 2];
        machine.takes_in();
        let step = machine.target.run(caller, &without_locks(op), slots);
        machine.client.fs.sync().unwrap();
        step
    }

    fn look(&mut self, path: &Bytes, follow: bool, detail: Detail) -> Result<View> {
        let look = |machine: &mut Machine| {
            machine.takes_in();
            machine.target.look(path, follow, detail)
        };
        let [first, second] = &mut self.machines;
        let (first, second) = (look(first), look(second));
        assert_eq!(first, second, "{path:?} at both machines");
        first
    }
}

/// One file system, for the same scripts.
struct Single(LibraryTarget);

impl Target for Single {
    fn run(&mut self, caller: usize, op: &Op, slots: &[usize]) -> Step {
        self.0.run(caller, &without_locks(op), slots)
    }

    fn look(&mut self, path: &Bytes, follow: bool, detail: Detail) -> Result<View> {
        self.0.look(path, follow, detail)
    }
}

/// The operation, or another in place of one with locks.
fn without_locks(op: &Op) -> Op {
    match op {
        Op::SetLock { .. } | Op::GetLock { .. } | Op::Flock { .. } => Op::Access {
            path: Bytes(b".".to_vec()),
            want: Access::empty(),
            follow: true,
        },
        other => other.clone(),
    }
}

/// Runs random scripts at two machines.
fn agree(notifies: bool, lease: Duration, steps: usize) {
    for number in 0..effort().of(4, 16) {
        let plan = Plan {
            cast: cast(),
            atime: AtimeRule::Never,
            opens_local: false,
            seed: seed(1) + number,
            steps,
            between_snapshots: 100,
            collect: false,
            cpu: None,
        };
        let cluster = Cluster::with(Settings {
            notifies,
            lease,
            ..Settings::default()
        });
        let ran = on_own_thread(|| {
            let machines = [Machine::new(&cluster), Machine::new(&cluster)];
            let sides = Sides {
                kernel: Box::new(Single(LibraryTarget::memory(&plan.cast, plan.atime))),
                library: Box::new(Machines { machines, lease }),
            };
            generated(sides, &plan)
        });
        if let Err(failure) = ran {
            panic!("seed {}: {failure}", plan.seed);
        }
        let found = cluster.database.session().check(false);
        assert_eq!(found, Ok(Vec::new()), "seed {}", plan.seed);
    }
}

#[test]
fn two_machines_that_ask_each_time_answer_as_one() {
    agree(false, Duration::ZERO, effort().of(1500, 15_000));
}

#[test]
fn two_machines_that_are_notified_answer_as_one() {
    agree(true, Duration::from_millis(2), effort().of(800, 8000));
}
