//! Random calls against a model that is a map.

use super::{Fixture, Tracked, settle};
use holdfast_sync::{Freeing, Ref, epoch};
use proptest::collection::vec;
use proptest::prelude::*;
use std::collections::BTreeMap;

#[derive(Clone, Copy, Debug)]
enum Call {
    Publish,
    Get,
    TryRef,
    Clone,
    Release,
    Drop,
    IntoRaw,
    Forget(u64),
    Doom,
    Spare,
    Evict,
    Bury,
    Revive,
    Trim,
}

/// Keys near each other and far apart, in several roots.
const KEYS: [u64; 8] = [0, 1, 9, 64, 65, 5000, 1 << 30, u64::MAX - 1];

fn call() -> impl Strategy<Value = (Call, usize)> {
    use Call::*;
    let call = prop_oneof![
        4 => Just(Publish), 3 => Just(Get), 2 => Just(TryRef), 2 => Just(Clone),
        4 => Just(Release), 2 => Just(Drop), 2 => Just(IntoRaw), 2 => (0..4_u64).prop_map(Forget),
        2 => Just(Doom), 1 => Just(Spare), 3 => Just(Evict), 3 => Just(Bury), 1 => Just(Revive),
        1 => Just(Trim),
    ];
    (call, 0..KEYS.len())
}

/// What the model knows of an object, and what was obtained of it.
#[derive(Default)]
struct Object {
    refs: Vec<Ref<Tracked>>,
    raw: u64,
    freeing: bool,
    end: Option<Freeing<Tracked>>,
}

impl Object {
    /// Does removing the last use end it?
    fn evictions(&self) -> bool {
        self.freeing && self.refs.is_empty() && self.raw == 0
    }
}

fn step(fixture: &Fixture, objects: &mut BTreeMap<u64, Object>, call: Call, key: u64) {
    let index = &fixture.index;
    let Some(object) = objects.get_mut(&key) else {
        assert!(index.get(key).is_none());
        if let Call::Publish = call {
            let refs = vec![fixture.publish(key).expect("a free key")];
            objects.insert(
                key,
                Object {
                    refs,
                    ..Object::default()
                },
            );
        }
        return;
    };
    match call {
        // Those calls would wait.
        Call::Publish | Call::Get if object.end.is_some() => {}
        Call::Publish => assert!(fixture.publish(key).is_none()),
        Call::Get => object.refs.push(index.get(key).expect("live")),
        Call::Clone => object.refs.extend(object.refs.last().cloned()),
        Call::Release => {
            if let Some(last) = object.refs.pop() {
                object.end = last.release();
                assert_eq!(object.end.is_some(), object.evictions());
            }
        }
        Call::Drop => drop(object.refs.pop()),
        Call::IntoRaw => {
            if let Some(last) = object.refs.pop() {
                assert_eq!(last.into_raw(), key);
                object.raw += 1;
            }
        }
        Call::Bury => {
            if let Some(end) = object.end.take() {
                index.free(end);
                objects.remove(&key);
            }
        }
        Call::Revive => drop(object.end.take()),
        Call::Trim => index.trim(),
        _ => step_under_guard(fixture, object, call, key),
    }
}

/// Calls on an object that is found first.
fn step_under_guard(fixture: &Fixture, object: &mut Object, call: Call, key: u64) {
    let guard = epoch::pin();
    let held = fixture.index.peek(key, &guard).expect("in the index");
    let freeing = object.end.is_some();
    let end = match call {
        Call::TryRef => {
            let got = held.try_ref();
            assert_eq!(got.is_some(), !freeing);
            object.refs.extend(got);
            None
        }
        Call::Forget(n) => {
            let given = n.min(object.raw);
            object.raw -= given;
            let end = held.forget(n);
            assert_eq!(end.is_some(), given > 0 && object.evictions());
            end
        }
        Call::Doom => {
            object.freeing = true;
            let end = held.mark_freeing();
            assert_eq!(end.is_some(), !freeing && object.evictions());
            end
        }
        Call::Spare => {
            object.freeing = false;
            held.unmark_freeing();
            None
        }
        _ => {
            let end = fixture.index.begin_evict(held);
            let unused = object.refs.is_empty() && object.raw == 0;
            assert_eq!(end.is_some(), !freeing && unused);
            end
        }
    };
    object.end = object.end.take().or(end);
}

fn compare(fixture: &Fixture, objects: &BTreeMap<u64, Object>) {
    let guard = epoch::pin();
    for key in KEYS {
        let held = fixture.index.peek(key, &guard);
        assert_eq!(held.is_some(), objects.contains_key(&key));
    }
    for (key, object) in objects {
        let held = fixture.index.peek(*key, &guard).unwrap();
        held.check(*key);
        assert_eq!(held.uses(), object.refs.len() as u64 + object.raw);
        assert_eq!(held.is_live(), object.end.is_none());
        assert_eq!(held.is_marked_freeing(), object.freeing);
    }
    let mut seen = Vec::new();
    let mut next = Some(0);
    while let Some(from) = next {
        next = fixture.index.scan(from, u64::MAX, &guard, |held| {
            seen.push(held.key());
            true
        });
    }
    assert!(seen.iter().eq(objects.keys()));
    assert_eq!(fixture.index.len(), objects.len() as u64, "I6");
}

proptest! {
    #[test]
    fn an_index_does_what_a_map_with_counts_would(calls in vec(call(), 0..200)) {
        let fixture = Fixture::new();
        let mut objects = BTreeMap::new();
        for (call, key) in calls {
            step(&fixture, &mut objects, call, KEYS[key]);
            compare(&fixture, &objects);
        }
        let Fixture { index, left } = fixture;
        drop(index);
        drop(objects);
        settle(&left, 0);
    }
}
