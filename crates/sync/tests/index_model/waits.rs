//! Waiting while an object is freeing, without a lost wake-up.

use super::{CROWD, PAIR, model, spawn};

#[test]
fn a_lookup_beside_an_eviction_ends_and_finds_nothing() {
    model(CROWD, |world| {
        drop(world.publish(1).unwrap());
        let freeing = world.begin_evict(1).unwrap();
        let waiter = spawn(world, |world| world.index.get(1).is_some());
        let second = spawn(world, |world| world.index.get(1).is_some());
        world.index.free(freeing);
        assert!(!waiter.join().unwrap() && !second.join().unwrap());
    });
}

#[test]
fn a_lookup_beside_a_revival_ends_and_finds_the_object() {
    model(PAIR, |world| {
        drop(world.publish(1).unwrap());
        let freeing = world.begin_evict(1).unwrap();
        let waiter = spawn(world, |world| {
            world.index.get(1).expect("revived").check(1);
        });
        drop(freeing);
        waiter.join().unwrap();
    });
}

#[test]
fn a_lookup_beside_a_revival_and_a_second_end_ends() {
    model(PAIR, |world| {
        drop(world.publish(1).unwrap());
        let freeing = world.begin_evict(1).unwrap();
        let waiter = spawn(world, |world| world.index.get(1).map(|held| held.check(1)));
        drop(freeing);
        if let Some(freeing) = world.begin_evict(1) {
            world.index.free(freeing);
        }
        waiter.join().unwrap();
    });
}

#[test]
fn a_publisher_beside_an_eviction_takes_the_key() {
    model(PAIR, |world| {
        drop(world.publish(1).unwrap());
        let freeing = world.begin_evict(1).unwrap();
        let waiter = spawn(world, |world| {
            world.publish(1).expect("free by then").check(1);
        });
        world.index.free(freeing);
        waiter.join().unwrap();
        assert_eq!(world.index.len(), 1);
    });
}
