//! `holdfast mount`: checks the call, and starts the daemon that serves the mount.

mod answers;
mod applicable;
#[cfg(feature = "cluster")]
mod cluster;
pub(crate) mod companion;
mod directory;
pub(crate) mod exit_report;
pub(crate) mod failing;
pub(crate) mod known;
mod last_commit;
mod launch;
mod limits;
mod list;
mod memory;
mod metrics;
mod nearest;
mod opened;
pub(crate) mod options;
pub(crate) mod point;
mod read_only;
pub(crate) mod refusal;
mod remount;
mod reporter;
mod serve;
mod service_manager;
mod signals;
pub(crate) mod size;
pub(crate) mod watcher;

use crate::{
    complete,
    fstab::{self, Fstab},
    message::{Failure, Result, refuse},
    source::{Kind, Source},
};
use clap_complete::ArgValueCompleter;
use launch::Daemon;
pub(crate) use launch::program;
pub(crate) use nearest::nearest;
use options::Plan;
use point::MountPoint;
use std::{
    ffi::OsString,
    path::{Path, PathBuf},
};

/// The options, for `--help` and the manual.
const OPTIONS_HELP: &str = "\
Options for -o:
  create              make the image file, with an empty volume, if it does not exist, as --create
  create_size=AMOUNT  bytes of a new image file, as --size
  size=AMOUNT         `mem:`: most bytes of content, names and attributes: 512m, 8g, or 25% of
                      memory; 0: no limit (default: 50%)
  nr_inodes=NUMBER    `mem:`: most files and directories: 100k, 10m; 0: no limit (default: one for
                      each KiB of memory)
  memory=AMOUNT       most bytes of memory of the daemon of a volume or a directory, caches included:
                      256m, 2g, 25% of the machine's, or max for no limit. Default: a quarter of the
                      machine's memory, or half of what its control groups allow if that is less;
                      64m at least
  cache=AMOUNT        as memory= with twice the amount; removed in the next release
  metrics=HOST:PORT   serve the numbers of `holdfast info`, and more, for Prometheus at
                      http://HOST:PORT/metrics: 127.0.0.1:9464. Port 0 means any free one, which
                      `holdfast info` prints. There is no password: choose an address that only
                      trusted programs can reach
  log=FILE            append the daemon's log to FILE, as --log (default: the journal or syslog, as
                      `holdfast`; in the foreground, standard error)
  commit=SECONDS      flush a volume's changes to the device at least this often (1 to 86400;
                      default: 5). A power cut or a crash of the host loses at most the changes of
                      this time. Changes are handed to the host within 1 second in any case: a kill
                      of the daemon loses at most that. fsync(2) and sync(1) flush at once
  mode=OCTAL          permissions of the root directory (default: 755); as uid= and gid= for `mem:`
                      and for a volume that `create` makes
  uid=USER, gid=GROUP owner of the root directory, by name or number (default: the user and the
                      group that mount)
  retry=SECONDS       of pg://...: how long calls wait for a database that does not answer, before
                      they fail (30s, also 2m; default: 30s), and for the bucket (default: 60s);
                      hard: for ever
  dirty=AMOUNT        of pg://...: bytes that may wait for being written; then writers wait (default:
                      an eighth of memory=)
  cache=DIR           of pg://...: keep blocks of objects in this directory, by an absolute path
  cache_size=AMOUNT   of pg://...: most bytes in that directory (default: 1g)
  told                of a directory as SOURCE: others may change it, and the mount shows their
                      changes when inotify of this machine's kernel reports them. Not reported are
                      stores to a mapping, io_submit(2), writes of a loop device, and writes through
                      a link made elsewhere. Open files show these after a second at most. stat(1)
                      of a file that is not open may show the old size and times for a minute. Files
                      with several names are at most a second old. Default, except for file systems
                      of other machines or of programs, where valid=1 is the default
  valid=SECONDS       of a directory as SOURCE: others may change it, and cached data is at most this
                      old (0 to 86400, also 0.5). Changes through the mount reach the directory
                      before the call returns
  exclusive           of a directory as SOURCE: no other process changes it while it is mounted, so
                      cached data never expires
  passthrough=WHEN    of a directory as SOURCE: the kernel reads and writes the directory's files
                      without the daemon, at their own speed. auto: files of 1 MiB and more, if the
                      daemon opens files (see opens=) and the kernel can (Linux 6.9, root, not a
                      stacked file system); with valid=0 all files. on: all files, or no mount. Then
                      each open and close is a request, and no content is cached, which is slow for
                      many small files that are read repeatedly. off: none (default: auto)
  norecovery, noload  with ro: the image or device is not written to at all; its journal is replayed
                      in memory. (ro alone does so if the device cannot be written to.)
  transport=NAME      auto, uring or dev, as --transport
  locks=WHERE         local: the kernel keeps locks (flock, fcntl), which saves requests. served: the
                      daemon does. Then `holdfast info` counts them, and a forced unmount ends waits
                      for them (default: local)
  opens=WHERE         local: the kernel opens and closes files, and cached content is read without a
                      request. Then close(2) reports no lost write, as on ext4 (fsync(2) does).
                      `holdfast info` and a forced unmount count no open files, and watches of a
                      program that embeds the file system see no opens. truncate(2) of an empty file
                      to nothing moves its times, and direct writes to one file are serialized.
                      Access times follow relatime only for reads that the kernel's cache does not
                      answer. served: the daemon opens and closes files. After an open, the first
                      read of a file with a due access time is a request (default: local; with
                      locks=served, strictatime, and for a writable directory: served)
  noxattr             no extended attributes and no ACLs, which saves `ls -l` a request for each
                      file. They cannot be read or set (EOPNOTSUPP); those of a volume are kept, but
                      ACLs are not enforced
  statahead=WHEN      of a volume or a directory. on: when a program goes through a directory in
                      order, the inodes that it is likely to use next are read ahead. off: each inode
                      is read when it is used (default: on)
  fuseblk=WHEN        how a volume is mounted. on: as fuseblk, over a loop device: the kernel passes
                      sync(1) and syncfs(2) on (from Linux 6.18 on), and umount(2) returns when the
                      volume is closed. off: as fuse: sync(1) makes nothing durable (fsync(2) does),
                      and the daemon closes the volume after umount(2). auto: on if that is possible,
                      which takes root, and fsname= was not given (default: auto)
  auto_unmount        clear the mount point if the daemon is killed
  allow_other         let all users in (default if root mounts); noallow_other: only the user that
                      mounts
  nonempty            allow DIR to be non-empty; the mount hides its content
  fsname=NAME         first column of the mount table (default: SOURCE)
  subtype=NAME        type fuse.NAME in the mount table (default: holdfast)
  max_read=BYTES      largest read request
  blksize=BYTES       preferred size of reads and writes, as in stat(2)
  [no]discard         of a volume: discard free space in the image or device at unmount, as
                      `holdfast trim` (default: nodiscard: when the host runs short of space)
  remount             change ro, rw, [no]suid, [no]dev, [no]exec of the mount at DIR; with ro, all
                      changes are durable afterwards. A directory that was mounted ro stays ro, and
                      a volume while other mounts with ro share it
  ro, rw, [no]suid, [no]dev, [no]exec, [a]sync, dirsync, [no]symfollow, [no]atime, [no]relatime,
  [no]strictatime, [no]diratime, [no]lazytime, defaults
                      as in mount(8). With dirsync, changes of names are durable when the call
                      returns; with sync, all changes are. Options without an effect are refused:
                      nothing of `mem:` is durable, and the times of a directory are its host's. With
                      strictatime the first read after each open moves a file's access time, and each
                      listing and readlink(2) that of a directory or link. Further reads through the
                      same open file may be answered from the kernel's cache
  auto, noauto, [no]user, users, owner, group, nofail, _netdev, comment=, x-...
                      for fstab; without effect here

