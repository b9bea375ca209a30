//! Any metadata block is flipped, zeroed, or replaced by another: nothing panics or hangs. What is
//! read is right or an error, the check finds the damage, and the repair leaves a sound volume.

use super::sample::{closed, crashed, open};
use super::snapshot::{Snapshot, differences, take, take_what_can_be_read};
use holdfast_device::{BlockDevice, Image, MemoryDevice};
use holdfast_testkit::device::{CrashStates, RecordingDevice};
use holdfast_volume::check::Report;
use holdfast_volume::superblock::{SLOTS, Superblock};
use holdfast_volume::{CheckOptions, check, repair};
use std::collections::BTreeSet;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::{Arc, mpsc};
use std::time::Duration;

const BLOCK: usize = 4096;
/// A case that takes longer hangs.
const PATIENCE: Duration = Duration::from_secs(120);

const CHECK: CheckOptions = CheckOptions {
    jobs: 1,
    findings_max: 1000,
};

/// The damage of a block.
#[derive(Clone, Copy, Debug)]
enum Damage {
    /// One bit.
    Flip(u64),
    Zero,
    /// Another block's bytes.
    Swap(u64),
}

/// A kind of metadata.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Sort {
    Superblock,
    Journal,
    Bitmap,
    /// A node at this block, of a tree of this kind.
    Node(u64, u8),
}

fn read(image: &Image, block: u64) -> [u8; BLOCK] {
    let mut bytes = [0; BLOCK];
    image.read(block * BLOCK as u64, &mut bytes);
    bytes
}

fn superblock(image: &Image) -> Superblock {
    let slots = SLOTS.map(|slot| Superblock::decode(&read(image, slot), slot));
    slots.into_iter().flatten().next().unwrap()
}

/// All metadata blocks, of this checkpoint or an earlier one.
fn metadata(image: &Image) -> Vec<(u64, Sort)> {
    let superblock = superblock(image);
    let journal = superblock.journal_start..superblock.journal_start + superblock.journal_blocks;
    let mut found = vec![(0, Sort::Superblock), (1, Sort::Superblock)];
    let mut node: Option<(u64, u64, u8)> = None;
    for block in 2..superblock.blocks {
        let bytes = read(image, block);
        if journal.contains(&block) {
            if bytes.iter().any(|byte| *byte != 0) {
                found.push((block, Sort::Journal));
            }
        } else if bytes.starts_with(b"HFgb") {
            found.push((block, Sort::Bitmap));
        } else if bytes.starts_with(b"HfTn") {
            node = Some((block, block + u64::from(bytes[6]), bytes[4]));
        }
        if let Some((start, end, kind)) = node
            && (start..end).contains(&block)
        {
            found.push((block, Sort::Node(start, kind)));
        }
    }
    found
}

/// A pseudo-random number.
fn mixed(seed: u64, more: u64) -> u64 {
    let value = (seed ^ more.wrapping_mul(0x9e37_79b9_7f4a_7c15)).wrapping_add(0x1234_5678_9abc);
    let value = (value ^ value >> 30).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    value ^ value >> 27
}

fn damaged(image: &Image, block: u64, damage: Damage) -> Arc<dyn BlockDevice> {
    let mut bytes = read(image, block);
    match damage {
        Damage::Flip(bit) => bytes[(bit / 8) as usize % BLOCK] ^= 1 << (bit % 8),
        Damage::Zero => bytes.fill(0),
        Damage::Swap(other) => bytes = read(image, other),
    }
    let device = MemoryDevice::from_image("damaged", image.clone());
    device.write(block * BLOCK as u64, &bytes).unwrap();
    Arc::new(device)
}

/// A snapshot, or the reason why there is none.
fn seen(device: &Arc<dyn BlockDevice>) -> Result<(Snapshot, usize), String> {
    let (store, fs) = open(device)?;
    let (snapshot, errors) = take_what_can_be_read(&fs);
    // The volume may have become read-only.
    let _ = fs.close();
    let _ = store.close();
    Ok((snapshot, errors.len()))
}

