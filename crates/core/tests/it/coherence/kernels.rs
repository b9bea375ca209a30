//! What a kernel in front of the core is notified of, and what it keeps in use.

use super::*;

#[test]
fn the_store_knows_an_inode_as_long_as_the_core_or_a_kernel_does() {
    let pair = Pair::new(FOR_A_SECOND);
    for number in 0..10 {
        let name = format!("{number}");
        pair.store.write(Ino::ROOT, name.as_bytes(), b"content");
    }
    let root = pair.fs.root();
    assert_eq!(pair.list_plus(&root).len(), 10);
    assert_eq!(pair.store.known(), 12);
    // As LOOKUP gives it to a kernel, which later uses the number.
    let held = pair.lookup(&root, b"7").unwrap().into_raw();
    pair.fs.drop_caches().unwrap();
    assert_eq!(pair.store.known(), 2, "the root, and what is held");
    let node = pair.fs.node(held).unwrap();
    assert_eq!(pair.content(&node), Ok(b"content".to_vec()));
    drop(node);
    pair.fs.drop_caches().unwrap();
    pair.fs.forget(held, 1);
    assert_eq!(pair.store.known(), 1);
    assert_eq!(pair.fs.node(held).map(drop), Err(Errno::ESTALE));
    assert!(pair.lookup(&root, b"7").is_ok());
    pair.fs.drop_caches().unwrap();
    assert_eq!(pair.store.known(), 1);
}

/// Notifications of a front end.
#[derive(Default)]
pub(super) struct Told(pub(super) Mutex<Vec<(Ino, bool)>>);

impl Observer for Told {
    fn inode_changed(&self, ino: Ino, data: bool) {
        self.0.lock().unwrap().push((ino, data));
    }

    fn entry_changed(&self, _: Ino, _: &[u8]) {}

    fn keeps_by_number(&self) -> bool {
        true
    }
}

#[test]
fn a_kernel_is_told_of_content_that_it_may_have_where_attributes_do_not_show_it() {
    let mut pair = Pair::new(FOR_A_SECOND);
    let file = pair.store.write(Ino::ROOT, b"a", b"one");
    let told = Arc::new(Told::default());
    pair.fs.set_observer(Some(told.clone()));
    let node = pair.lookup(&pair.fs.root(), b"a").unwrap();
    let held = node.clone().into_raw();
    assert_eq!(pair.content_once(&node), Ok(b"one".to_vec()));
    assert_eq!(pair.fs.stats().pages, 0);
    pair.pass(VALID);
    assert_eq!(pair.fs.attributes(&node).map(|attr| attr.size), Ok(3));
    assert!(told.0.lock().unwrap().is_empty(), "nothing changed");
    pair.store.write(Ino::ROOT, b"a", b"two");
    pair.pass(VALID);
    assert_eq!(pair.fs.attributes(&node).map(|attr| attr.size), Ok(3));
    assert!(told.0.lock().unwrap().is_empty(), "its times show it");
    assert_eq!(pair.content_once(&node), Ok(b"two".to_vec()));
    pair.store.unsettle();
    pair.pass(VALID);
    // Bytes that come with an unsettled answer are read again, and may differ.
    (0..2).for_each(|_| {
        assert_eq!(pair.fs.attributes(&node).map(|attr| attr.size), Ok(3));
        pair.pass(VALID);
    });
    assert_eq!(*told.0.lock().unwrap(), [(file, true)]);
    pair.store.write(Ino::ROOT, b"a", b"longer");
    pair.pass(VALID);
    assert_eq!(pair.content_once(&node), Ok(b"longer".to_vec()));
    pair.fs.forget(held, 1);
}
