//! Where files lie: few extents for random writes, and changes of extents that move no bytes.

mod groups;
mod rewrites;
mod trimmed;

use holdfast_core::Store;
use holdfast_core::store::{Behind, Change, InodeRecord, Lsn, StoredSpace};
use holdfast_device::{BlockDevice, MemoryDevice, Result as DeviceResult};
use holdfast_types::{FileFlags, FileType, Ino, Time};
use holdfast_volume::{BLOCK, Error, FormatOptions, OpenOptions, VolumeStore, format};
use proptest::prelude::*;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

const BLOCK_LEN: u64 = BLOCK as u64;
const MIB: u64 = 1 << 20;
const OPTIONS: OpenOptions = OpenOptions {
    cache: 1 << 20,
    commit_every: None,
    ..OpenOptions::DEFAULT
};

/// A device that counts its transfers.
#[derive(Debug)]
struct Counting {
    below: MemoryDevice,
    alignment: u64,
    read: AtomicU64,
    written: AtomicU64,
}

impl Counting {
    fn new(size: u64) -> Self {
        Self {
            below: MemoryDevice::new(size),
            alignment: 512,
            read: AtomicU64::new(0),
            written: AtomicU64::new(0),
        }
    }

    fn moved(&self) -> u64 {
        self.read.load(Ordering::Relaxed) + self.written.load(Ordering::Relaxed)
    }
}

impl BlockDevice for Counting {
    holdfast_device::pass_on!(below: size, flush, discard, resize);

    fn describe(&self) -> String {
        "a coarse device".to_owned()
    }

    fn alignment(&self) -> u64 {
        self.alignment
    }

    fn read(&self, offset: u64, buf: &mut [u8]) -> DeviceResult<()> {
        self.read.fetch_add(buf.len() as u64, Ordering::Relaxed);
        self.below.read(offset, buf)
    }

    fn write(&self, offset: u64, bytes: &[u8]) -> DeviceResult<()> {
        assert!(offset.is_multiple_of(self.alignment));
        assert!((bytes.len() as u64).is_multiple_of(self.alignment));
        self.written
            .fetch_add(bytes.len() as u64, Ordering::Relaxed);
        self.below.write(offset, bytes)
    }
}

fn open(device: &Arc<Counting>) -> VolumeStore {
    let device: Arc<dyn BlockDevice> = device.clone();
    VolumeStore::open(device, &OPTIONS).expect("opened")
}

fn volume(size: u64, group_blocks: Option<u64>) -> (Arc<Counting>, VolumeStore) {
    let device = Arc::new(Counting::new(size));
    let below: Arc<dyn BlockDevice> = device.clone();
    let options = FormatOptions {
        seed: Some(3),
        group_blocks,
        ..FormatOptions::default()
    };
    format(&below, &options).expect("formatted");
    let store = open(&device);
    (device, store)
}

/// A file without a name, which suffices for a store.
fn inode(ino: Ino, size: u64) -> InodeRecord {
    let now = Time::default();
    InodeRecord {
        ino,
        kind: FileType::Regular,
        perm: 0o600,
        nlink: 1,
        uid: 0,
        gid: 0,
        rdev: 0,
        size,
        atime: now,
        mtime: now,
        ctime: now,
        btime: now,
        parent: Ino(1),
        xattrs: false,
        space: StoredSpace::UNKNOWN,
        flags: FileFlags::empty(),
        project: 0,
    }
}

fn create(store: &VolumeStore, ino: Ino) {
    let inode = inode(ino, 0);
    let target = None;
    let create = Change::Create { inode, target };
    store.change(&[create]).expect("created");
}

fn write(store: &VolumeStore, ino: Ino, size: u64, offset: u64, data: &[u8]) -> Lsn {
    let attributes = Change::Attributes {
        inode: inode(ino, size.max(offset + data.len() as u64)),
    };
    let write = Change::Write { ino, offset, data };
    store.change(&[attributes, write]).expect("written")
}