By other names: linked as /sbin/mount.holdfast, /sbin/mount.fuse.holdfast and
/sbin/mount.fuseblk.holdfast, this program serves `mount -t holdfast mem: DIR`, fstab, and
`mount -o remount,ro DIR`. As umount.holdfast, umount.fuse.holdfast and umount.fuseblk.holdfast it
unmounts for umount(8):
  for name in mount mount.fuse mount.fuseblk umount umount.fuse umount.fuseblk; do
    ln -s \"$(command -v holdfast)\" /sbin/$name.holdfast
  done

HOLDFAST_LOG has the directives of tracing's EnvFilter for the log (default: warn). Errors are
logged unless it says off; a panic and the failure of a volume are logged in any case. If no daemon
listens at /dev/log, a log without a file is lost.

SIGINT and SIGTERM unmount. A mount in use stays, and the processes that use it are named; a second
signal detaches it, and it ends with its last user; a third ends the process. So do SIGQUIT, SIGABRT
and others. Before that the daemon hands its changes to the host (5 seconds at most, or until the
next signal), so that nothing is lost. SIGKILL loses a volume's changes of the last second.";

/// Mount a file system; returns when it is live
///
/// DIR is made if only its last component is missing, and is removed when the mount ends.
#[derive(Debug, clap::Args)]
#[command(after_long_help = OPTIONS_HELP)]
pub(crate) struct Arguments {
    /// The image file or block device of a volume; `mem:`, a new, empty file system in memory; a
    /// directory and all below it (`dir:PATH` if PATH is ambiguous);
    /// pg://USER@HOST/DATABASE?fs=NAME
    #[arg(value_name = "SOURCE", add = ArgValueCompleter::new(complete::sources))]
    source: OsString,

