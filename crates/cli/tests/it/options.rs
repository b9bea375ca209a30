//! Mount options on each kind of source: each has its effect, or is refused with the reason. Tested
//! elsewhere: limits (`options_hold`), the root directory's owner (`first_contact`), `log=`
//! (`logged`), and options of mount(8) itself (`remounts`, `by_name`). So are `metrics=`,
//! `noxattr`, `statahead=`, `commit=`, `auto_unmount`, `nonempty`, `norecovery`, `valid=`, `told`,
//! `exclusive` and `passthrough=`.

use crate::fixture::{Place, Store, holdfast, wait_until};
use rustix::fs::{Mode, OFlags, StatVfsMountFlags};
use rustix::io::Errno;
use rustix::process::{Pid, Signal, kill_process};
use std::fs::{self, File, FileTimes};
use std::io::{Error, Read as _};
use std::os::unix::fs::{FileExt as _, MetadataExt as _, PermissionsExt as _, symlink};
use std::os::unix::process::CommandExt as _;
use std::path::PathBuf;
use std::process::Command;
use std::time::{Duration, SystemTime};

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Source {
    Memory,
    Volume,
    Directory,
}
use Source::{Directory, Memory, Volume};

const EACH: [Source; 3] = [Memory, Volume, Directory];

impl Source {
    /// A place, a source made in it, and the source as an argument.
    fn made() -> Option<(Place, impl Fn(Source) -> String)> {
        let place = Place::with_mounts()?;
        let image = place
            .path("data.hf")
            .into_os_string()
            .into_string()
            .expect("text");
        let dir = place
            .path("dir")
            .into_os_string()
            .into_string()
            .expect("text");
        fs::create_dir(&dir).expect("a directory");
        holdfast(["mkfs", "-q", "--size", "64m", &image]).ok();
        let name = move |source| match source {
            Memory => "mem:".to_owned(),
            Volume => image.clone(),
            Directory => dir.clone(),
        };
        Some((place, name))
    }
}

/// Options without an effect.
const REFUSED: [(&str, &[Source]); 32] = [
    ("size=1m", &[Volume, Directory]),
    ("nr_inodes=9", &[Volume, Directory]),
    ("memory=64m", &[Memory]),
    ("cache=64m", &[Memory, Directory]),
    ("commit=9", &[Memory, Directory]),
    ("sync", &[Memory]),
    ("dirsync", &[Memory]),
    ("lazytime", &[Memory, Directory]),
    ("strictatime", &[Directory]),
    ("norelatime", &[Directory]),
    ("statahead=off", &[Memory]),
    ("create", &[Memory, Directory]),
    ("create_size=64m", &EACH),
    ("mode=700", &[Volume, Directory]),
    ("uid=7", &[Volume, Directory]),
    ("gid=7", &[Volume, Directory]),
    ("valid=3", &[Memory, Volume]),
    ("told", &[Memory, Volume]),
    ("exclusive", &[Memory, Volume]),
    ("passthrough=off", &[Memory, Volume]),
    ("passthrough=on,sync", &[Directory]),
    ("passthrough=on,exclusive", &[Directory]),
    ("opens=local", &[Directory]),
    ("fuseblk=on", &[Memory, Directory]),
    ("fuseblk=on,fsname=x", &[Volume]),
    ("norecovery", &EACH),
    ("ro,norecovery", &[Memory, Directory]),
    ("ro,noload", &[Memory, Directory]),
    ("discard", &[Memory, Directory]),
    ("allow_root", &EACH),
    ("mand", &EACH),
    ("iversion", &EACH),
];

#[test]
fn an_option_that_can_have_no_effect_is_refused_by_name() {
    let Some((place, name)) = Source::made() else {
        return;
    };
    for (options, sources) in REFUSED {
        for source in sources.iter().map(|source| name(*source)) {
            let run = holdfast(["mount", "-o", options, &source, &place.mnt()]);
            let error = run.fails(1);
            let mut words = options.split(',');
            let named = |word: &str| error.contains(&format!("option {}", key(word)));
            assert!(words.any(named), "{options} on {source}: {error}");
            assert!(error.contains("\nhint: "), "{options} on {source}: {error}");
            assert!(!place.is_mounted(), "{options} on {source}");
        }
    }
}

