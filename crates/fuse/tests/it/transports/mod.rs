//! The same file system over both transports, through the kernel.

mod idle;
mod killed;
mod scarce;
mod toy;

use crate::support::config;
use holdfast_fuse::{Session, Transport, TransportChoice, wire::Opcode};
use holdfast_types::Ino;
use rustix::fs::{FlockOperation, OFlags, flock};
use rustix::thread::{CpuSet, sched_setaffinity};
use std::{
    fs::{self, File},
    io::{self, ErrorKind, Write},
    os::unix::fs::{FileExt, OpenOptionsExt},
    path::Path,
    sync::Arc,
    thread,
    time::{Duration, Instant},
};
use toy::{Toy, on_each_transport};

#[test]
fn the_transport_in_use_is_told_with_the_reason() {
    on_each_transport(|_, session, dir| {
        fs::metadata(dir.join("none")).unwrap_err();
        let info = session.info();
        let lookups = info
            .totals
            .requests
            .iter()
            .find(|(opcode, _)| *opcode == Opcode::Lookup);
        assert_eq!(
            lookups.map(|&(_, count)| count),
            Some(1),
            "the second answer is remembered"
        );
        match info.transport {
            Transport::Dev => assert!(info.why.contains("configuration"), "{}", info.why),
            Transport::Uring => assert!(info.threads >= 2),
        }
    });
}

#[test]
fn megabytes_survive_the_way_buffered_and_direct() {
    on_each_transport(|_, session, dir| {
        let data: Vec<u8> = (0..5_000_000u32)
            .map(|n| (n.wrapping_mul(7919) >> 3) as u8)
            .collect();
        let path = dir.join("big");
        fs::write(&path, &data).unwrap();
        assert!(fs::read(&path).unwrap() == data);
        let direct = File::options()
            .read(true)
            .custom_flags(libc::O_DIRECT)
            .open(&path)
            .unwrap();
        let mut back = vec![0; data.len()];
        direct.read_exact_at(&mut back, 0).unwrap();
        assert!(back == data);
        assert!(session.info().totals.bytes_read >= data.len() as u64);
    });
}

#[test]
fn every_reference_the_kernel_took_comes_back() {
    on_each_transport(|toy, session, dir| {
        (0..500).for_each(|n| toy.add(&format!("name-{n}")));
        for entry in fs::read_dir(dir).unwrap() {
            fs::metadata(entry.unwrap().path()).unwrap();
        }
        assert!(toy.references() >= 500);
        let held: Vec<Ino> = (2..502).map(Ino).collect();
        session.notifier().prune(&held);
        session.notifier().flush();
        let deadline = Instant::now() + Duration::from_secs(5);
        while toy.references() > 0 && Instant::now() < deadline {
            thread::sleep(Duration::from_millis(5));
        }
        assert_eq!(toy.references(), 0);
    });
}

#[test]
fn a_panic_answers_eio_and_the_mount_lives_on() {
    on_each_transport(|_, session, dir| {
        let error = fs::metadata(dir.join("panic")).unwrap_err();
        assert_eq!(error.raw_os_error(), Some(libc::EIO));
        fs::write(dir.join("after"), b"x").unwrap();
        assert_eq!(session.info().totals.panics, 1);
    });
}

#[test]
fn a_change_that_overtakes_the_first_reply_of_an_inode_shows() {
    on_each_transport(|toy, session, dir| {
        for round in 0..20 {
            let name = format!("file-{round}");
            toy.add(&name);
            let (notifier, changed) = (session.notifier().clone(), name.clone());
            toy.meanwhile(move |toy| {
                let ino = toy.replace(&changed, b"longer by now");
                notifier.invalidate_inode(ino, 0, 0);
                // The kernel has taken it, and did not know the inode.
                notifier.flush();
            });
            // stat(2): the time of birth, which std asks for, does not come with a lookup.
            let size = || rustix::fs::stat(dir.join(&name)).unwrap().st_size;
            size();
            let begun = Instant::now();
            // The mount's replies hold for ever.
            while size() != 13 {
                assert!(begun.elapsed() < Duration::from_secs(20), "{name}");
                thread::sleep(Duration::from_millis(1));
            }
        }
    });
}