    /// Where to mount it
    #[arg(value_name = "DIR")]
    dir: PathBuf,

    /// The type of SOURCE. Without this, SOURCE tells it
    #[arg(short = 't', long = "type", value_name = "TYPE", value_enum)]
    kind: Option<Kind>,

    /// Mount options, separated by commas; may be repeated (--help lists them)
    #[arg(short, long, value_name = "OPTIONS", allow_hyphen_values = true, add = ArgValueCompleter::new(complete::mount_options))]
    options: Vec<String>,

    /// Make the image file, with an empty volume, if it does not exist
    #[arg(long)]
    create: bool,

    /// Bytes of a new image file (512m, 8g, 1t), which is sparse. Without this, the free space of
    /// its file system, 1t at most
    #[arg(long, value_name = "AMOUNT", requires = "create")]
    size: Option<String>,

    /// Stay in the foreground; unmount on SIGINT and SIGTERM
    #[arg(short, long)]
    foreground: bool,

    /// How requests come from the kernel: io_uring if the kernel offers it (auto), io_uring or no
    /// mount (uring), or reads and writes of /dev/fuse (dev)
    #[arg(long, value_name = "NAME", value_parser = ["auto", "uring", "dev"])]
    transport: Option<String>,

    /// Mount read-only: -o ro
    #[arg(short, long)]
    read_only: bool,

    /// Let other users access the mount: -o allow_other
    #[arg(long)]
    allow_other: bool,

    /// Clear the mount point if the daemon is killed: -o auto_unmount
    #[arg(long)]
    auto_unmount: bool,

    /// Append the daemon's log to FILE: -o log=FILE. Without this, it goes to the journal or to
    /// syslog
    #[arg(long, value_name = "FILE")]
    log: Option<PathBuf>,

    /// Also write the line to /etc/fstab that mounts this at boot, or change the one for DIR
    ///
    /// The line has the options given here, except create and create_size=. It is written once the
    /// mount is live. Add nofail if the system is to boot without it.
    #[arg(long)]
    update_fstab: bool,

