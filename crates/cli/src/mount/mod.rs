//! `holdfast mount`: checks what is asked for, and starts the daemon that serves it.

mod answers;
mod applicable;
mod directory;
pub(crate) mod exit_report;
pub(crate) mod failing;
mod last_words;
mod launch;
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
mod signals;
pub(crate) mod size;
mod surroundings;
pub(crate) mod watcher;

use crate::{
    message::{Failure, Result},
    source::Source,
};
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
  create              make the image file, with an empty volume, if it is not there, as --create
  create_size=AMOUNT  bytes of an image file that is made, as --size
  size=AMOUNT         most bytes of content, names and attributes: 512m, 8g, or 25% of memory;
                      0: no limit (default: 50%)
  nr_inodes=NUMBER    most files and directories: 100k, 10m; 0: no limit
                      (default: one for each KiB of memory)
  memory=AMOUNT       most bytes of memory that the daemon of a volume or a directory takes, with all that it keeps: 256m, 2g, 25% of
                      the machine's, or max for all there is (default: a quarter of the machine's, or half of
                      what its control groups allow, where that is less; 64m at least)
  cache=AMOUNT        as memory= with twice as much; goes with the next release
  metrics=HOST:PORT   serve what `holdfast info` tells, and more, at http://HOST:PORT/metrics, in the form that Prometheus
                      reads: 127.0.0.1:9464. Of port 0 any that is free, which `holdfast info` tells. No password is asked
                      for: choose an address that only those can reach who may know what the mount is used for
  log=FILE            the daemon's log is appended to FILE, as with --log (default: the journal or syslog, as
                      `holdfast`; in the foreground, standard error)
  commit=SECONDS      a volume's changes are flushed to the device after so long at most (1 to 86400;
                      default: 5): so much a power cut or a crash of the host may lose. They are handed
                      to the host within 1 second in any case: so much is lost if the daemon is killed.
                      fsync(2) and sync(1) flush at once
  mode=OCTAL          permissions of the root directory (default: 755); as uid= and gid= for `mem:`, and
                      for a volume that `create` makes
  uid=USER, gid=GROUP owner of the root directory, by name or number (default: the user and the group that mount)
  told                of a directory as SOURCE: others may change it, and what they changed is seen as soon as this machine's kernel has told of it
                      (inotify). Of some changes it does not tell: stores to a mapping, io_submit(2), writes of a loop device, and writes
                      by a second name that is made elsewhere. Files that are open show these after a second at most. stat(1) of a
                      file that is not open may show the old size and times for a minute. What has several names is a second old at
                      most (default, but for file systems of other machines, or of programs, where valid=1 is)
  valid=SECONDS       of a directory as SOURCE: others may change it, and what is seen of that is at most this old (0 to
                      86400, also 0.5). What is changed here is changed there before the call returns
  exclusive           of a directory as SOURCE: nobody else changes it while it is mounted, so that what was seen once is
                      believed for ever
  passthrough=WHEN    of a directory as SOURCE: the kernel reads and writes the directory's files by itself, at the speed
                      that they have there. auto: files of 1 MiB and more, where the daemon opens files (see opens=) and
                      the kernel can (Linux 6.9, root, a file system that lies over no other one); with valid=0 all files. on: all
                      files, or no mount; each open and close is a request then, and no content is kept, which costs where
                      many small files are read again and again. off: none (default: auto)
  norecovery, noload  with ro: the image or device is not written to at all; what a crash left in its
                      journal is replayed in memory. (ro alone does so where the device cannot be
                      written to.)
  transport=NAME      auto, uring or dev, as --transport
  locks=WHOSE         local: the kernel keeps locks (flock, fcntl), which saves requests; served: the
                      daemon does, so that they are counted by `holdfast info` and a forced unmount
                      ends those who wait for one (default: local)
  opens=WHOSE         local: the kernel opens and closes files, and what is cached is read without any
                      request. close(2) tells of no lost write then, as on ext4 (fsync(2) does);
                      `holdfast info` and a forced unmount count no open files; watches of a
                      program that embeds the file system see no opens; truncate(2) of an empty
                      file to nothing moves its times; direct writes to one file go one after the
                      other; and access times move as relatime says only with reads that are not
                      answered from the kernel's cache. served: the daemon does, and a file whose
                      access time is due is read anew by the first read after an open (default: local;
                      with locks=served, strictatime, and for a directory that is not read-only: served)
  noxattr             files have no extended attributes and no ACLs, which saves `ls -l` a request a file: none
                      can be read or set (EOPNOTSUPP), and those that a volume has are kept, but not
                      obeyed, so that an ACL refuses nobody
  statahead=WHEN      on: inodes that a program is likely to ask for next are read from a volume along with the one that it
                      asks for, once it goes through a directory in an order. off: each is read when it is asked for
                      (default: on)
  fuseblk=WHEN        how a volume is mounted. on: as fuseblk, over a loop device: the kernel passes sync(1) and syncfs(2)
                      on (from Linux 6.18 on), and umount(2) returns when the volume is closed. off: as fuse: sync(1)
                      makes nothing durable (fsync(2) does), and the daemon closes the volume after umount(2). auto: on
                      where it can be had, which takes root, and fsname= was not given (default: auto)
  auto_unmount        clear the mount point if the daemon is killed
  allow_other         let all users in (default if root mounts); noallow_other: only the one who
                      mounts
  nonempty            hide what is in DIR
  fsname=NAME         first column of the mount table (default: SOURCE)
  subtype=NAME        type fuse.NAME in the mount table (default: holdfast)
  max_read=BYTES      largest read request
  blksize=BYTES       preferred size of reads and writes, as stat(2) tells it
  [no]discard         of a volume: free space goes back to the image or device when it is unmounted, as by `holdfast trim`
                      (default: nodiscard: when the host runs short of room)
  remount             change ro, rw, [no]suid, [no]dev, [no]exec of what is mounted at DIR; with ro, all
                      that was changed is durable then. A directory that was mounted ro stays so
  ro, rw, [no]suid, [no]dev, [no]exec, [a]sync, dirsync, [no]symfollow, [no]atime, [no]relatime,
  [no]strictatime, [no]diratime, [no]lazytime, defaults
                      as in mount(8). With dirsync, names that are made, linked, moved or removed are durable
                      when the call returns; with sync, all changes are. What can have no effect is refused:
                      of `mem:` nothing is durable; the times of a directory are its host's. With
                      strictatime the first read after each open moves a file's access time, and each
                      listing and readlink(2) that of a directory or link; further reads through the
                      same open file may be answered from the kernel's cache
  auto, noauto, [no]user, users, owner, group, nofail, _netdev, comment=, x-...
                      for fstab; without effect here

