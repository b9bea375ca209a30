//! Threads that look after the file system while others work: they walk, count, evict, scan, sync,
//! and switch options and quotas.

use super::world::World;
use crate::rng::Rng;
use holdfast_core::{AtimePolicy, Bulkstat, QuotaKind, QuotaLimit, QuotaLimits, Visit};
use holdfast_types::{Errno, Ino, Result, SetAttr, SetTime};
use std::time::Duration;

/// A thread of this kind: the base, its number, and the numbers it chooses by.
pub(super) type Chore = fn(&World, usize, &mut Rng);

/// All of them. Each has a thread of its own.
pub(super) const ALL: [Chore; 3] = [walk, evict, switch];

/// Of how many of these threads a world is to know.
pub(super) const COUNT: usize = ALL.len();

/// Runs one until the others are stopped.
pub(super) fn run(chore: Chore, world: &World, number: usize, mut rng: Rng) {
    while !world.is_stopped() && !world.fs.is_revoked() {
        chore(world, number, &mut rng);
        std::thread::sleep(Duration::from_micros(rng.below(3000)));
    }
}

fn walk(world: &World, number: usize, rng: &mut Rng) {
    let parts = 1 + rng.index(4);
    let used_only = rng.one_in(3);
    for walk in world.fs.inode_walks(parts) {
        let mut walk = if used_only { walk.used_only() } else { walk };
        let mut last = Ino(0);
        while !walk.is_done() && !world.is_stopped() {
            world.judged(number, "walk_inodes", || {
                world.fs.walk_inodes(&mut walk, |node| {
                    let (ino, before) = (node.ino(), last);
                    world.demand(ino > before, || format!("{ino:?} after {before:?}"));
                    last = ino;
                    visit(world, node, rng)
                })
            });
        }
    }
}

/// The operations of a visitor with all rights.
fn visit(world: &World, node: &holdfast_core::Node, rng: &mut Rng) -> Result<Visit> {
    let fs = &world.fs;
    let attr = fs.getattr(node);
    let same = (attr.ino, attr.kind) == (node.ino(), node.kind());
    world.demand(same, || format!("{node:?} has {attr:?}"));
    match rng.below(40) {
        0 => Ok(Visit::Stop),
        1 => Err(Errno::EINTR),
        2 => {
            let who = holdfast_types::Caller::root();
            let set = SetAttr {
                mtime: Some(SetTime::Now),
                ..SetAttr::default()
            };
            fs.setattr(&who, node, &set, None)?;
            Ok(Visit::Continue)
        }
        3 => {
            drop(fs.node(node.ino()));
            Ok(Visit::Continue)
        }
        _ => Ok(Visit::Continue),
    }
}

fn evict(world: &World, number: usize, rng: &mut Rng) {
    let fs = &world.fs;
    match rng.below(4) {
        0 => world.judged(number, "sync", || fs.sync()),
        1 => world.judged(number, "bulkstat", || scan(world, rng)),
        2 => world.judged(number, "inode_census", || {
            let census = fs.inode_census();
            let states = census.used + census.unused + census.orphans + census.dying;
            let kinds = census.regular + census.directories + census.symlinks + census.special;
            world.demand(states == kinds, || format!("{census:?}"));
            let stats = fs.stats();
            let name = || format!("{stats:?} of {}", fs.is_revoked());
            world.demand(stats.inodes < 1 << 30 && stats.names < 1 << 30, name);
            Ok(())
        }),
        _ => world.judged(number, "drop_caches", || fs.drop_caches().map(drop)),
    }
}

fn scan(world: &World, rng: &mut Rng) -> Result<()> {
    let mut scan = Bulkstat::new();
    let mut last = Ino(0);
    while !scan.is_done() {
        world.fs.bulkstat(&mut scan, |node, attr| {
            let (ino, before) = (node.ino(), last);
            let fine = ino > before && attr.ino == ino;
            world.demand(fine, || format!("{ino:?} with {attr:?} after {before:?}"));
            last = ino;
            if rng.one_in(200) {
                return Ok(Visit::Stop);
            }
            Ok(Visit::Continue)
        })?;
    }
    Ok(())
}

fn switch(world: &World, number: usize, rng: &mut Rng) {
    let fs = &world.fs;
    match rng.below(8) {
        0 => world.judged(number, "set_options", || {
            let mut options = fs.options();
            let policies = [
                AtimePolicy::Strict,
                AtimePolicy::Relatime,
                AtimePolicy::None,
            ];
            options.atime = *rng.pick(&policies);
            options.lazytime = rng.one_in(2);
            fs.set_options(options);
            Ok(())
        }),
        // Over other stores there are none.
        1 if world.below.is_pinned() => world.judged(number, "quota_on", || {
            fs.quota_on(rng.one_in(2))?;
            let some = |most: u64| QuotaLimit {
                soft: None,
                hard: Some(most),
            };
            let limits = QuotaLimits {
                bytes: some(4 << 20),
                inodes: some(500),
            };
            fs.set_quota(QuotaKind::User, 1000, &limits)?;
            fs.set_quota(QuotaKind::Group, 1001, &limits)
        }),
        2 => world.judged(number, "quota_off", || {
            fs.quota_off();
            Ok(())
        }),
        3 => world.judged(number, "quota_report", || {
            let (inodes, used) = (fs.quota_report(), world.below.store().space()?);
            let most = used.inodes_used + 1_000_000;
            let wild = inodes.iter().find(|record| record.usage.inodes > most);
            world.demand(wild.is_none(), || format!("{wild:?}"));
            Ok(())
        }),
        _ => world.judged(number, "statfs", || fs.statfs().map(drop)),
    }
}