fn pieces(store: &VolumeStore, ino: Ino) -> usize {
    store.extents(ino).expect("told").len()
}

#[test]
fn few_bytes_of_a_file_that_attributes_say_is_longer_are_written() {
    let (device, store) = volume(64 * MIB, None);
    create(&store, INO);
    write(&store, INO, 0, 0, &[1; 100]);
    store.checkpoint().expect("folded");
    let size = 5 * BLOCK_LEN;
    let longer = Change::Attributes {
        inode: inode(INO, size),
    };
    store.change(&[longer]).expect("told");
    write(&store, INO, size, 3 * BLOCK_LEN, &[2; BLOCK]);
    store.checkpoint().expect("folded");
    store.close().expect("closed");
    let store = open(&device);
    let mut found = vec![9; size as usize];
    store.read_data(INO, 0, &mut found).expect("read");
    let mut expected = vec![0; size as usize];
    expected[..100].fill(1);
    expected[3 * BLOCK..4 * BLOCK].fill(2);
    assert!(found == expected);
}

#[test]
fn a_file_that_is_filled_in_random_order_lies_in_few_pieces() {
    let (device, store) = volume(64 * MIB, None);
    create(&store, Ino(9));
    let blocks = 16 * MIB / BLOCK_LEN;
    let size = 16 * MIB;
    // An odd factor meets every block once.
    for number in 0..blocks {
        let block = (number * 1237 + 11) % blocks;
        write(&store, Ino(9), size, block * BLOCK_LEN, &[7; 1024]);
        if number % 400 == 0 {
            store.commit(None).expect("committed");
        }
    }
    store.checkpoint().expect("folded");
    assert!(
        pieces(&store, Ino(9)) <= 8,
        "{} pieces",
        pieces(&store, Ino(9))
    );
    drop(store);
    let store = open(&device);
    assert!(
        pieces(&store, Ino(9)) <= 8,
        "{} pieces",
        pieces(&store, Ino(9))
    );
}

#[test]
fn files_that_grow_in_turns_lie_in_few_pieces_each() {
    let (_, store) = volume(64 * MIB, None);
    let files = [Ino(9), Ino(10), Ino(11)];
    for ino in files {
        create(&store, ino);
    }
    for at in 0..256 {
        for ino in files {
            let offset = at * 4 * BLOCK_LEN;
            write(&store, ino, 0, offset, &[5; 4 * BLOCK]);
            store.commit(None).expect("committed");
        }
    }
    for ino in files {
        // The first ones as for a small file, and one for each growth of the window.
        assert!(pieces(&store, ino) <= 16, "{} pieces", pieces(&store, ino));
    }
}

#[test]
fn what_moves_places_moves_no_bytes() {
    let (device, store) = volume(64 * MIB, None);
    create(&store, Ino(9));
    let (ino, size) = (Ino(9), 16 * MIB);
    write(&store, ino, 0, 0, &vec![3; size as usize]);
    store.commit(None).expect("committed");
    let before = device.moved();
    let (offset, len) = (MIB, 4 * BLOCK_LEN);
    for change in [
        Change::Collapse { ino, offset, len },
        Change::Insert { ino, offset, len },
        Change::Zero {
            ino,
            offset: 2 * MIB,
            len: 8 * MIB,
            keep: false,
        },
        Change::Zero {
            ino,
            offset: 11 * MIB,
            len: 2 * MIB,
            keep: true,
        },
        Change::Allocate {
            ino,
            offset: 0,
            len: 5 * MIB,
        },
    ] {
        store.change(&[change]).expect("changed");
        store.commit(None).expect("committed");
    }
    let moved = device.moved() - before;
    assert!(moved < 256 << 10, "{moved} bytes moved");
    let mut read = vec![0; 4 * BLOCK];
    store
        .read_data(ino, MIB - BLOCK_LEN, &mut read)
        .expect("read");
    assert_eq!(read[..BLOCK], [3; BLOCK], "before the hole");
    assert_eq!(read[BLOCK..], [0; 3 * BLOCK], "the hole");
}

