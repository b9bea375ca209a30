use super::Sweep;
use crate::memory::{Database, Fault, MemoryObjects};
use crate::meta::{
    Beat, Change, Content, Edit, Flush, Meta, NewInode, Pages, Request, Settings, Size,
};
use crate::numbers::Numbers;
use crate::objects::Objects as _;
use holdfast_types::{Errno, FileType, Ino, Time};
use std::sync::Arc;
use std::time::Duration;

const HOUR: Duration = Duration::from_secs(3600);

struct Swept {
    database: Arc<Database>,
    objects: Arc<MemoryObjects>,
    meta: Arc<dyn Meta>,
    sweep: Sweep,
}

impl Swept {
    fn new() -> Self {
        let database = Database::new(Settings::default());
        database.stop_clock(Time::new(1000, 0));
        let (objects, meta) = (MemoryObjects::new(), database.session());
        let numbers = Numbers::new(Arc::clone(&meta));
        let of = (Arc::clone(&meta), objects.clone());
        let sweep = Sweep::start(of.0, of.1, numbers).unwrap();
        Self {
            database,
            objects,
            meta,
            sweep,
        }
    }

    /// A file with a body, in which every second page is a hole.
    fn file(&self, name: &str, byte: u8) -> Ino {
        let ino = Ino(self.meta.deal(1).unwrap().start);
        let new = NewInode::new(ino, FileType::Regular);
        let (dir, name) = (Ino::ROOT, name.as_bytes().into());
        self.meta.perform(Request::Make { dir, name, new }).unwrap();
        self.flush(ino, byte);
        ino
    }

    fn flush(&self, ino: Ino, byte: u8) {
        let pages = [byte, 0, byte].map(|byte| vec![byte; 4096]).concat();
        let bytes = pages[..8192 + 700].into();
        let flush = Flush {
            ino,
            generation: self.meta.content(ino).unwrap().0,
            edit: Edit::Replace {
                content: Content::Body {
                    bytes,
                    pages: Pages(0b101),
                },
                objects: Vec::new(),
            },
            size: Some(Size::AtLeast(8192 + 700)),
            changed: Some(Time::new(1000, 0)),
            change: Change::default(),
        };
        self.meta.perform(Request::Flush(flush)).unwrap();
    }

    fn pass(&self, time: Duration) {
        self.database.pass(time);
        // The session stays.
        self.meta.beat(&Beat::default()).unwrap();
    }

    fn round(&self) {
        self.sweep.round().unwrap();
    }
}

#[test]
fn bodies_move_into_one_pack_and_read_the_same() {
    let swept = Swept::new();
    let files = [1, 2].map(|byte| swept.file(&byte.to_string(), byte));
    swept.round();
    assert!(swept.objects.numbers().is_empty(), "they are new");
    swept.pass(Duration::from_secs(11));
    let before = swept.meta.load(&files, &[]).unwrap();
    swept.round();
    assert_eq!(swept.objects.numbers().len(), 1);
    for (byte, (ino, before)) in [1, 2].into_iter().zip(files.iter().zip(before)) {
        let after = swept.meta.load(&[*ino], &[]).unwrap().remove(0);
        assert_eq!(after.record, before.record);
        let Content::Extents(extents) = swept.meta.content(*ino).unwrap().1 else {
            panic!("it is a body still");
        };
        let places: Vec<_> = extents.iter().map(|it| (it.offset, it.len)).collect();
        assert_eq!(places, [(0, 4096), (8192, 4096)]);
        for (extent, len) in extents.iter().zip([4096, 700]) {
            let range = extent.object_offset..extent.object_offset + extent.len;
            let read = swept
                .objects
                .get(extent.object, &[range.clone(), range])
                .unwrap();
            let mut expected = vec![byte; len];
            expected.resize(4096, 0);
            assert!(*read[0] == expected);
        }
    }
    assert_eq!(swept.meta.usage().unwrap().staged, 0);
    assert_eq!(swept.meta.check(false), Ok(vec![]));
}

#[test]
fn a_failing_store_of_objects_changes_nothing() {
    let swept = Swept::new();
    let ino = swept.file("file", 1);
    swept.pass(Duration::from_secs(11));
    let before = swept.meta.content(ino);
    swept.objects.inject(Fault::Put(1));
    assert_eq!(swept.sweep.round(), Err(Errno::EIO));
    assert_eq!(swept.meta.content(ino), before);
    swept.round();
    assert_eq!(swept.objects.numbers().len(), 1);
}

#[test]
fn unmapped_objects_are_deleted_when_they_were_kept_long_enough() {
    let swept = Swept::new();
    let ino = swept.file("file", 1);
    swept.pass(Duration::from_secs(11));
    swept.round();
    let name = b"file"[..].into();
    let remove = Request::Remove {
        dir: Ino::ROOT,
        name,
        directory: false,
    };
    swept.meta.perform(remove).unwrap();
    let gone = swept.meta.beat(&Beat::default()).unwrap();
    assert_eq!(gone.gone, [ino]);
    let looked_at = gone.gone_upto;
    let beat = Beat {
        looked_at,
        ..Beat::default()
    };
    swept.meta.beat(&beat).unwrap();
    swept.round();
    assert_eq!(swept.meta.usage().unwrap().inodes, 1);
    assert_eq!(swept.objects.numbers().len(), 1);
    swept.pass(HOUR + Duration::from_secs(1));
    swept.round();
    assert!(swept.objects.numbers().is_empty());
    assert_eq!(swept.meta.usage().unwrap().objects, 0);
}

#[test]
fn objects_that_an_ended_session_never_mapped_are_deleted() {
    let swept = Swept::new();
    let other = swept.database.session();
    let lost = other.deal(1).unwrap().start;
    swept.objects.put(lost, vec![1]).unwrap();
    swept.round();
    assert_eq!(swept.objects.numbers(), [lost]);
    swept.database.pass(Duration::from_secs(59));
    swept.meta.beat(&Beat::default()).unwrap();
    swept.database.pass(Duration::from_secs(2));
    swept.round();
    assert!(swept.objects.numbers().is_empty());
    assert_eq!(other.usage(), Err(Errno::ESTALE));
}
