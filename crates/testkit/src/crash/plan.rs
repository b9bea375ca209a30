//! Which sequences are tried: all of one and two steps, then random ones without end.

use super::step::Step;
use crate::rng::Rng;

/// What the exhaustive sequences are made of.
const ALPHABET: [Step; 60] = [
    Step::Create("new"),
    Step::Create("dir/new"),
    Step::Mkdir("new"),
    Step::Write("new", 0, 100),
    Step::Write("new", 0, 10_000),
    Step::Write("big", 0, 8192),
    Step::Write("big", 5000, 300),
    Step::Write("big", 30_000, 100),
    Step::Write("dir/leaf", 200, 500),
    Step::Append("big", 5000),
    Step::Append("small", 100),
    Step::Append("small", 5000),
    Step::Truncate("big", 6000),
    Step::Truncate("big", 0),
    Step::Truncate("big", 60_000),
    Step::Truncate("small", 10),
    Step::Truncate("small", 3000),
    Step::Punch("big", 4096, 8192),
    Step::Punch("big", 1000, 9000),
    Step::Punch("small", 10, 50),
    Step::Zero("big", 2000, 6000),
    Step::Allocate("big", 20_480, 20_000),
    Step::Reserve("big", 8192, 40_000),
    Step::Collapse("big", 4096, 4096),
    Step::Insert("big", 4096, 4096),
    Step::Rename("small", "new"),
    Step::Rename("dir/leaf", "small"),
    Step::Rename("big", "dir/data"),
    Step::Rename("dir", "new"),
    Step::Exchange("small", "big"),
    Step::Exchange("dir", "big"),
    Step::Link("big", "new"),
    Step::Unlink("small"),
    Step::Unlink("big"),
    Step::Rmdir("void"),
    Step::Symlink("new"),
    Step::SetXattr("small", 50),
    Step::SetXattr("big", 20_000),
    Step::RemoveXattr("big"),
    Step::Chmod("dir", 0o700),
    Step::Hold("big"),
    Step::Fsync("big"),
    Step::WriteBehind,
    Step::Sync,
    Step::Checkpoint,
    Step::Grow(70),
    Step::Trim,
    Step::Reopen,
    Step::Close,
    Step::ZeroKept("big", 16_000, 20_000),
    Step::Reserve("small", 0, 9000),
    Step::Copy("big", 0, "new", 0, 20_000),
    Step::Copy("big", 4096, "dir/data", 0, 8192),
    Step::Copy("big", 100, "big", 9000, 5000),
    Step::Copy("small", 10, "big", 30_000, 50),
    Step::Copy("big", 0, "small", 50, 4000),
    Step::Link("big", LONG),
    Step::Rename("small", LONG),
    Step::SetXattr("dir", 3000),
    Step::Chown("big", 1000),
];

/// A name as long as names may be.
const LONG: &str = match std::str::from_utf8(&[b'n'; 255]) {
    Ok(name) => name,
    Err(_) => panic!("letters"),
};

/// Names that random sequences use.
const PATHS: [&str; 13] = [
    "small", "big", "new", "other", "dir", "dir/leaf", "dir/data", "dir/new", "void", "void/in",
    "link", "hard", LONG,
];

/// How many sequences are exhaustive.
pub(super) const EXHAUSTIVE: u64 = (ALPHABET.len() + ALPHABET.len() * ALPHABET.len()) as u64;

/// The sequence that is tried as the n-th, where of those of more than one step only every
/// so-manieth is.
pub(super) const fn nth(nth: u64, every: u64) -> u64 {
    let letters = ALPHABET.len() as u64;
    match nth.checked_sub(letters) {
        Some(longer) => letters + longer * every,
        None => nth,
    }
}

/// The steps of a sequence. `most`: how long random ones are at most.
pub(super) fn steps(seed: u64, number: u64, most: usize) -> Vec<Step> {
    let letters = ALPHABET.len() as u64;
    let letter = |nth: u64| ALPHABET[nth as usize].clone();
    let mut steps = match number {
        one if one < letters => vec![letter(one)],
        two if two < EXHAUSTIVE => {
            let pair = two - letters;
            vec![letter(pair / letters), letter(pair % letters)]
        }
        _ => sampled(seed, number, most),
    };
    // What is not committed leaves no trace to crash in. Every other sequence is only written
    // first.
    if number % 2 == 1 {
        steps.push(Step::WriteBehind);
    }
    steps.extend([Step::Sync, Step::Checkpoint]);
    steps
}

