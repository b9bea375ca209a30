//! The workloads as a program of their own, without the `holdfast` command.

use anyhow::Result;
use clap::Parser;
use holdfast_bench::BenchArgs;

#[derive(Parser)]
#[command(version, about = "Holdfast's workloads")]
struct Line {
    #[command(flatten)]
    bench: BenchArgs,
}

fn main() -> Result<()> {
    holdfast_bench::run(Line::parse().bench)
}
