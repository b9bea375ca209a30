//! Each device call of a checkpoint is held: those go on that need nothing of it.
//!
//! It begins with a commit, and another that is asked for meanwhile waits for that one. Behind it
//! commits go on beside the folding.

use super::names_are_known;
use super::others::{
    AFTER, OTHERS, Other, beside_all_calls_of, calls_of, others_go_on_beside, without_commits,
};
use super::world::{NAMES, PAGE, World, bytes};
use holdfast_core::Store;
use holdfast_types::{Caller, SetAttr};

/// Something of each kind that it folds: names that come, go and move, attributes of inodes all
/// over the trees, places of pages, an orphan.
fn changed(world: &World) {
    names_are_known(world);
    let (who, root) = (Caller::root(), world.fs.root());
    for path in [&b"/mine/part"[..], b"/mine/more"] {
        world.write(path, 5, &[3; 10]);
    }
    world.write(b"/mine/new", 0, &bytes(2 * PAGE));
    world.rename(b"/mine/target", b"/aside/target");
    let open = world.open(b"/mine/gone");
    world.fs.unlink_at(&who, &root, b"/mine/gone").unwrap();
    drop(open);
    for number in (0..NAMES).step_by(50) {
        let path = format!("/mine/a long name, number {number}");
        let node = world.fs.resolve(&who, &root, path.as_bytes(), true);
        let set = SetAttr {
            perm: Some(0o600),
            ..SetAttr::default()
        };
        world.fs.setattr(&who, &node.unwrap(), &set, None).unwrap();
    }
}

fn fold(world: &World) {
    world.store.checkpoint().unwrap();
}

#[test]
fn others_go_on_beside_slow_reads_of_a_checkpoint() {
    others_go_on_beside("checkpoint", &[OTHERS, AFTER], changed, fold);
}

#[test]
fn others_go_on_beside_each_call_of_a_checkpoint() {
    let all = calls_of(changed, fold);
    let of_its_commit = calls_of(changed, |world| world.store.commit(None).unwrap());
    assert!(0 < of_its_commit && of_its_commit + 3 < all);
    let during: Vec<Other> = [without_commits(), AFTER[..2].to_vec()].concat();
    let calls = 0..of_its_commit;
    beside_all_calls_of(calls, "its commit", &[&during], changed, fold);
    let calls = of_its_commit..all;
    beside_all_calls_of(calls, "folding", &[OTHERS, AFTER], changed, fold);
}