#[test]
fn a_part_of_a_block_that_has_a_place_is_written_without_reading_it() {
    let (device, store) = volume(64 * MIB, None);
    create(&store, Ino(9));
    write(&store, Ino(9), 0, 0, &vec![3; 64 * BLOCK]);
    store.commit(None).expect("committed");
    let (before, read) = (device.moved(), device.read.load(Ordering::Relaxed));
    for block in 0..64 {
        write(
            &store,
            Ino(9),
            64 * BLOCK_LEN,
            block * BLOCK_LEN + 1024,
            &[4; 1024],
        );
    }
    store.commit(None).expect("committed");
    assert_eq!(device.read.load(Ordering::Relaxed), read);
    assert!(device.moved() - before < 128 << 10);
    let mut page = [0; BLOCK];
    store
        .read_data(Ino(9), 5 * BLOCK_LEN, &mut page)
        .expect("read");
    assert_eq!(
        (page[1023], page[1024], page[2047], page[2048]),
        (3, 4, 4, 3)
    );
}

#[test]
fn a_device_that_moves_more_than_a_block_at_once_is_refused_by_name() {
    let (device, store) = volume(8 * MIB, None);
    store.close().expect("closed");
    drop(store);
    let coarse: Arc<dyn BlockDevice> = Arc::new(Counting {
        alignment: 8192,
        ..Arc::into_inner(device).expect("nobody else has it")
    });
    let opened = VolumeStore::open(Arc::clone(&coarse), &OPTIONS).map(drop);
    let formatted = format(&coarse, &FormatOptions::default());
    for refused in [opened, formatted] {
        let error = refused.expect_err("refused");
        assert!(matches!(error, Error::Geometry(_)), "{error}");
        assert!(error.to_string().contains("a coarse device"), "{error}");
    }
}

/// The first byte of the model, which covers the blocks around the 2^32nd.
const BASE: u64 = ((1 << 32) - 24) * BLOCK_LEN;
const BLOCKS: u64 = 48;

#[derive(Clone, Debug)]
enum Step {
    Write { at: u64, len: u64, byte: u8 },
    Zero { at: u64, len: u64, keep: bool },
    Allocate { at: u64, len: u64 },
    Collapse { block: u64, blocks: u64 },
    Insert { block: u64, blocks: u64 },
    Truncate { at: u64 },
    Commit,
    Checkpoint,
    Crash,
}

fn step() -> impl Strategy<Value = Step> {
    let at = 0..BLOCKS * BLOCK_LEN;
    let len = prop_oneof![
        1..3 * BLOCK_LEN,
        (1..12_u64).prop_map(|blocks| blocks * 1024)
    ];
    let sectors = (0..BLOCKS * 8).prop_map(|sector| sector * 512);
    let at = prop_oneof![at, sectors];
    let (block, blocks) = (0..BLOCKS, 1..6_u64);
    prop_oneof![
        6 => (at.clone(), len.clone(), 1..=u8::MAX)
            .prop_map(|(at, len, byte)| Step::Write { at, len, byte }),
        2 => (at.clone(), len.clone(), any::<bool>())
            .prop_map(|(at, len, keep)| Step::Zero { at, len, keep }),
        1 => (at.clone(), len).prop_map(|(at, len)| Step::Allocate { at, len }),
        1 => (block.clone(), blocks.clone())
            .prop_map(|(block, blocks)| Step::Collapse { block, blocks }),
        1 => (block, blocks).prop_map(|(block, blocks)| Step::Insert { block, blocks }),
        1 => at.prop_map(|at| Step::Truncate { at }),
        2 => Just(Step::Commit),
        1 => Just(Step::Checkpoint),
        1 => Just(Step::Crash),
    ]
}