    /// The file for --update-fstab
    #[arg(long, hide = true, value_name = "FILE", default_value = fstab::SYSTEMS)]
    fstab: PathBuf,

    /// Is this the daemon that another process waits for?
    #[arg(long, hide = true)]
    daemon: bool,

    /// Did the process that waits make DIR?
    #[arg(long, hide = true)]
    made: bool,
}

/// A call of mount(8)'s helper.
pub(crate) struct Request {
    pub(crate) source: OsString,
    pub(crate) dir: PathBuf,
    pub(crate) options: Vec<String>,
    /// Unknown options are no error.
    pub(crate) sloppy: bool,
    /// Do everything but mounting.
    pub(crate) fake: bool,
}

impl Arguments {
    /// The lists of `-o`, and of the options that switches stand for.
    fn lists(&self) -> Vec<String> {
        let mut lists = self.options.clone();
        for (given, option) in [
            (self.read_only, "ro"),
            (self.allow_other, "allow_other"),
            (self.auto_unmount, "auto_unmount"),
            (self.create, "create"),
        ] {
            lists.extend(given.then(|| option.to_owned()));
        }
        let (size, transport) = (self.size.iter(), self.transport.iter());
        lists.extend(size.map(|size| format!("create_size={size}")));
        let moved = self.kind.and_then(Kind::transport);
        lists.extend(moved.map(|name| format!("transport={name}")));
        lists.extend(transport.map(|name| format!("transport={name}")));
        lists
    }

    fn plan(&self) -> Result<Plan> {
        Plan::parse(self.lists().iter().map(String::as_str), false)
    }

    /// The file with the line for this mount, if it is to be written.
    fn fstab(&self, source: &Source, dir: &Path, plan: &Plan) -> Result<Option<Fstab>> {
        if !self.update_fstab {
            return Ok(None);
        }
        let log = self.log.as_deref().map(std::path::absolute).transpose()?;
        let log = log.or_else(|| plan.log.clone());
        let is_kept = |item: &String| {
            let name = item.split('=').next().unwrap_or(item);
            !["create", "create_size", "log"].contains(&name)
        };
        let items = self.lists().into_iter().flat_map(|list| list::split(&list));
        let mut options: Vec<String> = items.filter(is_kept).collect();
        options.extend(log.map(|log| format!("log={}", log.display())));
        let options: Vec<String> = options.iter().map(|item| list::escaped(item)).collect();
        let mut fstab = Fstab::read(&self.fstab)?;
        fstab.add(&source.argument(), dir, &options)?;
        fstab::warn_without_helper();
        Ok(Some(fstab))
    }
}

pub(crate) fn run(arguments: &Arguments) -> Result<()> {
    if arguments.daemon {
        return daemon(arguments);
    }
    if let Some(name) = arguments.kind.and_then(Kind::transport) {
        anstream::eprintln!(
            "holdfast: -t is the type of SOURCE now: write --transport {name}; the next release \
             refuses -t {name}"
        );
    }
    let plan = arguments.plan()?;
    refuse([(
        plan.mount.remount && arguments.update_fstab,
        "a remount changes no line of fstab",
        "--update-fstab",
        "mount it with the new options, or edit the line",
    )])?;
    if plan.mount.remount {
        return remount::run(&arguments.dir, &plan);
    }
    let source = Source::of_type(&arguments.source, arguments.kind)?.absolute()?;
    warn_of_password(&source);
    let point = MountPoint::prepare(&arguments.dir)?;
    let fstab = arguments.fstab(&source, &point.path, &plan);
    let fstab = fstab.inspect_err(|_| point.remove_if_made())?;
    if !arguments.foreground {
        background(&source, &plan, &point, arguments.log.as_deref())?;
        return fstab.map_or(Ok(()), |fstab| fstab.write());
    }
    let log = arguments.log.clone().or_else(|| plan.log.clone());
    foreground(source, plan, &point, log.as_deref(), fstab)
}

