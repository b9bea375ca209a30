//! The `holdfast` command.
//!
//! There is one module for each command. A failure prints a message and a hint to standard error
//! and exits with 1; a wrong call exits with 2. `holdfast fsck` has the exit codes of fsck(8).

mod bench;
mod bulkstat;
mod checker;
#[cfg(feature = "cluster")]
mod cluster;
mod complete;
mod control;
mod copy;
mod engine;
mod fsck;
mod fstab;
mod generate;
mod helper;
mod info;
mod list;
mod log;
mod man;
mod message;
mod mkfs;
mod mount;
mod output;
mod probe;
mod resize;
mod source;
mod sys;
mod target;
mod top;
mod trace;
mod umount;
mod volume;
mod warm;

use clap::{CommandFactory as _, Parser, Subcommand};
use clap_complete::CompleteEnv;
use helper::Helper;
use holdfast_allocator::Allocator;
use message::Result;
use std::{ffi::OsStr, process::ExitCode};

/// Fast for many small allocations by many threads.
#[global_allocator]
static ALLOCATOR: Allocator = Allocator;

/// A file system engine for trees of very many small files
#[derive(Debug, Parser)]
#[command(
    name = "holdfast",
    version,
    propagate_version = true,
    arg_required_else_help = true
)]
struct Cli {
    #[command(subcommand)]
    command: Command,
}

#[derive(Debug, Subcommand)]
enum Command {
    Mkfs(mkfs::Arguments),
    Mount(mount::Arguments),
    Umount(umount::Arguments),
    Info(info::Arguments),
    List(list::Arguments),
    Top(top::Arguments),
    Trace(trace::Arguments),
    Cp(copy::Arguments),
    Rm(engine::trees::RemoveArguments),
    Unpack(engine::archive::UnpackArguments),
    Pack(engine::archive::PackArguments),
    Chown(engine::trees::OwnerArguments),
    Chmod(engine::trees::ModeArguments),
    Bulkstat(bulkstat::Arguments),
    Resize(resize::ResizeArguments),
    Trim(resize::TrimArguments),
    #[command(visible_alias = "warmup")]
    Warm(warm::Arguments),
    Fsck(fsck::Arguments),
    #[cfg(feature = "cluster")]
    Gc(cluster::tools::CollectArguments),
    #[cfg(feature = "cluster")]
    Fence(cluster::tools::FenceArguments),
    Bench(bench::Arguments),
    Completions(generate::CompletionsArguments),
    Man(man::ManArguments),
    /// Wait for the end of a daemon, for auto_unmount
    #[command(hide = true)]
    WatchMount(mount::companion::Arguments),
    /// Ask the daemon of a mount whether it answers, for umount
    #[command(hide = true)]
    AskMount(umount::state::Arguments),
    /// Make the mount of a failed volume read-only, for its daemon
    #[command(hide = true)]
    MarkFailedMount(mount::companion::Arguments),
    /// Print the properties of a block device, for udev
    #[command(hide = true)]
    Probe(probe::Arguments),
}

fn main() -> ExitCode {
    CompleteEnv::with_factory(Cli::command).complete();
    let arguments: Vec<_> = std::env::args_os().collect();
    let named = arguments.first().and_then(|name| Helper::named(name));
    if let Some(helper) = named.or_else(|| Helper::of_mount_fuse(&arguments, is_command)) {
        return helper.run();
    }
    let command = match Cli::try_parse_from(&arguments) {
        Ok(cli) => cli.command,
        // fsck(8) has another code for a wrong call.
        Err(usage) if arguments.get(1).is_some_and(|name| name == "fsck") => {
            return helper::wrong_call(&usage, checker::USAGE);
        }
        Err(usage) => usage.exit(),
    };
    if let Command::Fsck(arguments) = &command {
        return fsck::run(arguments);
    }
    match run(command) {
        Ok(()) => ExitCode::SUCCESS,
        Err(failure) => {
            failure.print();
            ExitCode::FAILURE
        }
    }
}

/// Is this the name of a command, or a misspelt one?
fn is_command(name: &OsStr) -> bool {
    let cli = Cli::command();
    let names = cli.get_subcommands().map(clap::Command::get_name);
    let name = name.to_string_lossy();
    mount::nearest(&name, names.chain(["help"])).is_some()
}

fn run(command: Command) -> Result<()> {
    match command {
        Command::Mkfs(arguments) => mkfs::run(&arguments),
        Command::Cp(arguments) => copy::run(&arguments),
        Command::Rm(arguments) => engine::trees::remove(&arguments),
        Command::Unpack(arguments) => engine::archive::unpack(&arguments),
        Command::Pack(arguments) => engine::archive::pack(&arguments),
        Command::Chown(arguments) => engine::trees::owner(&arguments),
        Command::Chmod(arguments) => engine::trees::mode(&arguments),
        Command::Bulkstat(arguments) => bulkstat::run(&arguments),
        Command::Resize(arguments) => resize::resize(&arguments),
        Command::Trim(arguments) => resize::trim(&arguments),
        Command::Warm(arguments) => warm::run(&arguments),
        Command::Mount(arguments) => mount::run(&arguments),
        Command::Umount(arguments) => umount::run(&arguments),
        Command::Info(arguments) if arguments.names_nothing() => list::print(arguments.is_json()),
        Command::Info(arguments) => info::run(&arguments),
        Command::List(arguments) => list::run(&arguments),
        Command::Top(arguments) => top::run(&arguments),
        Command::Trace(arguments) => trace::run(&arguments),
        // Handled in `main`, since its exit codes differ.
        Command::Fsck(_) => Ok(()),
        #[cfg(feature = "cluster")]
        Command::Gc(arguments) => cluster::tools::collect(&arguments),
        #[cfg(feature = "cluster")]
        Command::Fence(arguments) => cluster::tools::fence(&arguments),
        Command::Bench(arguments) => bench::run(&arguments),
        Command::Completions(arguments) => generate::completions(&arguments),
        Command::Man(arguments) => man::man(&arguments, Cli::command()),
        Command::WatchMount(arguments) => mount::watcher::run(&arguments),
        Command::AskMount(arguments) => umount::state::run(&arguments),
        Command::MarkFailedMount(arguments) => mount::failing::run(&arguments),
        Command::Probe(arguments) => probe::run(&arguments),
    }
}
