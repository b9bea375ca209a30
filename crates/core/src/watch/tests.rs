use super::{Event, EventMask, Watch, WatchRegistry};
use holdfast_types::Ino;
use std::collections::HashSet;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::thread;
use std::time::{Duration, Instant};

const DIR: Ino = Ino(7);
const LONG: Duration = Duration::from_secs(30);

fn masks(watch: &Watch) -> Vec<EventMask> {
    std::iter::from_fn(|| watch.try_next())
        .map(|event| event.mask)
        .collect()
}

#[test]
fn a_watch_hears_what_it_asked_for_and_no_more() {
    let registry = WatchRegistry::new();
    let watch = registry.add(
        DIR,
        EventMask::CREATE | EventMask::ATTRIB | EventMask::IGNORED,
    );
    registry.notify(DIR, EventMask::CREATE | EventMask::ISDIR, Some(b"a"), 0);
    registry.notify(DIR, EventMask::DELETE, Some(b"a"), 0);
    registry.notify(DIR, EventMask::MODIFY | EventMask::ATTRIB, None, 0);
    registry.notify(Ino(8), EventMask::CREATE, Some(b"b"), 0);
    registry.notify(DIR, EventMask::ISDIR, None, 0);
    let mask = EventMask::CREATE | EventMask::ISDIR;
    let created = Event {
        ino: DIR,
        mask,
        cookie: 0,
        name: Some(Box::from(*b"a")),
    };
    assert_eq!(watch.try_next(), Some(created));
    assert_eq!(masks(&watch), [EventMask::ATTRIB]);
}

#[test]
fn every_watch_of_an_inode_gets_its_own_copy() {
    let registry = WatchRegistry::new();
    let watches = [(); 3].map(|()| registry.add(DIR, EventMask::ALL_EVENTS));
    let [first, rest @ ..] = watches;
    registry.notify(DIR, EventMask::OPEN, None, 0);
    drop(first);
    registry.notify(DIR, EventMask::ACCESS, None, 0);
    for watch in &rest {
        assert_eq!(masks(watch), [EventMask::OPEN, EventMask::ACCESS]);
    }
    assert_eq!(registry.count(), 2);
}

#[test]
fn a_repeated_event_waits_once() {
    let registry = WatchRegistry::new();
    let watch = registry.add(DIR, EventMask::ALL_EVENTS);
    for name in [&b"a"[..], b"a", b"b", b"a"] {
        registry.notify(DIR, EventMask::MODIFY, Some(name), 0);
    }
    registry.notify(DIR, EventMask::MODIFY, None, 0);
    registry.notify(DIR, EventMask::MODIFY | EventMask::ISDIR, None, 0);
    for cookie in [1, 2, 2] {
        registry.notify(DIR, EventMask::MOVED_TO, Some(b"c"), cookie);
    }
    assert_eq!(masks(&watch).len(), 3 + 2 + 2);
    registry.notify(DIR, EventMask::MOVED_TO, Some(b"c"), 2);
    assert_eq!(
        masks(&watch).len(),
        1,
        "what was received is no longer there to repeat"
    );
}

#[test]
fn a_full_queue_says_so_once_and_fills_again_after() {
    let registry = WatchRegistry::new();
    let watch = registry.add_with_capacity(DIR, EventMask::ALL_EVENTS, 4);
    for n in 0..10_u8 {
        registry.notify(DIR, EventMask::CREATE, Some(&[n]), 0);
    }
    let names: Vec<_> = (0..4).filter_map(|_| watch.try_next()?.name).collect();
    assert_eq!(names, [0_u8, 1, 2, 3].map(|n| Box::from([n])));
    // The overflow event is still queued, and is not repeated.
    for n in 0..10_u8 {
        registry.notify(DIR, EventMask::DELETE, Some(&[n]), 0);
    }
    assert_eq!(
        masks(&watch),
        [
            EventMask::Q_OVERFLOW,
            EventMask::DELETE,
            EventMask::DELETE,
            EventMask::DELETE
        ]
    );
    for n in 0..10_u8 {
        registry.notify(DIR, EventMask::DELETE, Some(&[n]), 0);
    }
    assert_eq!(masks(&watch).last(), Some(&EventMask::Q_OVERFLOW));
}

#[test]
fn the_default_queue_holds_what_inotify_holds() {
    let registry = WatchRegistry::new();
    let watch = registry.add(DIR, EventMask::ALL_EVENTS);
    for n in 0..20_000_u32 {
        registry.notify(DIR, EventMask::CREATE, Some(&n.to_le_bytes()), 0);
    }
    let notified = masks(&watch);
    assert_eq!(notified.len(), 16_385);
    assert_eq!(
        notified
            .iter()
            .filter(|mask| **mask == EventMask::Q_OVERFLOW)
            .count(),
        1
    );
}

