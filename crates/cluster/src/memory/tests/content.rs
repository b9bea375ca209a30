use super::{ROOT, Two, beat, touched};
use crate::meta::Request;
use crate::meta::{Answer, Change, Content, Edit, Extent, Flush, Pages, Size, Usage};
use holdfast_core::store::{StoredSpace, Version};
use holdfast_types::{Errno, Ino, Result, Time};
use std::time::Duration;

const NOW: Time = Time::new(2000, 0);

fn body(bytes: &[u8]) -> Content {
    let pages = bytes.len().div_ceil(4096);
    Content::Body {
        bytes: bytes.into(),
        pages: Pages((1 << pages) - 1),
    }
}

fn extent(offset: u64, len: u64, object: u64) -> Extent {
    Extent {
        offset,
        len,
        object,
        object_offset: 0,
    }
}

fn replace(content: Content, objects: &[(u64, u64)]) -> Edit {
    let objects = objects.to_vec();
    Edit::Replace { content, objects }
}

fn add(extent: Extent, objects: &[(u64, u64)]) -> Edit {
    Edit::Map {
        cut: None,
        clear: Vec::new(),
        add: vec![extent],
        objects: objects.to_vec(),
    }
}

impl Two {
    fn flush(
        &self,
        ino: Ino,
        edit: Edit,
        size: Option<Size>,
        changed: Option<Time>,
    ) -> Result<Answer> {
        let generation = self.node(ino).generation;
        self.a.perform(Request::Flush(Flush {
            ino,
            generation,
            edit,
            size,
            changed,
            change: Change::default(),
        }))
    }

    fn usage(&self) -> Usage {
        self.a.usage().unwrap()
    }
}

#[test]
fn a_body_comes_along_and_its_times_are_those_of_the_change() {
    let two = Two::new();
    let file = two.file(ROOT, "file");
    let size = Some(Size::AtLeast(5));
    let answer = two.flush(file, replace(body(b"bytes"), &[]), size, Some(NOW));
    let [(_, node)] = &touched(answer.unwrap())[..] else {
        panic!("one inode is touched");
    };
    assert_eq!(node.content, Some(body(b"bytes")));
    let record = &node.record;
    assert_eq!((record.size, record.mtime, record.ctime), (5, NOW, NOW));
    assert_eq!(record.space, StoredSpace::AS_SIZE);
    assert!(!record.xattrs);
    let answer = two.flush(file, Edit::None, Some(Size::Exactly(2)), Some(NOW));
    let record = touched(answer.unwrap()).remove(0).1.record;
    assert!(record.ctime > NOW && record.mtime == record.ctime);
    assert_eq!(two.b.content(file), Ok((3, body(b"by"))));
    assert_eq!(two.b.content(ROOT).map(|it| it.1), Ok(Content::empty()));
    assert_eq!(two.flush(ROOT, Edit::None, None, None), Err(Errno::EINVAL));
}

#[test]
fn a_flush_of_an_older_content_is_refused() {
    let two = Two::new();
    let file = two.file(ROOT, "file");
    let flush = |content| Flush {
        ino: file,
        generation: 1,
        edit: replace(content, &[]),
        size: Some(Size::AtLeast(1)),
        changed: Some(NOW),
        change: Change::default(),
    };
    two.b.perform(Request::Flush(flush(body(b"b")))).unwrap();
    let before = two.node(file);
    let refused = two.a.perform(Request::Flush(flush(body(b"a"))));
    assert_eq!(refused, Ok(Answer::Refused));
    assert_eq!(two.node(file), before);
    // The generation is no matter to a map, but the body is.
    let mapped = two.flush(file, add(extent(0, 4096, 0), &[]), None, Some(NOW));
    assert_eq!(mapped, Ok(Answer::Refused));
}