/// The file from the base on, as bytes.
#[derive(Default)]
struct Model(Vec<u8>);

impl Model {
    fn size(&self) -> u64 {
        match self.0.len() as u64 {
            0 => 0,
            len => BASE + len,
        }
    }

    fn grow(&mut self, len: usize) {
        self.0.resize(self.0.len().max(len), 0);
    }
}

const INO: Ino = Ino(9);

/// Performs a step on the file and on the model, if the core would allow it.
fn perform(store: &VolumeStore, model: &mut Model, step: &Step) {
    let known = model.0.len() as u64;
    let attributes = |size| Change::Attributes {
        inode: inode(INO, size),
    };
    let ino = INO;
    match *step {
        Step::Write { at, len, byte } => {
            model.grow((at + len) as usize);
            model.0[at as usize..(at + len) as usize].fill(byte);
            write(
                store,
                INO,
                model.size(),
                BASE + at,
                &vec![byte; len as usize],
            );
        }
        Step::Zero { at, len, keep } if at < known => {
            let end = known.min(at + len);
            model.0[at as usize..end as usize].fill(0);
            let offset = BASE + at;
            let zero = Change::Zero {
                ino,
                offset,
                len,
                keep,
            };
            store
                .change(&[attributes(model.size()), zero])
                .expect("zeroed");
        }
        Step::Allocate { at, len } => {
            let offset = BASE + at;
            store
                .change(&[Change::Allocate { ino, offset, len }])
                .expect("allocated");
        }
        Step::Truncate { at } if at > 0 => {
            model.0.resize(at as usize, 0);
            let size = model.size();
            let truncate = Change::Truncate { ino, size };
            store
                .change(&[attributes(size), truncate])
                .expect("truncated");
        }
        _ => shift(store, model, step),
    }
}

/// As [`perform`], for steps that shift what follows.
fn shift(store: &VolumeStore, model: &mut Model, step: &Step) {
    let known = model.0.len() as u64;
    let attributes = |size| Change::Attributes {
        inode: inode(INO, size),
    };
    let ino = INO;
    match *step {
        Step::Collapse { block, blocks } if (block + blocks) * BLOCK_LEN < known => {
            let (at, len) = (block * BLOCK_LEN, blocks * BLOCK_LEN);
            model.0.drain(at as usize..(at + len) as usize);
            let offset = BASE + at;
            let collapse = Change::Collapse { ino, offset, len };
            store
                .change(&[attributes(model.size()), collapse])
                .expect("collapsed");
        }
        Step::Insert { block, blocks }
            if block * BLOCK_LEN < known && known < 4 * BLOCKS * BLOCK_LEN =>
        {
            let (at, len) = (block * BLOCK_LEN, blocks * BLOCK_LEN);
            let zeros = std::iter::repeat_n(0, len as usize);
            model.0.splice(at as usize..at as usize, zeros);
            let offset = BASE + at;
            let insert = Change::Insert { ino, offset, len };
            store
                .change(&[attributes(model.size()), insert])
                .expect("inserted");
        }
        _ => {}
    }
}

/// The first written range at or after an offset: start and length.
fn next_data(store: &VolumeStore, ino: Ino, offset: u64) -> Option<(u64, u64)> {
    let mut at = offset;
    while let Some(run) = store.next_space(ino, at).expect("told") {
        if run.written {
            return Some((run.start, run.len));
        }
        at = run.start + run.len;
    }
    None
}