fn sampled(seed: u64, number: u64, most: usize) -> Vec<Step> {
    let mut rng = Rng::new(seed ^ number.wrapping_mul(0x9e37_79b9_7f4a_7c15));
    if rng.one_in(2) {
        let len = 3 + rng.index(3);
        return (0..len).map(|_| rng.pick(&ALPHABET).clone()).collect();
    }
    let len = most.min(8) + rng.index(most.saturating_sub(8) + 1);
    (0..len).map(|_| random(&mut rng)).collect()
}

fn random(rng: &mut Rng) -> Step {
    let path = *rng.pick(&PATHS);
    let other = *rng.pick(&PATHS);
    let offset = match rng.below(4) {
        0 => 0,
        1 => rng.below(16) * 4096,
        2 => rng.below(3000),
        _ => rng.below(70_000),
    };
    let len = match rng.below(3) {
        0 => 1 + rng.below(600),
        1 => (1 + rng.below(4)) * 4096,
        _ => 1 + rng.below(20_000),
    };
    match rng.below(72) {
        0..4 => Step::Create(path),
        4..6 => Step::Mkdir(path),
        6..16 => Step::Write(path, offset, len as usize),
        16..19 => Step::Append(path, len as usize),
        19..22 => Step::Truncate(path, offset),
        22..24 => Step::Punch(path, offset, len),
        24 => Step::Zero(path, offset, len),
        25 => Step::Allocate(path, offset, len),
        26 => Step::Reserve(path, offset, len),
        27 => Step::Collapse(path, offset / 4096 * 4096, len.div_ceil(4096) * 4096),
        28 => Step::Insert(path, offset / 4096 * 4096, len.div_ceil(4096) * 4096),
        29..33 => Step::Rename(path, other),
        33 => Step::Exchange(path, other),
        34..36 => Step::Link(path, other),
        36..39 => Step::Unlink(path),
        39 => Step::Rmdir(path),
        40..42 => Step::Symlink(path),
        42..44 => Step::SetXattr(path, len as usize),
        44 => Step::RemoveXattr(path),
        45 => Step::Chmod(path, 0o600 + rng.below(0o100) as u16),
        46..48 => Step::Hold(path),
        48..50 => Step::WriteHeld(offset, len as usize),
        50..52 => Step::Close,
        52..55 => Step::Fsync(path),
        55..57 => Step::Sync,
        57..59 => Step::Checkpoint,
        59 => Step::Grow(1 + rng.below(100)),
        60 => Step::Trim,
        61..64 => Step::WriteBehind,
        64 => Step::ZeroKept(path, offset, len),
        65 => Step::Chown(path, 1000 + rng.below(2) as u32),
        66..70 => Step::Copy(path, rng.below(20_000), other, offset, len),
        _ => Step::Reopen,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::HashSet;

    #[test]
    fn sequences_follow_from_seed_and_number() {
        assert_eq!(steps(1, 0, 50).len(), 3);
        assert_eq!(steps(1, 1, 50).len(), 4);
        assert_eq!(
            steps(1, EXHAUSTIVE - 2, 50).len(),
            4 + EXHAUSTIVE as usize % 2
        );
        let some = |seed| -> Vec<_> { (0..20).map(|n| steps(seed, EXHAUSTIVE + n, 50)).collect() };
        assert_eq!(some(1), some(1));
        assert_ne!(some(1), some(2));
        assert!(some(1).iter().all(|steps| steps.len() <= 53));
    }

    #[test]
    fn no_two_of_some_pairs_begin_or_end_with_the_same_step() {
        let letters = ALPHABET.len() as u64;
        let some = (letters..).map(|tried| nth(tried, 119));
        let some = some.take_while(|&number| number < EXHAUSTIVE);
        let pairs: Vec<u64> = some.map(|number| number - letters).collect();
        let begins: HashSet<u64> = pairs.iter().map(|pair| pair / letters).collect();
        let ends: HashSet<u64> = pairs.iter().map(|pair| pair % letters).collect();
        assert!(pairs.len() > 30 && begins.len() == pairs.len() && ends.len() == pairs.len());
        assert!((0..EXHAUSTIVE).all(|tried| nth(tried, 1) == tried));
    }
}
