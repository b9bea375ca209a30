use super::*;
use crate::ticker_primitive::PATIENCE;
use std::fs;
use std::sync::atomic::AtomicU64;
use std::time::Instant;

fn seven() -> u64 {
    7
}

#[test]
fn nothing_is_told_without_a_keeper() {
    let ticker = Ticker::new(seven);
    assert_eq!(ticker.told(), 0);
    ticker.correct(0, 5);
    assert_eq!(ticker.told(), 0);
    let mut keeper = ticker.keep().unwrap();
    assert_eq!(ticker.told(), 0);
    assert!(keeper.round(seven));
    assert_eq!(ticker.told(), 7);
    assert!(ticker.keep().is_none(), "there is one");
    assert_eq!(ticker.told(), 7, "he still keeps it");
    drop(keeper);
    assert_eq!(ticker.told(), 0);
    // Somebody who was told before.
    ticker.correct(7, 8);
    assert_eq!(ticker.told(), 0);
}

#[test]
fn who_looked_corrects_it_and_no_older_answer_replaces_his() {
    let ticker = Ticker::new(seven);
    let mut keeper = ticker.keep().unwrap();
    keeper.round(|| 1);
    ticker.correct(1, 2);
    assert_eq!(ticker.told(), 2);
    ticker.correct(1, 1);
    assert_eq!(ticker.told(), 2);
    // The keeper looked, and then somebody else looked and was faster.
    keeper.round(|| {
        ticker.correct(2, 4);
        3
    });
    assert_eq!(ticker.told(), 4);
    // A clock that was set back.
    keeper.round(|| 2);
    assert_eq!(ticker.told(), 2);
}

#[test]
fn what_nobody_wants_is_given_up() {
    let ticker = Ticker::new(seven);
    let mut keeper = ticker.keep().unwrap();
    let rounds = |keeper: &mut Keeper<'_>| (0..).take_while(|_| keeper.round(seven)).count();
    assert_eq!(rounds(&mut keeper), PATIENCE as usize);
    // Going by it is not enough.
    ticker.correct(7, 7);
    assert_eq!(rounds(&mut keeper), 0);
    ticker.want();
    assert_eq!(rounds(&mut keeper), PATIENCE as usize + 1);
}

/// Names of the threads of the process.
fn threads() -> Vec<String> {
    let tasks = fs::read_dir("/proc/self/task").unwrap();
    tasks
        .filter_map(|task| fs::read_to_string(task.ok()?.path().join("comm")).ok())
        .collect()
}

fn wait_until(what: &str, is_so: impl Fn() -> bool) {
    let begun = Instant::now();
    while !is_so() {
        assert!(begun.elapsed() < Duration::from_mins(1), "{what}");
        thread::sleep(PERIOD);
    }
}

#[test]
#[cfg_attr(miri, ignore = "no pages of the kernel's")]
fn a_thread_keeps_it_while_it_is_wanted_and_a_child_has_none() {
    static NUMBER: AtomicU64 = AtomicU64::new(1);
    static TICKER: Ticker = Ticker::new(|| NUMBER.load(Ordering::Relaxed));
    let is_there = || {
        threads()
            .iter()
            .any(|name| name.trim() == "holdfast-ticker")
    };
    for number in [10, 20] {
        NUMBER.store(number, Ordering::Relaxed);
        // A second time it changes nothing.
        (0..2).for_each(|_| TICKER.start());
        wait_until("a word", || TICKER.told() == number);
        assert!(is_there());
        NUMBER.store(number + 1, Ordering::Relaxed);
        wait_until("the next", || TICKER.told() == number + 1);
        if number == 10 {
            let in_child = told_in_a_child(&TICKER);
            assert_eq!(in_child, 0, "its thread is not there");
            TICKER.want();
            wait_until("the parent's", || {
                TICKER.start();
                TICKER.told() == number + 1
            });
        }
        wait_until("no word", || TICKER.told() == 0);
        wait_until("no thread", || !is_there());
    }
}

/// What it tells in a child of the process; 2 if it could not be kept there.
fn told_in_a_child(ticker: &Ticker) -> i32 {
    // SAFETY: the child, of a process with threads, calls nothing that takes a lock or allocates.
    let child = unsafe { libc::fork() };
    if child == 0 {
        let told = i32::from(ticker.told() != 0);
        let answer = match ticker.keep() {
            Some(_) => told,
            None => 2,
        };
        // SAFETY: ends the child at once.
        unsafe { libc::_exit(answer) };
    }
    let mut status = 0;
    // SAFETY: a place for the answer.
    assert_eq!(unsafe { libc::waitpid(child, &raw mut status, 0) }, child);
    assert!(libc::WIFEXITED(status), "the child failed: {status}");
    libc::WEXITSTATUS(status)
}
