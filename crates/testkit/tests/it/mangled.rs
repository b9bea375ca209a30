//! A slice of the image fuzzing (`fuzz/fuzz_targets/volume_image.rs`) with seeds.

use holdfast_testkit::crash::Images;
use holdfast_testkit::{effort, seed};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, mpsc};
use std::time::{Duration, Instant};

/// Longest time of one image: then it hangs.
const PATIENCE: Duration = Duration::from_secs(60);

#[test]
fn no_image_makes_anything_panic_or_hang() {
    let images = Arc::new(Images::make().unwrap());
    let first = seed(1);
    let end = Instant::now() + Duration::from_secs(effort().of(1, 10));
    let next = Arc::new(AtomicU64::new(first));
    let (tell, hear) = mpsc::channel();
    let threads = std::thread::available_parallelism().map_or(1, usize::from);
    for _ in 0..threads {
        let (images, next, tell) = (Arc::clone(&images), Arc::clone(&next), tell.clone());
        std::thread::spawn(move || {
            while Instant::now() < end {
                let seed = next.fetch_add(1, Ordering::Relaxed);
                let tried = || images.try_input(&Images::input(seed));
                let outcome = catch_unwind(AssertUnwindSafe(tried)).is_ok();
                if tell.send((seed, outcome)).is_err() || !outcome {
                    return;
                }
            }
        });
    }
    drop(tell);
    let mut tried = 0;
    loop {
        match hear.recv_timeout(PATIENCE) {
            Ok((_, true)) => tried += 1,
            Ok((seed, false)) => panic!("HOLDFAST_SEED={seed}: it panicked"),
            Err(mpsc::RecvTimeoutError::Disconnected) => break,
            Err(mpsc::RecvTimeoutError::Timeout) => {
                let latest = next.load(Ordering::Relaxed);
                panic!("one of the last seeds before {latest} hangs");
            }
        }
    }
    println!("{tried} images, from seed {first} on");
    assert!(tried > 20, "{tried} images");
}