#[test]
fn a_map_that_depends_on_older_bytes_is_refused_when_they_changed() {
    let two = Two::new();
    let file = two.file(ROOT, "file");
    let map = |generation| {
        let request = Request::Flush(Flush {
            ino: file,
            generation,
            edit: add(extent(0, 4096, 0), &[]),
            size: None,
            changed: Some(NOW),
            change: Change::default(),
        });
        two.a.perform(request).unwrap()
    };
    assert_ne!(map(1), Answer::Refused);
    assert_eq!(map(1), Answer::Refused);
    assert_ne!(map(0), Answer::Refused);
}

#[test]
fn objects_are_counted_by_what_is_mapped() {
    let two = Two::new();
    let [x, y] = ["x", "y"].map(|name| two.file(ROOT, name));
    let [first, second] = [two.number(), two.number()];
    let whole = || {
        replace(
            Content::Extents(vec![extent(0, 8192, first)]),
            &[(first, 9000)],
        )
    };
    for file in [x, y] {
        two.flush(file, whole(), Some(Size::AtLeast(8192)), Some(NOW))
            .unwrap();
    }
    let usage = two.usage();
    assert_eq!(
        (usage.objects, usage.object_bytes, usage.live_bytes),
        (1, 9000, 16_384)
    );
    assert_eq!(usage.pages, 4);
    two.flush(
        x,
        add(extent(4096, 100, second), &[(second, 100)]),
        None,
        Some(NOW),
    )
    .unwrap();
    assert_eq!(two.usage().live_bytes, 8192 + 4096 + 100);
    two.flush(x, Edit::None, Some(Size::Exactly(10)), Some(NOW))
        .unwrap();
    assert_eq!(
        (two.usage().live_bytes, two.usage().unmapped),
        (8192 + 10, 1)
    );
    let outside = Content::Extents(vec![extent(0, 9001, first)]);
    assert_eq!(
        two.flush(x, replace(outside, &[]), None, None),
        Err(Errno::EINVAL)
    );
    let unknown = Content::Extents(vec![extent(0, 1, 12_345)]);
    assert_eq!(
        two.flush(x, replace(unknown, &[]), None, None),
        Ok(Answer::Refused)
    );
    two.is_clean();
}

#[test]
fn an_object_without_a_mapped_byte_is_kept_for_a_time() {
    let two = Two::new();
    let file = two.file(ROOT, "file");
    let object = two.number();
    let content = Content::Extents(vec![extent(0, 5000, object)]);
    let map = || {
        two.flush(
            file,
            replace(content.clone(), &[(object, 5000)]),
            None,
            Some(NOW),
        )
    };
    map().unwrap();
    two.remove(ROOT, "file", false).unwrap();
    two.pass(5000);
    assert_eq!(two.a.deletable(&[], 9), Ok(vec![]));
    two.flush(file, replace(Content::empty(), &[]), None, Some(NOW))
        .unwrap();
    two.pass(3599);
    assert_eq!(two.a.deletable(&[], 9), Ok(vec![]));
    assert!(
        matches!(map(), Ok(Answer::Done { .. })),
        "it is there still"
    );
    two.flush(file, replace(Content::empty(), &[]), None, Some(NOW))
        .unwrap();
    two.pass(3601);
    assert_eq!(two.a.deletable(&[], 9), Ok(vec![object]));
    assert_eq!(map(), Ok(Answer::Refused), "it is being deleted");
    assert_eq!(two.usage().unmapped, 1);
    two.a.deleted(&[object]).unwrap();
    assert_eq!(two.usage().objects, 0);
    two.is_clean();
}