fn compare(store: &VolumeStore, model: &Model) -> Result<(), TestCaseError> {
    let mut bytes = vec![0xee; model.0.len()];
    store.read_data(INO, BASE, &mut bytes).expect("read");
    prop_assert!(bytes == model.0, "other bytes");
    // What is no data reads as zeros.
    let mut at = BASE;
    while let Some((start, len)) = next_data(store, INO, at) {
        let hole = (at - BASE) as usize..(start - BASE) as usize;
        prop_assert!(
            model.0[hole].iter().all(|&byte| byte == 0),
            "data in a hole"
        );
        at = start + len;
    }
    let rest = model.0.get((at - BASE) as usize..).unwrap_or_default();
    prop_assert!(rest.iter().all(|&byte| byte == 0), "data in the last hole");
    let mut extents = store.extents(INO).expect("told");
    let apart = |pair: &[holdfast_volume::FileExtent]| {
        pair[0].logical + pair[0].extent.length <= pair[1].logical
    };
    prop_assert!(extents.windows(2).all(apart), "they overlap in the file");
    extents.sort_unstable_by_key(|one| one.extent);
    let apart = |pair: &[holdfast_volume::FileExtent]| pair[0].extent.end() <= pair[1].extent.start;
    prop_assert!(extents.windows(2).all(apart), "they overlap on the volume");
    Ok(())
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 96, ..ProptestConfig::default() })]

    /// Groups of 16 blocks: preallocations are short and end with their groups.
    #[test]
    fn a_file_around_its_2_to_the_32nd_block_is_what_a_model_says_in_tiny_groups(
        steps in prop::collection::vec(step(), 1..60),
        group_blocks in prop_oneof![Just(16_u64), Just(64), Just(4096)],
    ) {
        let (device, mut store) = volume(8 * MIB, Some(group_blocks));
        create(&store, INO);
        let mut model = Model::default();
        for step in &steps {
            match step {
                Step::Commit => store.commit(None).expect("committed"),
                Step::Checkpoint => store.checkpoint().expect("folded"),
                Step::Crash => {
                    store.commit(None).expect("committed");
                    drop(store);
                    store = open(&device);
                }
                step => perform(&store, &mut model, step),
            }
            compare(&store, &model)?;
        }
        store.close().expect("closed");
        drop(store);
        compare(&open(&device), &model)?;
    }
}

#[test]
fn a_file_in_many_pieces_is_read_piece_by_piece() {
    let (device, store) = volume(256 * MIB, None);
    let (ino, pieces) = (Ino(17), 2000_u64);
    create(&store, ino);
    let bytes = |piece: u64| [(piece % 251) as u8 + 1; BLOCK];
    for piece in 0..pieces {
        let (offset, end) = (piece * 2 * BLOCK_LEN, (piece * 2 + 1) * BLOCK_LEN);
        write(&store, ino, end, offset, &bytes(piece));
    }
    store.close().unwrap();
    drop(store);

    let store = open(&device);
    let before = device.moved();
    let mut offset = 0;
    for piece in 0..pieces {
        let (start, len) = next_data(&store, ino, offset).unwrap();
        assert_eq!((start, len), (piece * 2 * BLOCK_LEN, BLOCK_LEN));
        let mut page = [0; BLOCK];
        store.read_data(ino, start, &mut page).unwrap();
        assert!(page == bytes(piece), "{piece}");
        offset = start + len;
    }
    assert_eq!(next_data(&store, ino, offset), None);
    let moved = device.moved() - before;
    assert!(moved < 2 * pieces * BLOCK_LEN, "{moved} bytes were read");
    // From within a hole, from within an extent, and over several of both.
    assert_eq!(next_data(&store, ino, 5000), Some((8192, BLOCK_LEN)));
    assert_eq!(next_data(&store, ino, 8200), Some((8200, BLOCK_LEN - 8)));
    let mut row = vec![9; 5 * BLOCK];
    store.read_data(ino, 8192 - 100, &mut row).unwrap();
    for (at, byte) in row.iter().enumerate() {
        let at = 8192 - 100 + at as u64;
        let piece = at / BLOCK_LEN;
        let expected = if piece.is_multiple_of(2) {
            bytes(piece / 2)[0]
        } else {
            0
        };
        assert_eq!(*byte, expected, "{at}");
    }
}
