//! membarrier(2) is refused after it has worked, while a thread that relied on it sleeps. What was
//! retired is dropped all the same.
//!
//! A filter of system calls stays as long as its process lives, so the test is a process of its
//! own.
#![cfg(not(miri))]
#![expect(unsafe_code, reason = "a filter of system calls")]

use holdfast_sync::epoch;
use std::process::Command;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::mpsc;
use std::thread;
use std::time::{Duration, Instant};

/// Values of 4 KiB that are retired.
const VALUES: usize = 20_000;
/// As many may remain in bags of some threads.
const WAITING: usize = 2_000;

struct Value(Arc<AtomicUsize>, [u8; 4096]);

impl Drop for Value {
    fn drop(&mut self) {
        self.0
            .fetch_add(1 + usize::from(self.1[0]), Ordering::Relaxed);
    }
}

/// Drops a value after the pins of this moment.
fn retire<T: Send + 'static>(value: Box<T>) {
    unsafe fn free<T>(value: *mut ()) {
        // SAFETY: made from a box below, and called once.
        drop(unsafe { Box::from_raw(value.cast::<T>()) });
    }
    // SAFETY: no other thread knows the box, and `T` may be dropped on any thread.
    unsafe { epoch::retire_with(Box::into_raw(value).cast(), free::<T>) };
}

/// Refuses system calls of this number with EPERM, to all threads of the process.
fn refuse(number: libc::c_long) {
    let statement = |code: u32, jump_true, jump_false, k| libc::sock_filter {
        code: code as u16,
        jt: jump_true,
        jf: jump_false,
        k,
    };
    let refusal = libc::SECCOMP_RET_ERRNO | libc::EPERM as u32;
    let mut filter = [
        // `seccomp_data` begins with the number.
        statement(libc::BPF_LD | libc::BPF_W | libc::BPF_ABS, 0, 0, 0),
        statement(
            libc::BPF_JMP | libc::BPF_JEQ | libc::BPF_K,
            0,
            1,
            number as u32,
        ),
        statement(libc::BPF_RET | libc::BPF_K, 0, 0, refusal),
        statement(libc::BPF_RET | libc::BPF_K, 0, 0, libc::SECCOMP_RET_ALLOW),
    ];
    let program = libc::sock_fprog {
        len: filter.len() as u16,
        filter: filter.as_mut_ptr(),
    };
    // SAFETY: an option with four numbers.
    let done = unsafe { libc::prctl(libc::PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) };
    assert_eq!(done, 0);
    // SAFETY: the program is well-formed, and outlives the call.
    let done = unsafe {
        libc::syscall(
            libc::SYS_seccomp,
            libc::SECCOMP_SET_MODE_FILTER,
            libc::SECCOMP_FILTER_FLAG_TSYNC,
            &raw const program,
        )
    };
    assert_eq!(done, 0, "{}", std::io::Error::last_os_error());
}

fn is_refused() -> bool {
    // SAFETY: it only queries the supported commands.
    unsafe { libc::syscall(libc::SYS_membarrier, 0, 0, 0) == -1 }
}

#[test]
#[ignore = "run by the test below, in a process of its own"]
fn garbage_is_dropped_beside_a_sleeper() {
    epoch::prepare();
    let (wake, sleeps) = mpsc::channel::<()>();
    let (ready, works) = mpsc::channel();
    let sleeper = thread::spawn(move || {
        // Until its pins are trusted, which takes the kernel's answer.
        for _ in 0..300 {
            (0..1000).for_each(|_| drop(epoch::pin()));
            thread::sleep(Duration::from_millis(1));
        }
        ready.send(()).unwrap();
        // Until the channel is closed.
        let _ = sleeps.recv();
    });
    works.recv().unwrap();
    if is_refused() {
        // The call does not exist here: no thread relies on it.
        println!("no membarrier");
    } else {
        refuse(libc::SYS_membarrier);
        assert!(is_refused());
    }
    let dropped = Arc::new(AtomicUsize::new(0));
    for _ in 0..VALUES {
        retire(Box::new(Value(Arc::clone(&dropped), [0; 4096])));
    }
    let begun = Instant::now();
    loop {
        epoch::flush();
        let waiting = VALUES - dropped.load(Ordering::Relaxed);
        if waiting < WAITING {
            break;
        }
        assert!(
            begun.elapsed() < Duration::from_secs(60),
            "{waiting} of {VALUES} wait"
        );
        thread::sleep(Duration::from_millis(10));
    }
    drop(wake);
    sleeper.join().unwrap();
}

#[test]
fn what_a_sleeper_holds_back_is_found_out_without_membarrier() {
    let program = std::env::current_exe().unwrap();
    let arguments = [
        "--exact",
        "refused::garbage_is_dropped_beside_a_sleeper",
        "--ignored",
    ];
    let output = Command::new(program).args(arguments).output().unwrap();
    let told = String::from_utf8_lossy(&output.stdout);
    assert!(
        output.status.success(),
        "{told}{}",
        String::from_utf8_lossy(&output.stderr)
    );
}
