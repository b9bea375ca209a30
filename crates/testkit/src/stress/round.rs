//! The life of one file system, and what must be left of it: nothing.

use super::attributes::VALUES_PAGES;
use super::below::Below;
use super::hands::Hands;
use super::survey::{difference, remove_all, survey};
use super::worker::{Worker, owner};
use super::world::World;
use super::{Settings, chores};
use crate::rng::Rng;
use holdfast_core::{FileSystem, Options, QuotaKind, Stats};
use std::sync::Arc;
use std::thread;
use std::time::{Duration, Instant};

/// A round that is to begin.
pub(super) struct Round {
    world: Arc<World>,
    threads: usize,
    time: Duration,
    rng: Rng,
    by_force: bool,
}

/// A round after its threads have stopped, with what they hold.
pub(super) struct Ending {
    world: Arc<World>,
    hands: Vec<Hands>,
    rng: Rng,
    by_force: bool,
}

impl Round {
    /// # Errors
    /// If there is nothing to stand on.
    pub(super) fn new(settings: &Settings, number: u64, time: Duration) -> Result<Self, String> {
        let mut rng = Rng::new(settings.seed.wrapping_add(number << 20));
        let threads = settings.threads;
        let options = Options {
            root_perm: 0o777,
            sync: rng.one_in(6),
            lazytime: rng.one_in(2),
            // Over a store, content comes and goes then.
            memory: Some(if rng.one_in(2) { 256 << 10 } else { u64::MAX }),
            ..Options::default()
        };
        let world = World::new(settings.base, number, threads + chores::COUNT, options)?;
        Ok(Self {
            world: Arc::new(world),
            threads,
            // Short ones too: what has just begun is taken away in another way.
            time: if rng.one_in(4) { time / 20 } else { time },
            by_force: number % 3 != 2,
            rng,
        })
    }

    /// Will it be revoked?
    pub(super) fn ends_by_force(&self) -> bool {
        self.by_force
    }

    /// Lets all threads work until the time is up.
    ///
    /// # Errors
    /// What went wrong.
    pub(super) fn live(mut self) -> Result<Ending, String> {
        let world = &*self.world;
        let end = Instant::now() + self.time;
        let seeds: Vec<Rng> = (0..self.threads + chores::COUNT)
            .map(|_| Rng::new(self.rng.bits()))
            .collect();
        let (threads, by_force) = (self.threads, self.by_force);
        let hands = thread::scope(|scope| {
            let mut seeds = seeds.into_iter().enumerate();
            let workers: Vec<_> = seeds
                .by_ref()
                .take(threads)
                .map(|(number, rng)| scope.spawn(move || Worker::new(world, number, rng).work()))
                .collect();
            let chores: Vec<_> = chores::ALL
                .into_iter()
                .zip(seeds)
                .map(|(chore, (number, rng))| {
                    scope.spawn(move || chores::run(chore, world, number, rng))
                })
                .collect();
            world.watch_over(end);
            if by_force {
                // Twice at once, as it may happen.
                let other = scope.spawn(|| world.fs.revoke());
                let answers = [world.fs.revoke(), other.join().unwrap_or(Ok(()))];
                let fine = answers == [Ok(()), Ok(())];
                world.demand(fine, || format!("revoke answered {answers:?}"));
            }
            world.stop();
            let begun = Instant::now();
            while !workers.iter().all(|worker| worker.is_finished()) {
                world.must_end(begun);
                world.cancel_waits();
                thread::sleep(Duration::from_micros(200));
            }
            let looked_after = chores.into_iter().all(|chore| chore.join().is_ok());
            let hands = workers.into_iter().map(|worker| worker.join().ok());
            hands
                .collect::<Option<Vec<Hands>>>()
                .filter(|_| looked_after)
        });
        world.trouble()?;
        Ok(Ending {
            hands: hands.ok_or("a thread panicked")?,
            world: self.world,
            rng: self.rng,
            by_force,
        })
    }
}

impl Ending {
    /// Operations done and refused.
    pub(super) fn counts(&self) -> (u64, u64) {
        self.world.counts()
    }

    /// Closes everything, and looks whether anything is left.
    ///
    /// # Errors
    /// What is left, or went wrong.
    pub(super) fn wind_up(self) -> Result<(), String> {
        let Self {
            world,
            hands,
            mut rng,
            by_force,
        } = self;
        for (number, mut hands) in hands.into_iter().enumerate() {
            if by_force {
                hands.outlive(&world, &mut rng, owner(number));
            } else {
                hands.empty(&world, &mut rng, owner(number));
            }
        }
        world.trouble()?;
        let fs = if by_force {
            left(&world.fs, "revoked")?;
            if world.below.is_pinned() {
                // The root stays, with its attributes.
                return world.below.nothing_taken("revoked", VALUES_PAGES);
            }
            world.below.consistent()?;
            // The next round finds what was there.
            FileSystem::new(world.below.store(), Options::default())
                .map_err(|error| format!("the next one: {error:?}"))?
        } else {
            compare_after_eviction(&world)?;
            world.fs.clone()
        };
        let world = Arc::into_inner(world).ok_or("somebody has the world still")?;
        let below = world.below;
        drop(world.fs);
        let seen = survey(&fs)?;
        let (below, fs) = below.reopened(fs, &seen)?;
        empty(&below, &fs)?;
        fs.close().map_err(|error| format!("close: {error:?}"))?;
        drop(fs);
        below.end()
    }
}

/// What is loaded again must be what was there.
fn compare_after_eviction(world: &World) -> Result<(), String> {
    let before = survey(&world.fs)?;
    let dropped = world.fs.drop_caches();
    dropped.map_err(|error| format!("drop_caches: {error:?}"))?;
    if !world.below.is_pinned() {
        let inodes = world.fs.stats().inodes;
        if inodes != 1 {
            return Err(format!("{inodes} inodes after an eviction without users"));
        }
        world.below.consistent()?;
    }
    let after = survey(&world.fs)?;
    difference(&before, &after).map_or(Ok(()), Err)
}

/// Removes everything; then nothing may be left, in memory or in the store.
fn empty(below: &Below, fs: &FileSystem) -> Result<(), String> {
    remove_all(fs)?;
    left(fs, "emptied")?;
    below.nothing_taken("emptied", 0)
}

/// Nothing but the root may be left in memory.
fn left(fs: &FileSystem, what: &str) -> Result<(), String> {
    let stats = fs.stats();
    let nothing = Stats {
        inodes: 1,
        // Of all inodes that came ahead each was used or went unused.
        statahead_issued: stats.statahead_used + stats.statahead_wasted,
        statahead_used: stats.statahead_used,
        statahead_wasted: stats.statahead_wasted,
        promoted: stats.promoted,
        refaults: stats.refaults,
        content_refaults: stats.content_refaults,
        ..Stats::default()
    };
    if stats != nothing {
        let census = fs.inode_census();
        return Err(format!("{what}, and there is {stats:?}, {census:?}"));
    }
    if !fs.quota_is_on() {
        return Ok(());
    }
    let report = fs.quota_report();
    for kind in [QuotaKind::User, QuotaKind::Group] {
        let of_kind = report.iter().filter(|record| record.kind == kind);
        let (bytes, inodes) = of_kind.fold((0, 0), |(bytes, inodes), record| {
            (bytes + record.usage.bytes, inodes + record.usage.inodes)
        });
        if (bytes, inodes) != (0, 1) {
            return Err(format!("{what}, and quotas have {report:?}"));
        }
    }
    Ok(())
}
