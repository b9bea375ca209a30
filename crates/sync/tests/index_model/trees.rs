//! Nodes that are made and freed beside insertions, evictions and scans.

use super::{CROWD, PAIR, World, model, spawn};

fn evict(world: &World, key: u64) {
    let freeing = world.begin_evict(key).expect("unused");
    world.index.free(freeing);
}

#[test]
fn of_two_publishers_of_a_key_one_is_refused() {
    model(PAIR, |world| {
        let other = spawn(world, |world| world.publish(2).is_some());
        let mine = world.publish(2).is_some();
        assert!(mine != other.join().unwrap());
        assert_eq!(world.keys(), [2]);
    });
}

#[test]
fn publishers_of_neighbours_share_the_nodes_they_make() {
    model(PAIR, |world| {
        let other = spawn(world, |world| drop(world.publish(4).unwrap()));
        drop(world.publish(5).unwrap());
        other.join().unwrap();
        assert_eq!(world.keys(), [4, 5]);
    });
}

#[test]
fn a_scan_beside_publications_sees_the_old_once_and_the_new_at_most_once() {
    model(PAIR, |world| {
        drop(world.publish(2).unwrap());
        drop(world.publish(5).unwrap());
        let other = spawn(world, |world| {
            drop(world.publish(3).unwrap());
            drop(world.publish(4).unwrap());
        });
        let mut keys = world.keys();
        assert!(keys.is_sorted_by(|a, b| a < b), "I1: none twice");
        keys.retain(|key| ![3, 4].contains(key));
        assert_eq!(keys, [2, 5], "I1: all");
        other.join().unwrap();
    });
}

#[test]
fn trimming_beside_a_publication_loses_nothing() {
    model(PAIR, |world| {
        drop(world.publish(4).unwrap());
        evict(world, 4);
        let trimmer = spawn(world, |world| world.index.trim());
        world.publish(5).unwrap().check(5);
        assert!(world.with(5, |held| held.check(5)).is_some());
        trimmer.join().unwrap();
        assert_eq!(world.keys(), [5]);
    });
}

#[test]
fn trimming_beside_a_publication_and_its_eviction_leaves_nothing() {
    model(PAIR, |world| {
        drop(world.publish(4).unwrap());
        evict(world, 4);
        let trimmer = spawn(world, |world| world.index.trim());
        drop(world.publish(5).unwrap());
        evict(world, 5);
        trimmer.join().unwrap();
        assert_eq!(world.keys(), []);
    });
}

#[test]
fn two_that_trim_beside_a_publication_lose_nothing() {
    model(CROWD, |world| {
        drop(world.publish(2).unwrap());
        evict(world, 2);
        let first = spawn(world, |world| world.index.trim());
        let second = spawn(world, |world| world.index.trim());
        drop(world.publish(3).unwrap());
        first.join().unwrap();
        second.join().unwrap();
        assert_eq!(world.keys(), [3]);
    });
}

#[test]
fn a_scan_beside_trimming_and_publication_sees_what_stays_exactly_once() {
    model(CROWD, |world| {
        drop(world.publish(4).unwrap());
        drop(world.publish(6).unwrap());
        evict(world, 4);
        let trimmer = spawn(world, |world| world.index.trim());
        let publisher = spawn(world, |world| drop(world.publish(5).unwrap()));
        let mut keys = world.keys();
        keys.retain(|key| *key != 5);
        assert_eq!(keys, [6], "I1");
        trimmer.join().unwrap();
        publisher.join().unwrap();
        assert_eq!(world.keys(), [5, 6]);
    });
}

#[test]
fn leaves_that_evictions_empty_go_beside_publications() {
    model(PAIR, |world| {
        drop(world.publish(4).unwrap());
        drop(world.publish(6).unwrap());
        let other = spawn(world, |world| drop(world.publish(5).unwrap()));
        evict(world, 4);
        // Has the leaf of 4 freed, if it is still empty.
        evict(world, 6);
        other.join().unwrap();
        assert_eq!(world.keys(), [5]);
    });
}