By other names: linked as /sbin/mount.holdfast, /sbin/mount.fuse.holdfast and
/sbin/mount.fuseblk.holdfast, this program serves `mount -t holdfast mem: DIR`, fstab, and
`mount -o remount,ro DIR`; as umount.holdfast, umount.fuse.holdfast and umount.fuseblk.holdfast it
unmounts for umount(8):
  for name in mount mount.fuse mount.fuseblk umount umount.fuse umount.fuseblk; do
    ln -s \"$(command -v holdfast)\" /sbin/$name.holdfast
  done

HOLDFAST_LOG chooses what is logged, by the directives of tracing's EnvFilter (default: warn). Errors are logged unless
it says off. Where nothing listens at /dev/log, what has no file is lost.

SIGINT and SIGTERM unmount. If the mount is in use, it stays, and whoever uses it is named; a second
signal detaches it, to end with its last user, and a third ends the process. So do SIGQUIT, SIGABRT and
others. Before that the daemon hands what was changed to the host (5 seconds at most, or until the next
signal), so that nothing is lost; SIGKILL loses what was changed on a volume within the last second.";

/// Mount a file system; returns when it is live
///
/// DIR is made if only its last component is missing; then it is removed when the mount ends.
#[derive(Debug, clap::Args)]
#[command(after_long_help = OPTIONS_HELP)]
pub(crate) struct Arguments {
    /// What to mount: the image file or block device of a volume; `mem:`, a new, empty file system in
    /// memory; or a directory, with all below it (`dir:PATH`, where PATH could be something else)
    #[arg(value_name = "SOURCE")]
    source: OsString,

    /// Where to mount it
    #[arg(value_name = "DIR")]
    dir: PathBuf,

    /// Mount options, separated by commas; may be repeated (--help lists them)
    #[arg(short, long, value_name = "OPTIONS", allow_hyphen_values = true)]
    options: Vec<String>,

    /// Make the image file, with an empty volume, if it is not there
    #[arg(long)]
    create: bool,

    /// Bytes of an image file that is made (512m, 8g, 1t): it is sparse, and takes what is written.
    /// Without this, what is free where it lies, 1t at most
    #[arg(long, value_name = "AMOUNT", requires = "create")]
    size: Option<String>,

    /// Stay in the foreground; unmount on SIGINT and SIGTERM
    #[arg(short, long)]
    foreground: bool,

    /// How requests come from the kernel: io_uring where it offers that (auto), io_uring or no
    /// mount (uring), or reads and writes of /dev/fuse (dev)
    #[arg(short, long, value_name = "NAME", value_parser = ["auto", "uring", "dev"])]
    transport: Option<String>,