#[test]
fn only_watched_inodes_are_watched() {
    let registry = WatchRegistry::new();
    assert!(!registry.is_watched(DIR));
    // Enough to share shards.
    let mut watches: Vec<_> = (0..20_000)
        .map(|n| registry.add(Ino(n * 2), EventMask::OPEN))
        .collect();
    assert!((0..40_000).all(|n| registry.is_watched(Ino(n)) == (n % 2 == 0)));
    watches.retain(|watch| watch.ino().0 % 4 == 0);
    assert!((0..40_000).all(|n| registry.is_watched(Ino(n)) == (n % 4 == 0)));
    assert_eq!(registry.count(), 10_000);
    drop(watches);
    assert!(!(0..40_000).any(|n| registry.is_watched(Ino(n))));
    assert_eq!(registry.count(), 0);
    let _one = registry.add(Ino(3), EventMask::OPEN);
    assert!((0..40_000).all(|n| registry.is_watched(Ino(n)) == (n == 3)));
}

#[test]
fn nothing_follows_the_end_of_an_inode() {
    let registry = WatchRegistry::new();
    let watches = [(); 2].map(|()| registry.add(DIR, EventMask::DELETE_SELF));
    let other = registry.add(Ino(8), EventMask::DELETE_SELF);
    registry.notify(DIR, EventMask::DELETE_SELF, None, 0);
    registry.gone(DIR);
    registry.gone(DIR);
    registry.notify(DIR, EventMask::DELETE_SELF, None, 0);
    for watch in &watches {
        assert_eq!(masks(watch), [EventMask::DELETE_SELF, EventMask::IGNORED]);
    }
    assert!(!registry.is_watched(DIR));
    assert_eq!(registry.count(), 1);
    drop(watches);
    assert_eq!(
        registry.count(),
        1,
        "a watch that has ended is not counted off again"
    );
    assert!(registry.is_watched(other.ino()));
}

#[test]
fn a_receiver_wakes_for_an_event_and_gives_up_in_time() {
    let registry = WatchRegistry::new();
    let watch = registry.add(DIR, EventMask::OPEN);
    let start = Instant::now();
    assert_eq!(watch.next_timeout(Duration::from_millis(20)), None);
    assert!(start.elapsed() >= Duration::from_millis(20));
    thread::scope(|scope| {
        let receiver = scope.spawn(|| watch.next_timeout(Duration::MAX));
        thread::sleep(Duration::from_millis(10));
        registry.notify(DIR, EventMask::OPEN, None, 0);
        assert_eq!(
            receiver.join().unwrap().map(|event| event.mask),
            Some(EventMask::OPEN)
        );
    });
}

#[test]
fn a_cookie_is_dealt_once_and_is_never_zero() {
    let registry = WatchRegistry::new();
    let mut seen = HashSet::from([0]);
    thread::scope(|scope| {
        let dealers = [(); 8].map(|()| {
            scope.spawn(|| {
                (0..1000)
                    .map(|_| registry.next_cookie())
                    .collect::<Vec<_>>()
            })
        });
        for dealer in dealers {
            for cookie in dealer.join().unwrap() {
                assert!(seen.insert(cookie), "{cookie} twice");
            }
        }
    });
}

#[test]
fn no_event_is_lost_between_threads() {
    let registry = WatchRegistry::new();
    let watch = registry.add(DIR, EventMask::CREATE);
    let mut notified = [0_u32; 4];
    thread::scope(|scope| {
        for thread in 0..4_u8 {
            let registry = &registry;
            scope.spawn(move || {
                for n in 0..2000_u32 {
                    registry.notify(DIR, EventMask::CREATE, Some(&[thread]), n + 1);
                }
            });
        }
        for _ in 0..8000 {
            let event = watch.next_timeout(LONG).expect("an event was lost");
            let thread = usize::from(event.name.expect("the name")[0]);
            notified[thread] += 1;
            assert_eq!(event.cookie, notified[thread], "out of order");
        }
    });
    assert_eq!(notified, [2000; 4]);
}

#[test]
fn watches_come_and_go_while_others_notify() {
    let registry = WatchRegistry::new();
    let stop = AtomicBool::new(false);
    let rounds = AtomicU64::new(0);
    thread::scope(|scope| {
        for _ in 0..2 {
            scope.spawn(|| {
                while !stop.load(Ordering::Relaxed) {
                    for n in 0..8 {
                        registry.notify(Ino(n), EventMask::MODIFY, Some(b"name"), 0);
                    }
                    registry.gone(Ino(8));
                    rounds.fetch_add(1, Ordering::Relaxed);
                }
            });
        }
        for n in 0..3000 {
            let watch = registry.add(Ino(n % 9), EventMask::MODIFY);
            if n % 9 < 8 && n % 64 == 0 {
                let event = watch
                    .next_timeout(LONG)
                    .expect("a watch that is never told");
                assert_eq!((event.ino, event.mask), (Ino(n % 9), EventMask::MODIFY));
            }
        }
        stop.store(true, Ordering::Relaxed);
    });
    assert!(rounds.load(Ordering::Relaxed) > 0);
    assert_eq!(registry.count(), 0);
    assert!((0..9).all(|n| !registry.is_watched(Ino(n))));
}
