//! Holdfast's workloads, rivals and reports: `holdfast-bench`.
//!
//! A *workload* does the same calls on several *targets*, in interleaved rounds, and gives a
//! *record* of each phase of each round. A speed is told as a median over rounds with its spread,
//! and as a ratio to another target of the same run.

mod about;
#[cfg(test)]
mod arguments;
mod budget;
mod chance;
mod commands;
mod fuse;
mod goals;
mod grid;
mod lent;
mod machine;
mod mode;
mod mounts;
mod pool;
mod process;
mod program;
mod record;
mod report;
mod rest;
mod summary;
mod sys;
mod table;
mod tables;
mod targets;
mod team;
mod workloads;

use anyhow::Result;
use clap::{Args, Subcommand};

/// Measure Holdfast beside other file systems
#[derive(Args, Clone, Debug)]
pub struct BenchArgs {
    #[command(subcommand)]
    workload: Workload,
}

#[derive(Subcommand, Clone, Debug)]
enum Workload {
    Sharded(workloads::sharded::ShardedArgs),
    CachedRead(workloads::cached_read::CachedReadArgs),
    Sparse(workloads::sparse::SparseArgs),
    Fuse(workloads::fuse::FuseArgs),
    Trees(workloads::trees::TreesArgs),
    Request(workloads::request::RequestArgs),
    Listing(workloads::listing::ListingArgs),
    Reclaim(workloads::reclaim::ReclaimArgs),
    Cluster(workloads::cluster::ClusterArgs),
    #[command(hide = true)]
    Serve(fuse::serve::ServeArgs),
    /// Do a part of a workload, as standard input says
    #[command(hide = true)]
    Work,
}

/// Runs what the arguments name, and prints a table. A signal to end stops it between two calls,
/// and what it has made is removed.
///
/// Further processes of the running program do parts of the work. They are called with the
/// arguments before the workload's name and then `serve` or `work`, so a program that embeds these
/// arguments must accept such calls.
///
/// # Errors
/// The first call that failed, or what could not be set up.
pub fn run(args: BenchArgs) -> Result<()> {
    // A server ends with its standard input, not by a signal.
    if let Workload::Serve(args) = &args.workload {
        return fuse::serve::run(args);
    }
    let _handlers = sys::Handlers::install()?;
    match &args.workload {
        Workload::Sharded(args) => workloads::sharded::run(args),
        Workload::CachedRead(args) => workloads::cached_read::run(args),
        Workload::Sparse(args) => workloads::sparse::run(args),
        Workload::Fuse(args) => workloads::fuse::run(args),
        Workload::Trees(args) => workloads::trees::run(args),
        Workload::Request(args) => workloads::request::run(args),
        Workload::Listing(args) => workloads::listing::run(args),
        Workload::Reclaim(args) => workloads::reclaim::run(args),
        Workload::Cluster(args) => workloads::cluster::run(args),
        Workload::Serve(args) => fuse::serve::run(args),
        Workload::Work => team::worker::run(workloads::Task::staff),
    }
}
