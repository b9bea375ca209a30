//! How many crash states a second: `cargo run --release -p holdfast-testkit --example crash_states`.

use holdfast_device::{BlockDevice, Image, MemoryDevice};
use holdfast_testkit::device::{CrashState, CrashStates, History, RecordingDevice};
use holdfast_testkit::rng::Rng;
use std::time::Instant;

/// Writes of one to four blocks all over a device of 64 MiB that is already full, flushed in turns.
fn recorded(writes: u64, between_flushes: u64) -> History {
    let mut rng = Rng::new(1);
    let mut image = Image::new(64 << 20);
    for at in (0..image.size()).step_by(1 << 20) {
        image.write(at, &vec![1; 1 << 20]);
    }
    let device = RecordingDevice::from_image(image);
    for number in 1..=writes {
        let len = 4096 * (1 + rng.below(4));
        let at = rng.below((device.size() - len) / 4096) * 4096;
        device
            .write(at, &vec![number as u8; len as usize])
            .expect("memory takes it");
        if number % between_flushes == 0 {
            device.flush().expect("memory flushes");
            device.mark(number);
        }
    }
    device.history()
}

fn main() {
    for (writes, between_flushes) in [(200, 4), (2_000, 20), (10_000, 20), (10_000, 2_000)] {
        let begun = Instant::now();
        let states = CrashStates::new(recorded(writes, between_flushes), 7);
        let prepared = begun.elapsed();
        let systematic = states.systematic();
        let all = per_second(states.iter().take(systematic as usize));
        let sampled = (systematic..systematic + 2_000).map(|number| states.state(number));
        println!(
            "{writes} writes, {between_flushes} between flushes: prepared in {prepared:.1?}; \
             {all:.0} systematic, {:.0} sampled states a second",
            per_second(sampled),
        );
    }
}

fn per_second(states: impl Iterator<Item = CrashState>) -> f64 {
    let (begun, mut count) = (Instant::now(), 0.0);
    for state in states {
        // What opening a volume does at least: read a little, and write a little.
        let device = MemoryDevice::from_image("state", state.image);
        let mut block = [0; 4096];
        for at in 0..8 {
            device.read(at << 20, &mut block).expect("memory reads");
        }
        device.write(0, &block).expect("memory writes");
        count += 1.0;
    }
    count / begun.elapsed().as_secs_f64()
}