fn codes(report: &Report) -> BTreeSet<&'static str> {
    report
        .findings
        .iter()
        .map(|finding| finding.code())
        .collect()
}

/// One case. `whole`: the snapshot of the undamaged volume.
fn case(
    image: &Image,
    whole: &Snapshot,
    is_closed: bool,
    (block, sort): (u64, Sort),
    damage: Damage,
) -> Result<bool, String> {
    let device = damaged(image, block, damage);
    let report = check(&device, &CHECK, &|_, _, _| {});
    let fails = |why: &str| Err(format!("{why}; findings {:?}", codes(&report)));
    let copy: Arc<dyn BlockDevice> = damaged(image, block, damage);
    let is_same = match seen(&copy) {
        Err(text) => {
            let number = match sort {
                Sort::Node(start, _) => start,
                _ => block,
            };
            // The core reports only an errno: without a root there is nothing.
            let named = ["bitmap", "Structure needs cleaning"];
            let named =
                named.iter().any(|word| text.contains(word)) || text.contains(&number.to_string());
            if report.is_clean() || (!named && is_closed) {
                return fails(&format!("it does not open: {text}"));
            }
            false
        }
        Ok((found, errors)) => {
            // What can be read is right: damage of one node makes nothing up elsewhere.
            for (path, seen) in &found {
                let before = whole.get(path);
                if is_closed && before != Some(seen) {
                    let path = path.escape_ascii();
                    return fails(&format!("{path} was {before:?} and is {seen:?}"));
                }
            }
            errors == 0 && found == *whole
        }
    };
    if report.is_clean() {
        let may_differ = sort == Sort::Journal;
        return if is_same || may_differ {
            Ok(false)
        } else {
            fails("nothing was found")
        };
    }
    if let Sort::Node(start, _) = sort
        && is_closed
        && !report
            .findings
            .iter()
            .any(|finding| finding.block() == Some(start))
    {
        return fails("the node is not named");
    }
    repaired(&device, whole, is_closed, sort)?;
    Ok(true)
}

/// Repairs, and looks at the result.
fn repaired(
    device: &Arc<dyn BlockDevice>,
    whole: &Snapshot,
    is_closed: bool,
    sort: Sort,
) -> Result<(), String> {
    let outcome = repair(device, &CHECK, &|_, _, _| {}).map_err(|error| error.to_string())?;
    if !outcome.after.is_clean() {
        let left = &outcome.after.findings;
        return Err(format!(
            "repaired, it has {left:#?} after {:#?}",
            outcome.actions
        ));
    }
    let (store, fs) = open(device).map_err(|text| format!("repaired, it does not open: {text}"))?;
    let found = take(&fs).map_err(|error| format!("repaired, it cannot be read: {error}"))?;
    drop((fs, store));
    if !is_closed {
        return Ok(());
    }
    let kept = |want: fn(&[u8], &[u8]) -> bool| {
        whole
            .values()
            .filter(|seen| !seen.bytes.is_empty())
            .all(|seen| {
                let mut all = found.values().filter(|found| found.kind == seen.kind);
                all.any(|found| want(&found.bytes, &seen.bytes))
            })
    };
    let is_kept = match sort {
        // Reconstructed inodes have whole blocks; all names are there, except for those of devices.
        Sort::Node(_, 1) => kept(<[u8]>::starts_with),
        Sort::Node(_, 2) => kept(|found, seen| found == seen),
        Sort::Node(_, 4) => whole.keys().all(|path| found.contains_key(path)),
        _ => differences(whole, &found).is_empty(),
    };
    if is_kept {
        return Ok(());
    }
    let differences = differences(whole, &found);
    Err(format!("repaired, it has lost too much: {differences:#?}"))
}

