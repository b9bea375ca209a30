//! The workloads as a program of their own, without the `holdfast` command.

use anyhow::Result;
use clap::Parser;
use holdfast_allocator::Allocator;
use holdfast_bench::BenchArgs;

/// That of the `holdfast` command, which this program stands in for.
#[global_allocator]
static ALLOCATOR: Allocator = Allocator;

#[derive(Parser)]
#[command(version, about = "Holdfast's workloads")]
struct Line {
    #[command(flatten)]
    bench: BenchArgs,
}

fn main() -> Result<()> {
    holdfast_bench::run(Line::parse().bench)
}