/// Mounts as mount(8)'s helper.
pub(crate) fn run_helper(request: &Request) -> Result<()> {
    let plan = Plan::parse(request.options.iter().map(String::as_str), request.sloppy)?;
    if plan.mount.remount {
        return match request.fake {
            true => Ok(()),
            false => remount::run(&request.dir, &plan),
        };
    }
    let source = Source::of(&request.source)?.absolute()?;
    warn_of_password(&source);
    match request.fake {
        true => Ok(()),
        false => background(&source, &plan, &MountPoint::prepare(&request.dir)?, None),
    }
}

/// A password in the source can be read by all users.
fn warn_of_password(source: &Source) {
    match source {
        #[cfg(feature = "cluster")]
        Source::Cluster(address) => crate::cluster::warn_of_password(address),
        Source::Memory | Source::Volume(_) | Source::Directory(_) => {}
    }
}

/// Starts a daemon, and waits until the mount is live.
fn background(source: &Source, plan: &Plan, point: &MountPoint, log: Option<&Path>) -> Result<()> {
    memory::prepare(source, plan);
    let launched = launch::launch(source, point, &plan.given, log);
    launched.inspect_err(|_| point.remove_if_made())
}

fn foreground(
    source: Source,
    plan: Plan,
    point: &MountPoint,
    log: Option<&Path>,
    fstab: Option<Fstab>,
) -> Result<()> {
    if let Some(log) = log {
        launch::log_to(log)?;
    }
    let subject = crate::log::Subject {
        mount_point: &point.path,
        source: &source.to_string(),
    };
    crate::log::begin(crate::log::is_on_the_journal().then_some(&subject));
    limits::leave_limits();
    memory::prepare(&source, &plan);
    service_manager::status(&format!("opening {source}"));
    let shown = source.clone();
    let result = serve::serve(source, plan, point, |transport| {
        service_manager::ready(&shown, transport);
        let dir = point.path.display();
        anstream::eprintln!("holdfast: {dir}: live over {transport}; SIGINT or SIGTERM unmounts");
        if let Some(Err(failure)) = fstab.map(|fstab| fstab.write()) {
            failure.print();
        }
        Ok(())
    });
    point.remove_if_made();
    result
}

/// The daemon's process, which the parent waits for.
fn daemon(arguments: &Arguments) -> Result<()> {
    let plan = arguments.plan()?;
    let log = arguments.log.clone().or_else(|| plan.log.clone());
    let mut live = false;
    let result = serve_as_daemon(arguments, plan, log.as_deref(), &mut live);
    if let Err(failure) = &result {
        // Before the mount is live, the parent prints the failure to the same terminal as standard
        // error, so logging it there would repeat it. Afterwards the exit code tells that the
        // daemon failed.
        let reported = !live && launch::report_failure(failure).is_ok();
        if !reported || log.is_some() {
            tracing::error!(target: crate::log::ALWAYS, "the daemon ends: {failure}");
        }
        std::process::exit(1);
    }
    Ok(())
}

/// `live` becomes true once the mount is live.
fn serve_as_daemon(
    arguments: &Arguments,
    plan: Plan,
    log: Option<&Path>,
    live: &mut bool,
) -> Result<()> {
    let daemon = Daemon::begin(log)
        .map_err(|error| Failure::new(format!("the daemon cannot start: {error}")))?;
    let source = launch::with_password(Source::of(&arguments.source)?);
    let subject = crate::log::Subject {
        mount_point: &arguments.dir,
        source: &source.to_string(),
    };
    crate::log::begin(log.is_none().then_some(&subject));
    let point = MountPoint {
        path: arguments.dir.clone(),
        made: arguments.made,
    };
    let result = serve::serve(source, plan, &point, |_| {
        *live = true;
        daemon.live()
    });
    // Before that, the parent removes it.
    if *live {
        point.remove_if_made();
    }
    result
}
