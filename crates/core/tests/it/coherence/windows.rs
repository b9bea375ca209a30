//! What is read of a shared store before a caller asks for it.

use super::*;

#[test]
fn one_name_of_many_is_asked_for_alone_and_a_directory_is_listed_once_that_pays() {
    let pair = Pair::new(Coherence::Exclusive);
    for number in 0..100 {
        let name = format!("{number}");
        pair.store.write(Ino::ROOT, name.as_bytes(), b"");
    }
    let root = pair.fs.root();
    let look = |name: &str| pair.lookup(&root, name.as_bytes()).map(drop);
    assert_eq!((look("7"), look("none")), (Ok(()), Err(Errno::ENOENT)));
    assert_eq!(pair.fs.stats().names, 0, "nothing was listed for two names");
    assert_eq!(look("9"), Ok(()));
    assert_eq!(pair.fs.stats().names, 101, "with the third all are known");
    let asked = pair.store.asked();
    assert_eq!(look("none"), Err(Errno::ENOENT));
    assert_eq!(pair.store.asked(), asked);
}

#[test]
fn inodes_come_in_windows_before_they_are_asked_for_also_when_they_are_out_of_date() {
    let mut pair = Pair::new(FOR_A_SECOND);
    for number in 0..1000 {
        let name = format!("{number:04}");
        pair.store.write(Ino::ROOT, name.as_bytes(), b"");
    }
    let root = pair.fs.root();
    for round in 0..2 {
        let begun = pair.store.asked();
        for name in pair.list(&root) {
            pair.lookup(&root, &name).unwrap();
        }
        let asked = pair.store.asked() - begun;
        assert!(asked < 100, "{asked} questions in round {round}");
        pair.pass(VALID);
    }
}

/// A tree of `dirs` directories with ten files each. Only the names of the directories are in
/// memory, in the order of the listing.
fn tree(dirs: usize, statahead: bool) -> (Pair, Node, Vec<String>) {
    let options = Options {
        statahead,
        ..Options::default()
    };
    let mut pair = Pair::with(FOR_A_SECOND, options);
    let tree = pair.store.make_dir(Ino::ROOT, b"tree");
    let node = pair.lookup(&pair.fs.root(), b"tree").unwrap();
    let mut names = Vec::new();
    // Later names are listed behind the known ones.
    for half in 0..2 {
        for number in (half..dirs).step_by(2) {
            let name = format!("{number:03}");
            let dir = pair.store.make_dir(tree, name.as_bytes());
            for file in 0..10 {
                let name = format!("file {file}");
                pair.store.write(dir, name.as_bytes(), name.as_bytes());
            }
            names.push(name);
        }
        pair.pass(VALID);
        assert_eq!(pair.list(&node).len(), names.len());
    }
    (pair, node, names)
}

/// Lists directories of the tree in this order; returns the number of calls of the store.
fn walk<'n>(
    pair: &Pair,
    tree: &Node,
    order: impl IntoIterator<Item = &'n String>,
    plus: bool,
) -> u64 {
    let begun = pair.store.asked();
    for name in order {
        let dir = pair.lookup(tree, name.as_bytes()).unwrap();
        match plus {
            true => {
                let all = pair.list_plus(&dir);
                let is_its = |(name, attr): &(Box<[u8]>, Attr)| attr.size == name.len() as u64;
                assert!(all.len() == 10 && all.iter().all(is_its));
            }
            false => assert_eq!(pair.list(&dir).len(), 10),
        }
    }
    pair.store.asked() - begun
}

#[test]
fn directories_that_a_walk_comes_to_next_are_read_together() {
    for plus in [false, true] {
        for sorts in [false, true] {
            let (pair, node, mut names) = tree(200, true);
            if sorts {
                names.sort();
            }
            let asked = walk(&pair, &node, &names, plus);
            assert!(asked < 40, "{asked} questions; {plus}, {sorts}");
        }
    }
}

#[test]
fn what_is_made_in_a_directory_is_there_also_beside_a_walk_that_reads_it_ahead() {
    for round in 0..200 {
        let pair = Pair::new([Coherence::Exclusive, FOR_A_SECOND][round % 2]);
        pair.list(&pair.dir(pair.dirs[1]));
        std::thread::scope(|scope| {
            scope.spawn(|| {
                for dir in &pair.dirs[2..] {
                    pair.list(&pair.dir(*dir));
                }
            });
            for dir in pair.dirs[2..].iter().rev() {
                let node = pair.dir(*dir);
                pair.list(&node);
                let flags = OpenFlags::CREATE | OpenFlags::READ_WRITE;
                let made = (pair.fs).create(&Caller::root(), &node, b"made", 0o644, flags);
                drop(made.unwrap());
                for _ in 0..3 {
                    assert_eq!(pair.list(&node), [(*b"made").into()], "round {round}");
                    assert!(pair.lookup(&node, b"made").is_ok(), "round {round}");
                }
            }
        });
    }
}

#[test]
fn names_that_stay_keep_their_places_in_a_listing() {
    let mut pair = Pair::new(FOR_A_SECOND);
    for name in [b"b", b"d", b"f"] {
        pair.store.write(Ino::ROOT, name, b"");
    }
    let cookies = |pair: &Pair| {
        let root = pair.fs.root();
        let open = pair.fs.open(&Caller::root(), &root, OpenFlags::DIRECTORY);
        let mut cookies = Vec::new();
        let mut note = |entry: DirEntry<'_>| {
            cookies.push((entry.name.to_vec(), entry.cookie));
            true
        };
        pair.fs.read_dir(&open.unwrap(), 0, &mut note).unwrap();
        cookies
    };
    let before = cookies(&pair);
    // A name before them in the store's order, and another file under a name that stays.
    pair.store.write(Ino::ROOT, b"a", b"");
    pair.store.remove(Ino::ROOT, b"d");
    pair.store.rename((Ino::ROOT, b"f"), (Ino::ROOT, b"b"));
    pair.pass(VALID);
    let after = cookies(&pair);
    let gone = |name: &[u8]| name == b"d" || name == b"f";
    let stayed: Vec<_> = before.iter().filter(|(name, _)| !gone(name)).collect();
    assert!(after.iter().take(stayed.len()).eq(stayed));
    assert_eq!(after.last().map(|(name, _)| &**name), Some(&b"a"[..]));
}
