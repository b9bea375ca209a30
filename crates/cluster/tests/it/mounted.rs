//! Two mounts of one database by the kernel, in one process.

use crate::{Client, Cluster};
use holdfast_cluster::meta::Settings;
use holdfast_testkit::mount::Mount;
use std::path::Path;
use std::process::Command;
use std::time::Duration;

/// So long a mount may believe what it was told.
const LEASE: Duration = Duration::from_millis(100);

/// Directories of a tree, with ten files each.
const DIRECTORIES: u64 = 40;

struct Mounted {
    client: Client,
    mount: Mount,
    dir: tempfile::TempDir,
}

impl Mounted {
    /// `None`: nothing can be mounted here.
    fn new(cluster: &Cluster) -> Option<Self> {
        let (client, dir) = (cluster.client(), tempfile::tempdir().unwrap());
        let mount = Mount::new(&client.fs, dir.path())?;
        Some(Self { client, mount, dir })
    }

    fn path(&self) -> &Path {
        self.dir.path()
    }

    fn end(self) {
        self.mount.end();
        self.client.fs.close().unwrap();
    }
}

fn run(program: &str, arguments: &[&Path]) {
    let (program, options) = program.split_once(' ').unwrap_or((program, ""));
    let mut command = Command::new(program);
    command.args(options.split_whitespace()).args(arguments);
    let output = command.output().unwrap();
    assert!(output.status.success(), "{command:?}: {output:?}");
}

#[test]
fn a_tree_is_copied_on_one_mount_compared_and_removed_on_the_other() {
    let cluster = Cluster::with(Settings {
        lease: LEASE,
        ..Settings::default()
    });
    let (Some(one), Some(other)) = (Mounted::new(&cluster), Mounted::new(&cluster)) else {
        return;
    };
    // With files of many pages, beside small ones, and a link.
    let source = tempfile::tempdir().unwrap();
    run(
        "cp -a",
        &[Path::new(env!("CARGO_MANIFEST_DIR")), source.path()],
    );
    std::fs::write(source.path().join("large"), vec![7; 3_000_001]).unwrap();
    std::os::unix::fs::symlink("large", source.path().join("link")).unwrap();
    run("cp -a", &[source.path(), &one.path().join("tree")]);
    run("diff -r", &[source.path(), &other.path().join("tree")]);
    run("diff -r", &[source.path(), &one.path().join("tree")]);
    run("rm -r", &[&other.path().join("tree")]);
    std::thread::sleep(LEASE);
    assert_eq!(std::fs::read_dir(one.path()).unwrap().count(), 0);
    one.end();
    other.end();
    let found = cluster.database.session().check(false);
    assert_eq!(found, Ok(Vec::new()));
}

/// A tree of directories with ten small files each, unpacked and removed by programs, as the trips
/// of a file.
#[test]
fn programs_unpack_and_remove_trees_in_few_trips_a_file() {
    // What is known holds on a slow machine as well.
    let cluster = Cluster::with(Settings {
        lease: Duration::from_secs(120),
        ..Settings::default()
    });
    let (Some(one), Some(other)) = (Mounted::new(&cluster), Mounted::new(&cluster)) else {
        return;
    };
    let source = tempfile::tempdir().unwrap();
    for dir in 0..DIRECTORIES {
        let dir = source.path().join(format!("tree/{dir}"));
        std::fs::create_dir_all(&dir).unwrap();
        for file in 0..10 {
            std::fs::write(dir.join(format!("{file}")), vec![7; 1000]).unwrap();
        }
    }
    let archive = source.path().join("tree.tar");
    run("tar cCf", &[source.path(), &archive, Path::new("tree")]);
    let files = 10 * DIRECTORIES;
    let trips = |mounted: &Mounted, program: &str, arguments: &[&Path]| {
        mounted.client.meta.take();
        run(program, arguments);
        let trips = mounted.client.meta.take();
        println!("{program}: {files} files, {trips:?}");
        trips.values().sum::<u64>()
    };
    let unpacked = trips(&one, "tar xCf", &[one.path(), &archive]);
    // For a directory tar makes it, and at last sets its owner, its permission bits and its times.
    assert!(
        unpacked <= 2 * files + 4 * (DIRECTORIES + 1) + 2,
        "{unpacked}"
    );
    let compared = trips(
        &other,
        "diff -r",
        &[&source.path().join("tree"), &other.path().join("tree")],
    );
    assert!(compared <= files / 2, "{compared}");
    let removed = trips(&other, "rm -r", &[&other.path().join("tree")]);
    assert!(removed * 10 <= files * 12, "{removed}");
    one.end();
    other.end();
}