fn key(word: &str) -> &str {
    word.split('=').next().unwrap_or(word)
}

/// Combinable options, each with a check of its effect.
type Effect = (&'static str, &'static [Source], fn(&Place) -> bool);

const EFFECTS: [Effect; 10] = [
    ("nosuid", &EACH, |place| {
        has_flag(place, StatVfsMountFlags::NOSUID)
    }),
    ("nodev", &EACH, |place| {
        let (path, kind) = (
            place.path("mnt/null"),
            rustix::fs::FileType::CharacterDevice,
        );
        let null = rustix::fs::makedev(1, 3);
        rustix::fs::mknodat(rustix::fs::CWD, &path, kind, Mode::RUSR, null).expect("a device");
        is_refused(File::open(path), Errno::ACCESS)
    }),
    ("noexec", &EACH, |place| {
        // By another process: one that a test beside this begins would hold it open for writing.
        let program = place.path("mnt/true");
        let copied = Command::new("cp").arg("/bin/true").arg(&program).status();
        assert!(copied.expect("cp runs").success());
        is_refused(Command::new(program).status(), Errno::ACCESS)
    }),
    ("nosymfollow", &EACH, |place| {
        let (file, link) = (place.path("mnt/target"), place.path("mnt/link"));
        fs::write(&file, "x").expect("a file");
        symlink("target", &link).expect("a link");
        is_refused(File::open(link), Errno::LOOP)
    }),
    ("noatime", &[Memory, Volume], |place| {
        let path = place.path("mnt/read");
        fs::write(&path, [7; 4096]).expect("a file");
        stays_as_read(&path, |path| {
            // Past the kernel's cache.
            let flags = OFlags::RDONLY | OFlags::DIRECT;
            let file = rustix::fs::open(path, flags, Mode::empty()).expect("a file");
            let mut buffer = vec![0; 8192];
            let start = buffer.as_ptr().align_offset(4096);
            let read = File::from(file).read_at(&mut buffer[start..start + 4096], 0);
            assert_eq!(read.expect("its bytes"), 4096);
        })
    }),
    ("nodiratime", &[Memory, Volume], |place| {
        let path = place.path("mnt/listed");
        fs::create_dir(&path).expect("a directory");
        stays_as_read(&path, |path| {
            assert_eq!(fs::read_dir(path).expect("a listing").count(), 0);
        })
    }),
    ("subtype=x", &EACH, |place| line(place).contains("fuse.x ")),
    ("max_read=8192", &EACH, |place| {
        line(place).contains("max_read=8192")
    }),
    ("blksize=16384", &EACH, |place| {
        fs::metadata(place.mnt()).expect("the root").blksize() == 16384
    }),
    ("noallow_other", &EACH, |place| {
        let mut others = Command::new("stat");
        let others = others.arg(place.mnt()).uid(1000).gid(1000).output();
        !others.expect("stat runs").status.success()
    }),
];

fn has_flag(place: &Place, flag: StatVfsMountFlags) -> bool {
    let flags = rustix::fs::statvfs(place.mnt()).expect("the mount").f_flag;
    flags.contains(flag)
}

fn is_refused<T>(result: Result<T, Error>, refusal: Errno) -> bool {
    match result {
        Ok(_) => false,
        Err(error) if Errno::from_io_error(&error) == Some(refusal) => true,
        Err(error) => panic!("{error}"),
    }
}

/// Does a read leave an access time that is older than the last change?
fn stays_as_read(path: &std::path::Path, read: impl FnOnce(&std::path::Path)) -> bool {
    let old = SystemTime::UNIX_EPOCH + Duration::from_secs(1);
    let times = FileTimes::new().set_accessed(old);
    File::open(path)
        .expect("it is there")
        .set_times(times)
        .expect("a time");
    read(path);
    fs::metadata(path)
        .expect("it is there")
        .accessed()
        .expect("a time")
        == old
}

