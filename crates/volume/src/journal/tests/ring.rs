//! Room, wrapping, trimming, and where a replay begins.

use super::{all, creation, formatted, fresh, region, reopened, shown};
use crate::journal::{Error, Journal, Map, Position, Reason, Record, Region};
use holdfast_core::store::{Change, Lsn};
use holdfast_device::{BlockDevice, MemoryDevice};
use holdfast_types::Ino;
use std::sync::Arc;

#[test]
fn the_ring_goes_round_for_ever_if_it_is_trimmed() {
    let (device, mut journal) = fresh(64);
    let mut position = Position::default();
    let mut expected = Vec::new();
    for round in 0..300_u64 {
        let data = vec![round as u8; (round as usize * 977) % 50_000];
        let batch = [Change::Write {
            ino: Ino(round),
            offset: 0,
            data: &data,
        }];
        let lsn = journal.append(1, &batch).expect("room");
        expected.push((lsn, 1, shown(&batch)));
        journal.commit(Some(lsn)).expect("a device that works");
        if round % 3 == 2 {
            position = journal.cut();
            expected.clear();
            journal.trim(position);
            assert_eq!(journal.used(), 0);
        }
        if round % 7 == 0 {
            let seen;
            (journal, seen) = reopened(&device, 64, position);
            assert_eq!(seen, expected, "round {round}");
        }
    }
    assert!(position.block > 10 * 64, "it went round");
    assert_eq!(Position::from_bytes(position.to_bytes()), position);
}

#[test]
fn a_full_journal_takes_nothing_until_it_is_trimmed() {
    let (device, journal) = fresh(64);
    let data = [1; 20_000];
    let batch = [Change::Write {
        ino: Ino(1),
        offset: 0,
        data: &data,
    }];
    let mut expected = Vec::new();
    let full = loop {
        match journal.append(1, &batch) {
            Ok(lsn) => expected.push((lsn, 1, shown(&batch))),
            Err(error) => break error,
        }
    };
    assert_eq!(full, Error::Full);
    assert!(expected.len() > 8 && journal.used() <= journal.capacity());
    journal.commit(None).expect("what was appended fits");
    assert_eq!(journal.append(1, &batch), Err(Error::Full));
    assert_eq!(reopened(&device, 64, Position::default()).1, expected);
    journal.trim(journal.cut());
    assert_eq!(journal.used(), 0);
    journal.append(1, &batch).expect("room again");
}

#[test]
fn a_checkpoint_without_a_commit_makes_room() {
    let (device, journal) = fresh(64);
    let first = journal.append(1, &creation(0, b"folded")).expect("room");
    let position = journal.cut();
    let later = creation(1, b"kept");
    let second = journal.append(1, &later).expect("room");
    journal.trim(position);
    assert!(journal.durable() >= first && journal.durable() < second);
    journal.commit(None).expect("a device that works");
    let (_, seen) = reopened(&device, 64, position);
    assert_eq!(seen, [(second, 1, shown(&later))]);
}

#[test]
fn a_batch_of_many_blocks_is_one() {
    let (device, journal) = fresh(256);
    let data: Vec<u8> = (0..700_000_u32).map(|index| (index % 251) as u8).collect();
    let mut expected = Vec::new();
    for index in 0..3 {
        let (small, large) = (
            creation(index, b"small"),
            [Change::Write {
                ino: Ino(1),
                offset: index,
                data: &data[..(index as usize + 1) * 65_448 - 40],
            }],
        );
        for batch in [&small[..], &large[..]] {
            let lsn = journal.append(1, batch).expect("room");
            expected.push((lsn, 1, shown(batch)));
        }
    }
    journal.commit(None).expect("a device that works");
    assert_eq!(reopened(&device, 256, Position::default()).1, expected);
    let most = 256 - 32;
    let data = vec![0; most * 4096];
    let batch = [Change::Write {
        ino: Ino(1),
        offset: 0,
        data: &data,
    }];
    let error = journal.append(1, &batch);
    assert!(matches!(error, Err(Error::TooLarge { .. })), "{error:?}");
}

#[test]
fn empty_batches_and_empty_commits_write_nothing() {
    let (device, journal) = fresh(64);
    let lsn = journal
        .append::<Record<'_>>(1, &[])
        .expect("nothing to refuse");
    journal.commit(Some(lsn)).expect("nothing to fail");
    assert!(journal.durable() >= lsn);
    assert_eq!(device.log.lock().len(), 0);
}

#[test]
fn maps_follow_the_batches_of_their_cut() {
    let (device, journal) = fresh(64);
    let map = Map {
        ino: Ino(9),
        offset: 3,
        start: 1 << 40,
        blocks: 17,
        generation: 4,
        unwritten: false,
    };
    let batch = creation(0, b"file");
    let lsn = journal.append(1, &batch).expect("room");
    super::commit_with(&journal, lsn, |group| {
        super::commit::append_maps(group, &[map, map])
    })
    .expect("a device that works");
    let cut = journal.durable();
    let map = vec![format!("{:?}", Record::Map(map))];
    let expected = [
        (lsn, 1, shown(&batch)),
        (cut, 1, map.clone()),
        (cut, 1, map),
    ];
    assert_eq!(reopened(&device, 64, Position::default()).1, expected);
}

#[test]
fn another_volumes_journal_is_none_of_ours() {
    let (device, journal) = fresh(64);
    journal.append(1, &creation(0, b"theirs")).expect("room");
    journal.commit(None).expect("a device that works");
    let ours = Region {
        volume: 0x0b5e55,
        ..region(64)
    };
    let mut replay = Journal::open(device, ours, Position::default()).expect("a region");
    assert_eq!(all(&mut replay), Ok(vec![]));
}

#[test]
fn a_region_must_be_long_enough_and_on_the_device() {
    let device = Arc::new(MemoryDevice::new(100 * 4096));
    for (start, blocks) in [(0, 63), (37, 64), (u64::MAX, 64), (0, u64::MAX)] {
        let region = Region {
            start,
            blocks,
            volume: 1,
        };
        let error = Journal::format(device.clone(), region);
        assert!(matches!(error, Err(Error::Region { .. })), "{error:?}");
    }
}

#[test]
fn a_hole_in_what_was_committed_is_an_error() {
    let device = formatted(64);
    let (journal, _) = reopened(&device, 64, Position::default());
    for index in 0..5 {
        journal.append(1, &creation(index, b"n")).expect("room");
        journal.commit(None).expect("a device that works");
    }
    let whole = device.inner.image();
    for damaged in 0..4 {
        device
            .inner
            .write((3 + damaged) * 4096 + 512, &[0xee; 512])
            .expect("a block of the device");
        let mut byte = [0; 4096];
        device.read((3 + damaged) * 4096, &mut byte).expect("same");
        // The second sector of a short frame is only padding: damage its records.
        byte[90] ^= 1;
        device
            .inner
            .write((3 + damaged) * 4096, &byte)
            .expect("same");
        let mut replay =
            Journal::open(device.clone(), region(64), Position::default()).expect("a region");
        let corrupt = Error::Corrupt {
            block: 3 + damaged,
            reason: Reason::Hole,
        };
        assert_eq!(all(&mut replay), Err(corrupt));
        let mut bytes = vec![0; 64 * 4096];
        whole.read(3 * 4096, &mut bytes);
        device.inner.write(3 * 4096, &bytes).expect("same");
    }
    assert_eq!(
        reopened(&device, 64, Position::default()).1.len(),
        5,
        "all is back"
    );
    assert!(journal.durable() > Lsn(0));
}