/// Runs `case` with a time limit, and catches panics.
fn patiently<T: Send + 'static>(
    work: impl FnOnce() -> Result<T, String> + Send + 'static,
) -> Result<T, String> {
    let (done, wait) = mpsc::channel();
    std::thread::spawn(move || {
        let outcome = catch_unwind(AssertUnwindSafe(work));
        // The receiver is gone if the case took too long.
        let _ = done.send(outcome.unwrap_or_else(|_| Err("it panicked".to_owned())));
    });
    let waited = wait.recv_timeout(PATIENCE);
    waited.unwrap_or_else(|_| Err("it hangs".to_owned()))
}

fn every_block(image: &Image, is_closed: bool, seed: u64) {
    let whole = {
        let device: Arc<dyn BlockDevice> =
            Arc::new(MemoryDevice::from_image("whole", image.clone()));
        let (_store, fs) = open(&device).unwrap();
        take(&fs).unwrap()
    };
    let blocks = metadata(image);
    let mut found = BTreeSet::new();
    for (index, (block, sort)) in blocks.iter().enumerate() {
        let bit = mixed(seed, *block) % (BLOCK as u64 * 8);
        let other = blocks[(index + 1) % blocks.len()].0;
        let far = blocks[mixed(seed, *block) as usize % blocks.len()].0;
        for damage in [
            // Where headers are, and anywhere.
            Damage::Flip(bit % 800),
            Damage::Flip(bit),
            Damage::Zero,
            Damage::Swap(other),
            Damage::Swap(far),
        ] {
            let (image, whole, at) = (image.clone(), whole.clone(), (*block, *sort));
            let outcome = patiently(move || case(&image, &whole, is_closed, at, damage));
            match outcome {
                Ok(true) => drop(found.insert(*block)),
                Ok(false) => {}
                Err(text) => panic!("seed {seed}, block {block}, {sort:?}, {damage:?}: {text}"),
            }
        }
    }
    assert!(
        found.len() > 20,
        "damage was found in {} blocks",
        found.len()
    );
}

#[test]
fn damage_of_any_block_of_a_closed_volume_is_found_and_repaired() {
    every_block(&closed().image(), true, 1);
}

#[test]
fn damage_of_any_block_of_a_crashed_volume_is_found_and_repaired() {
    every_block(&crashed().image(), false, 2);
}

#[test]
fn a_crash_during_a_repair_leaves_a_volume_that_can_be_repaired() {
    let image = closed().image();
    let leaves = metadata(&image);
    let whole = {
        let device: Arc<dyn BlockDevice> =
            Arc::new(MemoryDevice::from_image("whole", image.clone()));
        let (_store, fs) = open(&device).unwrap();
        take(&fs).unwrap().len()
    };
    let of = |kind| {
        let mut nodes = leaves
            .iter()
            .filter(|(block, sort)| *sort == Sort::Node(*block, kind));
        nodes.next_back().unwrap().0
    };
    for block in [of(1), of(2), of(4)] {
        let recorded = |device: &Arc<RecordingDevice>| {
            let device: Arc<dyn BlockDevice> = device.clone();
            device.write(block * BLOCK as u64, &[0; BLOCK]).unwrap();
            device.flush().unwrap();
            repair(&device, &CHECK, &|_, _, _| {}).unwrap()
        };
        let device = Arc::new(RecordingDevice::from_image(image.clone()));
        let outcome = recorded(&device);
        assert!(outcome.after.is_clean() && !outcome.before.is_clean());
        let states = CrashStates::new(device.history(), block);
        let wanted = (states.systematic() + 20).min(150) as usize;
        for state in states.iter().take(wanted) {
            let shown = state.to_string();
            let device: Arc<dyn BlockDevice> =
                Arc::new(MemoryDevice::from_image("crashed", state.image));
            let again = repair(&device, &CHECK, &|_, _, _| {}).unwrap();
            assert!(
                again.after.is_clean(),
                "{shown}: {:?}",
                again.after.findings
            );
            let (_store, fs) = open(&device).unwrap();
            let found = take(&fs).unwrap();
            // Everything is still there somewhere, except perhaps for the two devices.
            assert!(
                found.len() + 2 >= whole,
                "{shown}: {} of {whole}",
                found.len()
            );
        }
    }
}