/// The mount's line in the table.
fn line(place: &Place) -> String {
    let table = fs::read("/proc/self/mounts").expect("the mount table");
    let table = String::from_utf8_lossy(&table).into_owned();
    let mut lines = table.lines();
    lines
        .find(|line| line.contains(&place.mnt()))
        .expect("the mount")
        .to_owned()
}

#[test]
fn an_option_that_is_accepted_has_its_effect() {
    let Some((place, name)) = Source::made() else {
        return;
    };
    // Waits for other tests.
    fs::set_permissions(place.path(""), fs::Permissions::from_mode(0o755)).unwrap();
    for source in EACH {
        let of_it = || {
            EFFECTS
                .into_iter()
                .filter(|(_, on, _)| on.contains(&source))
        };
        let all: Vec<&str> = of_it().map(|(option, ..)| option).collect();
        for options in ["fuseblk=off".to_owned(), all.join(",")] {
            let given = options != "fuseblk=off";
            let with_type = format!("fsname=name,{options}");
            holdfast(["mount", "-o", &with_type, &name(source), &place.mnt()]).ok();
            for (option, _, effect) in of_it() {
                assert_eq!(effect(&place), given, "{option} on {source:?}");
            }
            assert!(line(&place).starts_with("name "), "{source:?}");
            for entry in fs::read_dir(place.mnt()).unwrap() {
                let path = entry.unwrap().path();
                let removed = fs::remove_file(&path).or_else(|_| fs::remove_dir(&path));
                removed.unwrap();
            }
            place.umount();
        }
    }
}

/// Kills the daemon, and mounts the same source again.
fn killed_and_mounted_again(place: &Place) {
    let daemon = place.daemon();
    kill_process(Pid::from_raw(daemon).unwrap(), Signal::KILL).unwrap();
    wait_until("the daemon is gone", || crate::fixture::is_gone(daemon));
    crate::fixture::umount(&place.mnt()).ok();
    place.mount(&[]);
}

/// A change by its name, and whether it is there.
type Step<'s> = (&'s str, &'s dyn Fn(), &'s dyn Fn() -> bool);

#[test]
fn with_dirsync_names_are_durable_when_the_call_returns() {
    let Some(place) = Place::over(Store::Volume) else {
        return;
    };
    let of = |name: &str| place.path(&format!("mnt/{name}"));
    let steps: [Step<'_>; 6] = [
        (
            "create",
            &|| drop(File::create(of("made")).unwrap()),
            &|| of("made").exists(),
        ),
        ("mkdir", &|| fs::create_dir(of("dir")).unwrap(), &|| {
            of("dir").is_dir()
        }),
        ("symlink", &|| symlink("made", of("link")).unwrap(), &|| {
            of("link").is_symlink()
        }),
        (
            "link",
            &|| fs::hard_link(of("made"), of("dir/other")).unwrap(),
            &|| fs::metadata(of("made")).unwrap().nlink() == 2,
        ),
        (
            "rename",
            &|| fs::rename(of("made"), of("dir/moved")).unwrap(),
            &|| of("dir/moved").exists() && !of("made").exists(),
        ),
        ("unlink", &|| fs::remove_file(of("link")).unwrap(), &|| {
            !of("link").is_symlink()
        }),
    ];
    for (what, change, is_there) in steps {
        place.mount(&["-o", "dirsync,commit=3600"]);
        change();
        killed_and_mounted_again(&place);
        assert!(is_there(), "{what}");
        place.umount();
        place.check();
    }
}