    /// Nothing on the mount can be changed: -o ro
    #[arg(short, long)]
    read_only: bool,

    /// Let users other than the one who mounts in: -o allow_other
    #[arg(long)]
    allow_other: bool,

    /// Clear the mount point if the daemon is killed: -o auto_unmount
    #[arg(long)]
    auto_unmount: bool,

    /// Append the daemon's log to FILE: -o log=FILE. Without this it goes to the journal or to
    /// syslog
    #[arg(long, value_name = "FILE")]
    log: Option<PathBuf>,

    /// Is this the daemon that another process waits for?
    #[arg(long, hide = true)]
    daemon: bool,

    /// Did the process that waits make DIR?
    #[arg(long, hide = true)]
    made: bool,
}

/// What mount(8) hands to its helper.
pub(crate) struct Request {
    pub(crate) source: OsString,
    pub(crate) dir: PathBuf,
    pub(crate) options: Vec<String>,
    /// Unknown options are no error.
    pub(crate) sloppy: bool,
    /// All but mounting.
    pub(crate) fake: bool,
}

impl Arguments {
    /// `-o` and the switches that stand for options, in one list each.
    fn lists(&self) -> Vec<String> {
        let mut lists = self.options.clone();
        for (given, option) in [
            (self.read_only, "ro"),
            (self.allow_other, "allow_other"),
            (self.auto_unmount, "auto_unmount"),
        ] {
            if given {
                lists.push(option.into());
            }
        }
        if self.create {
            lists.push("create".into());
        }
        lists.extend(self.size.iter().map(|size| format!("create_size={size}")));
        lists.extend(
            self.transport
                .iter()
                .map(|name| format!("transport={name}")),
        );
        lists
    }
}

pub(crate) fn run(arguments: &Arguments) -> Result<()> {
    if arguments.daemon {
        return daemon(arguments);
    }
    let lists = arguments.lists();
    let plan = Plan::parse(lists.iter().map(String::as_str), false)?;
    if plan.mount.remount {
        return remount::run(&arguments.dir, &plan);
    }
    let source = Source::of(&arguments.source)?.absolute()?;
    let point = MountPoint::prepare(&arguments.dir)?;
    if arguments.foreground {
        let log = arguments.log.clone().or_else(|| plan.log.clone());
        return foreground(source, plan, &point, log.as_deref());
    }
    memory::prepare(&source, &plan);
    let log = arguments.log.as_deref();
    let launched = launch::launch(&source.argument(), &point, &plan.given, log);
    if launched.is_err() {
        point.remove_if_made();
    }
    launched
}

/// As mount(8) asks.
pub(crate) fn run_helper(request: &Request) -> Result<()> {
    let plan = Plan::parse(request.options.iter().map(String::as_str), request.sloppy)?;
    if plan.mount.remount {
        return if request.fake {
            Ok(())
        } else {
            remount::run(&request.dir, &plan)
        };
    }
    let source = Source::of(&request.source)?.absolute()?;
    if request.fake {
        return Ok(());
    }
    let point = MountPoint::prepare(&request.dir)?;
    memory::prepare(&source, &plan);
    let launched = launch::launch(&source.argument(), &point, &plan.given, None);
    if launched.is_err() {
        point.remove_if_made();
    }
    launched
}

fn foreground(source: Source, plan: Plan, point: &MountPoint, log: Option<&Path>) -> Result<()> {
    if let Some(log) = log {
        launch::log_to(log)?;
    }
    crate::log::begin(None);
    surroundings::leave_limits();
    memory::prepare(&source, &plan);
    let result = serve::serve(source, plan, point, |transport| {
        let dir = point.path.display();
        anstream::eprintln!("holdfast: {dir}: live over {transport}; SIGINT or SIGTERM unmounts");
        Ok(())
    });
    point.remove_if_made();
    result
}

/// The process that the parent waits for.
fn daemon(arguments: &Arguments) -> Result<()> {
    let lists = arguments.lists();
    let plan = Plan::parse(lists.iter().map(String::as_str), false)?;
    let log = arguments.log.clone().or_else(|| plan.log.clone());
    let mut live = false;
    let result = serve_as_daemon(arguments, plan, log.as_deref(), &mut live);
    if let Err(failure) = &result {
        // Before the mount is live, the parent prints what it is told, to the terminal that
        // standard error is as well: there the log would say the same once more. Afterwards the
        // exit code says that something was wrong at the end.
        let told = !live && launch::report_failure(failure).is_ok();
        if !told || log.is_some() {
            tracing::error!("the daemon ends: {failure}");
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
    let source = Source::of(&arguments.source)?;
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
    // Before that, the parent does.
    if *live {
        point.remove_if_made();
    }
    result
}