/// Reads the file past the kernel's cache, from processor 0, so that one queue has to bear it.
/// What the first bytes are without the kernel's pages, which would have one thread read for all.
fn read_directly(path: &Path) -> io::Result<Vec<u8>> {
    let mut options = File::options();
    let file = options.read(true).custom_flags(libc::O_DIRECT).open(path)?;
    let mut bytes = vec![0; 6];
    file.read_exact_at(&mut bytes, 0)?;
    Ok(bytes)
}

fn read_on_processor_0(path: &Path) -> Vec<u8> {
    on_processor_0();
    read_directly(path).unwrap()
}

fn on_processor_0() {
    let mut set = CpuSet::new();
    set.set(0);
    sched_setaffinity(None, &set).unwrap();
}

fn eventually(what: &str, mut so: impl FnMut() -> bool) {
    let deadline = Instant::now() + Duration::from_secs(60);
    while !so() {
        assert!(Instant::now() < deadline, "{what}");
        thread::sleep(Duration::from_millis(1));
    }
}

fn reads_that_wait_delay_nobody(name: &str) {
    const READERS: usize = 64;
    on_each_transport(|toy, session, dir| {
        let path = dir.join(name);
        fs::write(&path, b"slowly").unwrap();
        thread::scope(|scope| {
            let readers: Vec<_> = (0..READERS)
                .map(|_| scope.spawn(|| read_on_processor_0(&path)))
                .collect();
            // All of them are being served at once, and none has its answer.
            eventually("a read is not served beside the others", || {
                toy.held() == READERS
            });
            let others = scope.spawn(|| {
                on_processor_0();
                for other in 0..100 {
                    let error = fs::metadata(dir.join(format!("other{other}"))).unwrap_err();
                    assert_eq!(error.kind(), ErrorKind::NotFound);
                }
            });
            others.join().unwrap();
            assert_eq!(
                toy.held(),
                READERS,
                "what was asked meanwhile was answered meanwhile"
            );
            toy.let_go();
            for reader in readers {
                assert_eq!(reader.join().unwrap(), b"slowly");
            }
        });
        assert!(session.info().threads > READERS);
    });
}

#[test]
fn reads_that_wait_unannounced_delay_nobody() {
    reads_that_wait_delay_nobody("held-file");
}

#[test]
fn reads_that_wait_and_say_so_delay_nobody() {
    reads_that_wait_delay_nobody("slow-file");
}

#[test]
fn more_waiters_than_the_rings_hold_do_not_keep_the_unlock_out() {
    on_each_transport(|_, _, dir| {
        let path = dir.join("locked");
        fs::write(&path, b"").unwrap();
        let holder = File::open(&path).unwrap();
        flock(&holder, FlockOperation::LockExclusive).unwrap();
        let waiters: Vec<_> = (0..120)
            .map(|_| {
                let path = path.clone();
                thread::spawn(move || {
                    on_processor_0();
                    let file = File::open(path).unwrap();
                    flock(&file, FlockOperation::LockExclusive).unwrap();
                    flock(&file, FlockOperation::Unlock).unwrap();
                })
            })
            .collect();
        thread::sleep(Duration::from_millis(300));
        fs::metadata(dir.join("other")).unwrap_err();
        flock(&holder, FlockOperation::Unlock).unwrap();
        waiters
            .into_iter()
            .for_each(|waiter| waiter.join().unwrap());
    });
}

#[test]
fn a_signal_ends_the_wait_for_a_lock() {
    on_each_transport(|_, _, dir| {
        let path = dir.join("locked");
        fs::write(&path, b"").unwrap();
        let holder = File::options().write(true).open(&path).unwrap();
        flock(&holder, FlockOperation::LockExclusive).unwrap();
        let mut waiter = std::process::Command::new("timeout")
            .args(["--preserve-status", "-s", "INT", "0.3", "flock"])
            .arg(&path)
            .arg("true")
            .spawn()
            .unwrap();
        let started = Instant::now();
        assert!(!waiter.wait().unwrap().success());
        assert!(started.elapsed() < Duration::from_secs(60));
        flock(&holder, FlockOperation::Unlock).unwrap();
        flock(&holder, FlockOperation::NonBlockingLockExclusive).unwrap();
    });
}