#[test]
fn numbers_of_ended_sessions_are_deletable_where_nothing_mapped_them() {
    let two = Two::new();
    let file = two.file(ROOT, "file");
    let [mapped, lost, living] = [two.a.deal(1), two.a.deal(1), two.b.deal(1)];
    let [mapped, lost, living] = [mapped, lost, living].map(|range| range.unwrap().start);
    let content = Content::Extents(vec![extent(0, 1, mapped)]);
    two.flush(file, replace(content, &[(mapped, 1)]), None, Some(NOW))
        .unwrap();
    let listed = [mapped, lost, living, 1 << 40];
    assert_eq!(two.b.deletable(&listed, 9), Ok(vec![]));
    two.a.end().unwrap();
    assert_eq!(two.b.deletable(&listed, 9), Ok(vec![lost]));
    assert_eq!(two.b.deletable(&listed, 0), Ok(vec![]));
}

#[test]
fn bodies_above_the_inline_limit_are_moved_without_a_change_of_times() {
    let two = Two::new();
    let [small, first, second] = ["s", "f", "g"].map(|name| two.file(ROOT, name));
    let large = body(&[1; 5000]);
    two.flush(
        small,
        replace(body(&[1; 4096]), &[]),
        Some(Size::AtLeast(4096)),
        Some(NOW),
    )
    .unwrap();
    two.flush(
        second,
        replace(large.clone(), &[]),
        Some(Size::AtLeast(5000)),
        Some(NOW),
    )
    .unwrap();
    two.pass(1);
    two.flush(
        first,
        replace(large.clone(), &[]),
        Some(Size::AtLeast(5000)),
        Some(NOW),
    )
    .unwrap();
    assert_eq!(two.usage().staged, 10_000);
    assert_eq!(two.node(first).content, None);
    assert!(two.b.staged(9).unwrap().is_empty());
    two.pass(11);
    let staged = two.b.staged(9).unwrap();
    let inos: Vec<_> = staged.iter().map(|it| it.ino).collect();
    assert_eq!(inos, [second, first]);
    assert_eq!(two.b.staged(1).unwrap(), staged[..1]);
    assert_eq!(staged[0].content, large);
    let object = two.number();
    let content = Content::Extents(vec![extent(0, 5000, object)]);
    let before = two.node(second);
    let moved = two
        .flush(second, replace(content, &[(object, 5000)]), None, None)
        .unwrap();
    let moved = touched(moved);
    assert_eq!(moved[0].0, Some(Version::of(&before.record)));
    assert_eq!(moved[0].1.record, before.record);
    assert_ne!(moved[0].1.generation, before.generation);
    assert_eq!(two.usage().staged, 5000);
}

#[test]
fn space_behind_the_end_is_seen_and_freed() {
    let two = Two::new();
    let file = two.file(ROOT, "file");
    let content = Content::Body {
        bytes: b"x"[..].into(),
        pages: Pages(0b101),
    };
    two.flush(
        file,
        replace(content, &[]),
        Some(Size::AtLeast(1)),
        Some(NOW),
    )
    .unwrap();
    let record = two.node(file).record;
    assert!(record.xattrs);
    assert_eq!(record.space.pages(record.size), Some(2));
    two.flush(file, Edit::None, Some(Size::Exactly(1)), Some(NOW))
        .unwrap();
    let record = two.node(file).record;
    assert!(!record.xattrs);
    assert_eq!(record.space, StoredSpace::AS_SIZE);
}

#[test]
fn a_freed_file_maps_nothing() {
    let two = Two::new();
    let file = two.file(ROOT, "file");
    let object = two.number();
    let content = Content::Extents(vec![extent(0, 5000, object)]);
    two.flush(file, replace(content, &[(object, 5000)]), None, Some(NOW))
        .unwrap();
    two.remove(ROOT, "file", false).unwrap();
    for meta in [&two.a, &two.b] {
        let upto = beat(&**meta, 0).gone_upto;
        beat(&**meta, upto);
    }
    assert_eq!(two.usage().live_bytes, 5000);
    assert_eq!(two.a.sweep(9), Ok(1));
    assert_eq!((two.usage().live_bytes, two.usage().unmapped), (0, 1));
    assert_eq!(two.a.content(file), Err(Errno::ESTALE));
    two.database.pass(Duration::from_secs(1));
    two.is_clean();
}
