use super::{ROOT, Two, beat, bytes};
use crate::meta::{Beat, Change, Message, Request};
use holdfast_types::{Errno, FileType, Ino, RenameFlags};

#[test]
fn interested_sessions_get_messages_of_changes_by_others() {
    let two = Two::new();
    let [d, e] = ["d", "e"].map(|name| two.directory(ROOT, name));
    let f = two.file(d, "f");
    two.b.look_up(ROOT, &[], &[d]).unwrap();
    let touch = |ino, perm| Request::SetAttributes {
        ino,
        change: Change {
            perm: Some(perm),
            ..Change::default()
        },
    };
    two.a.perform(touch(f, 0)).unwrap();
    assert_eq!(two.messages(), [Message::Inode(f, false)]);
    two.b.perform(touch(f, 0)).unwrap();
    two.a.perform(touch(e, 0)).unwrap();
    two.a.perform(touch(d, 0)).unwrap();
    assert_eq!(two.messages(), []);
    two.file(d, "g");
    assert_eq!(two.messages(), [Message::Entry(d, bytes("g"))]);
    two.rename((d, "f"), (e, "f"), RenameFlags::empty())
        .unwrap();
    let moved = [Message::Entry(d, bytes("f")), Message::Inode(f, false)];
    assert_eq!(two.messages(), moved);
    two.a.perform(touch(f, 0)).unwrap();
    assert_eq!(two.messages(), []);
    let beat = Beat {
        unsubscribes: vec![d],
        ..Beat::default()
    };
    two.b.beat(&beat).unwrap();
    two.file(d, "h");
    assert_eq!(two.messages(), []);
}

#[test]
fn messages_stay_until_they_are_taken_in() {
    let two = Two::new();
    let dir = two.directory(ROOT, "dir");
    two.b.load(&[], &[dir]).unwrap();
    for name in 0..1500 {
        two.file(dir, &name.to_string());
    }
    let first = beat(&*two.b, 0);
    assert!(first.more);
    assert_eq!(beat(&*two.b, 0).messages, first.messages);
    let taken = first.messages.last().unwrap().0;
    let next = Beat {
        taken,
        ..Beat::default()
    };
    let rest = two.b.beat(&next).unwrap();
    assert!(!rest.more);
    assert_eq!(first.messages.len() + rest.messages.len(), 1500);
}

#[test]
fn a_session_that_takes_nothing_in_loses_its_interest() {
    let two = Two::new();
    two.b.load(&[], &[ROOT]).unwrap();
    let before = beat(&*two.b, 0).epoch;
    for name in 0..65_537 {
        two.file(ROOT, &name.to_string());
    }
    let after = beat(&*two.b, 0);
    assert_ne!(after.epoch, before);
    assert!(after.messages.is_empty());
    two.file(ROOT, "more");
    assert!(beat(&*two.b, 0).messages.is_empty());
}

#[test]
fn a_restart_changes_the_epoch() {
    let two = Two::new();
    two.b.load(&[], &[ROOT]).unwrap();
    let before = beat(&*two.b, 0).epoch;
    two.database.restart();
    two.file(ROOT, "x");
    let after = beat(&*two.b, 0);
    assert!(after.epoch != before && after.messages.is_empty());
}

#[test]
fn an_inode_without_names_lives_until_no_session_uses_it() {
    let two = Two::new();
    let file = two.file(ROOT, "file");
    two.remove(ROOT, "file", false).unwrap();
    assert_eq!(two.a.sweep(9), Ok(0));
    let asked = beat(&*two.a, 0);
    assert_eq!(asked.gone, [file]);
    beat(&*two.a, asked.gone_upto);
    assert_eq!(two.a.sweep(9), Ok(0), "the other was not asked");
    let asked = beat(&*two.b, 0);
    let knows = Beat {
        knows: vec![file],
        looked_at: asked.gone_upto,
        ..Beat::default()
    };
    assert!(two.b.beat(&knows).unwrap().gone.is_empty());
    assert_eq!(two.a.sweep(9), Ok(0), "the other uses it");
    let releases = Beat {
        releases: vec![file],
        ..Beat::default()
    };
    two.b.beat(&releases).unwrap();
    assert_eq!(two.a.sweep(0), Ok(0));
    assert_eq!(two.a.sweep(9), Ok(1));
    assert_eq!(two.a.load(&[file], &[]), Ok(vec![]));
}

#[test]
fn a_file_that_never_had_a_name_goes_with_its_session() {
    let two = Two::new();
    let new = two.new_inode(FileType::Regular);
    two.a
        .perform(Request::MakeUnnamed { dir: ROOT, new })
        .unwrap();
    assert_eq!(two.b.sweep(9), Ok(0));
    two.a.end().unwrap();
    assert_eq!(two.b.sweep(9), Ok(1));
}

#[test]
fn a_silent_session_is_ended_and_fails_from_then_on() {
    let two = Two::new();
    two.pass(59);
    beat(&*two.b, 0);
    two.pass(2);
    two.b.sweep(9).unwrap();
    assert_eq!(two.a.usage(), Err(Errno::ESTALE));
    assert_eq!(two.a.beat(&Beat::default()), Err(Errno::ESTALE));
    assert_eq!(two.a.end(), Err(Errno::ESTALE));
    assert_eq!(two.b.clients().unwrap().len(), 1);
}

#[test]
fn a_fenced_session_can_do_nothing() {
    let two = Two::new();
    let clients = two.b.clients().unwrap();
    let other = clients.iter().find(|client| !client.own).unwrap();
    two.b.fence(other.session).unwrap();
    assert_eq!(two.b.fence(other.session), Err(Errno::ENOENT));
    assert_eq!(two.a.deal(1), Err(Errno::ESTALE));
}

#[test]
fn an_unreachable_database_answers_nothing() {
    let two = Two::new();
    two.database.set_unreachable(true);
    assert_eq!(two.a.usage(), Err(Errno::EIO));
    two.database.set_unreachable(false);
    assert_eq!(two.a.usage().unwrap().inodes, 1);
}

#[test]
fn a_check_finds_damage_and_repairs_counts() {
    let two = Two::new();
    let dir = two.directory(ROOT, "dir");
    let file = two.file(dir, "file");
    {
        let mut state = two.database.0.state.lock();
        state.inodes.get_mut(&file).unwrap().stored.nlink = 5;
        state.inodes.get_mut(&dir).unwrap().stored.nlink = 9;
    }
    let found = two.a.check(true).unwrap();
    assert_eq!(found.len(), 2, "{found:?}");
    two.is_clean();
    two.database.0.state.lock().inodes.remove(&file);
    let found = two.a.check(true).unwrap();
    let missing = format!("directory {dir}, name file: inode {file} is missing");
    assert_eq!(found, [missing]);
    let mut state = two.database.0.state.lock();
    state.inodes.get_mut(&dir).unwrap().stored.parent = dir;
    drop(state);
    let found = two.a.check(false).unwrap();
    assert!(found.contains(&format!("directory {dir}: it is below itself")));
    assert_eq!(two.a.load(&[Ino(9999)], &[]), Ok(vec![]));
}