#[test]
fn with_sync_content_is_durable_when_the_call_returns() {
    let Some(place) = Place::over(Store::Volume) else {
        return;
    };
    let path = place.path("mnt/file");
    place.mount(&["-o", "sync,commit=3600"]);
    fs::write(&path, "content").unwrap();
    killed_and_mounted_again(&place);
    assert_eq!(fs::read_to_string(&path).unwrap(), "content");
    place.umount();
    place.mount(&["-o", "sync,commit=3600"]);
    fs::set_permissions(&path, fs::Permissions::from_mode(0o600)).unwrap();
    killed_and_mounted_again(&place);
    assert_eq!(fs::metadata(&path).unwrap().mode() & 0o777, 0o600);
    place.umount();
    place.check();
}

/// A file system of the host, unmounted with the test.
struct HostMount(PathBuf);

impl Drop for HostMount {
    fn drop(&mut self) {
        let _ = Command::new("umount").arg("-l").arg(&self.0).status();
    }
}

/// A directory on a host file system of its own; its device shows which changes are durable.
#[test]
fn with_sync_and_dirsync_a_directory_of_the_host_is_durable_as_well() {
    let Some(place) = Place::with_mounts() else {
        return;
    };
    let (image, host, copy) = (place.path("ext4"), place.path("host"), place.path("copy"));
    File::create(&image).unwrap().set_len(64 << 20).unwrap();
    let sh = |script: &str| {
        let mut command = Command::new("sh");
        let output = command
            .args(["-ec", script, "sh"])
            .args([&image, &host, &copy]);
        let output = output.output().unwrap();
        assert!(
            output.status.success(),
            "{}",
            String::from_utf8_lossy(&output.stderr)
        );
        String::from_utf8(output.stdout).unwrap()
    };
    sh(r#"mkfs.ext4 -q "$1"; mkdir "$2"; mount -o loop "$1" "$2"; mkdir "$2/dir"; sync -f "$2""#);
    let _mounted = HostMount(host.clone());
    let dir = host.join("dir");
    let dir = dir.to_str().unwrap();
    // The content of the device: its journal is replayed on a copy, which is then read.
    let durable = |name: &str| {
        let script = format!(
            r#"cp "$1" "$3"; e2fsck -fp "$3" >/dev/null || [ $? -le 1 ]; debugfs -R "cat /dir/{name}" "$3" 2>&1; rm "$3""#
        );
        sh(&script)
    };
    for option in ["sync", "dirsync"] {
        holdfast(["mount", "-o", option, dir, &place.mnt()]).ok();
        fs::write(place.path(&format!("mnt/{option}")), "durable content").unwrap();
        let found = durable(option);
        assert!(!found.contains("File not found"), "{option}: {found}");
        if option == "sync" {
            assert!(found.contains("durable content"), "{option}: {found}");
            // Large enough for passthrough.
            let large = vec![b'x'; 2 << 20];
            fs::write(place.path("mnt/large"), &large).unwrap();
            fs::OpenOptions::new()
                .write(true)
                .open(place.path("mnt/large"))
                .unwrap()
                .write_all_at(b"changed", 1 << 20)
                .unwrap();
            let found = durable("large");
            assert!(
                found.len() >= large.len() && found.contains("changed"),
                "{}",
                found.len()
            );
        }
        place.umount();
    }
}

#[test]
fn with_discard_free_space_goes_back_to_the_image_at_the_end() {
    let Some(place) = Place::over(Store::Volume) else {
        return;
    };
    let mut noise = vec![0; 8 << 20];
    File::open("/dev/urandom")
        .unwrap()
        .read_exact(&mut noise)
        .unwrap();
    for (option, goes_back) in [("nodiscard", false), ("discard", true)] {
        place.mount(&["-o", option]);
        let path = place.path("mnt/large");
        fs::write(&path, &noise).unwrap();
        File::open(&path).unwrap().sync_all().unwrap();
        let blocks = || fs::metadata(place.source()).unwrap().blocks() * 512;
        let full = blocks();
        fs::remove_file(&path).unwrap();
        place.umount();
        assert_eq!(blocks() + (7 << 20) < full, goes_back, "{option}");
        place.check();
    }
}