#[test]
fn an_unmount_from_outside_ends_the_session() {
    for transport in [TransportChoice::Dev, TransportChoice::Uring] {
        let Some(config) = config(transport) else {
            continue;
        };
        let dir = tempfile::tempdir().unwrap();
        let session = Arc::new(Session::mount(Toy::new(), dir.path(), &config).unwrap());
        let waiting = session.clone();
        let waiter = thread::spawn(move || waiting.wait());
        let status = std::process::Command::new("umount")
            .arg(dir.path())
            .status()
            .unwrap();
        assert!(status.success());
        waiter.join().unwrap();
    }
}

#[test]
fn a_dropped_session_leaves_no_mount_even_with_open_files() {
    for transport in [TransportChoice::Dev, TransportChoice::Uring] {
        let Some(config) = config(transport) else {
            continue;
        };
        let dir = tempfile::tempdir().unwrap();
        let session = Session::mount(Toy::new(), dir.path(), &config).unwrap();
        let path = dir.path().join("file");
        let mut file = File::options()
            .read(true)
            .write(true)
            .create(true)
            .truncate(false)
            .custom_flags(OFlags::DIRECT.bits() as i32)
            .open(path)
            .unwrap();
        drop(session);
        assert!(file.write(b"late").is_err());
        assert_eq!(holdfast_fuse::mount::mounted_at(dir.path()).unwrap(), None);
    }
}

#[test]
fn a_second_mount_on_top_is_refused() {
    on_each_transport(|_, _, dir| {
        let config = config(TransportChoice::Auto).unwrap();
        let error = Session::mount(Toy::new(), dir, &config).unwrap_err();
        assert!(error.to_string().contains("mounted at"), "{error}");
    });
}

#[test]
fn operations_that_go_on_answering_are_asked_no_more_after_a_revocation() {
    on_each_transport(|toy, session, dir| {
        let path = dir.join("file");
        fs::write(&path, b"content").unwrap();
        let file = File::open(&path).unwrap();
        session.revoke().unwrap();
        for failed in [
            file.read_at(&mut [0; 7], 0).map(drop),
            file.metadata().map(drop),
            fs::metadata(&path).map(drop),
            fs::metadata(dir.join("none")).map(drop),
            fs::write(dir.join("new"), b""),
            fs::remove_file(&path),
        ] {
            assert_eq!(failed.unwrap_err().raw_os_error(), Some(libc::EIO));
        }
        drop(file);
        let released = || {
            let requests = session.totals().requests;
            let count = requests.iter().find(|(code, _)| *code == Opcode::Release);
            count.is_some_and(|&(_, count)| count == 2)
        };
        let deadline = Instant::now() + Duration::from_secs(10);
        while !released() && Instant::now() < deadline {
            thread::sleep(Duration::from_millis(2));
        }
        assert!(released(), "closing is still told");
        assert_eq!(toy.making(), 0);
    });
}

#[test]
fn what_was_begun_before_a_revocation_is_waited_for_and_fills_no_cache() {
    on_each_transport(|toy, session, dir| {
        let path = dir.join("late");
        let made = path.clone();
        let maker = thread::spawn(move || File::create(made));
        while toy.making() == 0 {
            thread::yield_now();
        }
        session.revoke().unwrap();
        assert_eq!(toy.making(), 0, "it was not waited for");
        // Its reply brought attributes, for ever valid. The kernel looks at them before it hands
        // the file out: where they are gone by then, this is what fails.
        let of_file = maker.join().unwrap().and_then(|file| file.metadata());
        for answered in [of_file, fs::metadata(&path)] {
            assert_eq!(answered.unwrap_err().raw_os_error(), Some(libc::EIO));
        }
    });
}
