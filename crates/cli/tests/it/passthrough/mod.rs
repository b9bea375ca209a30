//! A directory of the host, mounted with FUSE passthrough.

mod content;
mod modes;
mod random;
mod refused;
mod rights;

use holdfast::engine::store::Coherence;
use holdfast::engine::{FileSystem, Options as CoreOptions};
use holdfast_fuse::wire::Opcode;
use holdfast_fuse::{Config, KeptContent, Passthrough, Session, TransportChoice, serve};
use holdfast_hostdir::{HostDirectory, Options};
use holdfast_testkit::mount::{config, unmount};
use holdfast_testkit::skip::skipped_by_kernel;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::Arc;
use std::time::Duration;
use tempfile::TempDir;

/// Longer than a test, so that no cached attribute expires.
const LONG: Duration = Duration::from_secs(3600);

/// A directory of the host and its mount.
struct Mount {
    host: TempDir,
    dir: TempDir,
    fs: FileSystem,
    session: Session,
    transport: TransportChoice,
}

impl Mount {
    /// An empty directory, with long timeouts in the kernel and the store.
    fn new(transport: TransportChoice, passthrough: Passthrough) -> Option<Self> {
        Self::over(tempfile::tempdir().unwrap(), transport, passthrough)
    }

    fn over(host: TempDir, transport: TransportChoice, passthrough: Passthrough) -> Option<Self> {
        let config = Config {
            passthrough,
            content: KeptContent::ByAttributes,
            entry_timeout: LONG,
            attr_timeout: LONG,
            negative_timeout: Duration::ZERO,
            cache_listings: false,
            ..config(transport)?
        };
        let options = Options {
            coherence: Coherence::For(LONG),
            ..Options::default()
        };
        let mount = Self::with(host, options, &config);
        if let Some(reason) = mount.session.info().no_passthrough {
            unmount(&mount.session);
            skipped_by_kernel(&reason);
            return None;
        }
        Some(mount)
    }

    fn with(host: TempDir, options: Options, config: &Config) -> Self {
        let transport = config.transport;
        let store = HostDirectory::open(host.path(), options).unwrap();
        let fs = FileSystem::new(Arc::new(store), CoreOptions::default()).unwrap();
        let dir = tempfile::tempdir().unwrap();
        let session = serve::mount(&fs, dir.path(), config, None).unwrap();
        Self {
            host,
            dir,
            fs,
            session,
            transport,
        }
    }

    /// A name on the host.
    fn below(&self, name: &str) -> PathBuf {
        self.host.path().join(name)
    }

    /// The same in the mount.
    fn at(&self, name: &str) -> PathBuf {
        self.dir.path().join(name)
    }

    fn requests(&self, of: Opcode) -> u64 {
        let totals = self.session.totals();
        let found = totals.requests.iter().find(|(opcode, _)| *opcode == of);
        found.map_or(0, |(_, count)| *count)
    }

    /// Requests with content.
    fn transfers(&self) -> u64 {
        self.requests(Opcode::Read) + self.requests(Opcode::Write)
    }

    /// Waits until the kernel has released all files, which close(2) does not.
    fn wait_for_release(&self) {
        while self.fs.stats().open_files > 0 {
            std::thread::sleep(Duration::from_millis(1));
        }
    }

    /// Unmounts; asserts that no content was cached in the daemon.
    #[track_caller]
    fn end_untouched(self) {
        assert_eq!(self.transfers(), 0, "{:?}", self.transport);
        assert_eq!(self.fs.stats().pages, 0, "{:?}", self.transport);
        unmount(&self.session);
    }

    fn end(self) {
        unmount(&self.session);
    }
}

/// Runs a test over both transports, with all files passed through.
fn on_both(test: impl Fn(Mount)) {
    for transport in [TransportChoice::Dev, TransportChoice::Uring] {
        if let Some(mount) = Mount::new(transport, Passthrough::All) {
            test(mount);
        }
    }
}

/// Runs a Python program with these files as arguments, for system calls without a safe wrapper.
#[track_caller]
fn python(program: &str, files: &[&Path]) -> String {
    let output = Command::new("python3")
        .args(["-c", program])
        .args(files)
        .output()
        .unwrap();
    let errors = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{program}: {errors}");
    String::from_utf8(output.stdout).unwrap().trim().to_owned()
}

/// truncate(2): by the name, with no file open.
#[track_caller]
fn truncate(path: &Path, len: u64) {
    let mut truncate = Command::new("python3");
    truncate.args([
        "-c",
        "import os, sys; os.truncate(sys.argv[1], int(sys.argv[2]))",
    ]);
    let status = truncate.arg(path).arg(len.to_string()).status();
    assert!(status.unwrap().success());
}
