//! Tests of [`late`](crate::late), apart from it: a model compiles that a second time.

use crate::late::Late;
use crate::types::Errno;
use std::cell::Cell;

#[test]
fn nobody_is_asked_unless_somebody_was_marked_since() {
    let late = Late::default();
    let walks = Cell::new(0);
    let sync = |outcome| {
        let walk = || {
            walks.set(walks.get() + 1);
            outcome
        };
        (late.write(walk), walks.get())
    };
    assert_eq!(sync(Ok(())), (Ok(()), 0));
    late.note();
    assert!(late.any());
    assert_eq!(sync(Err(Errno::EIO)), (Err(Errno::EIO), 1));
    assert!(late.any(), "not written yet");
    assert_eq!(sync(Ok(())), (Ok(()), 2));
    assert_eq!(sync(Ok(())), (Ok(()), 2));
    late.note();
    late.note();
    assert_eq!(sync(Ok(())), (Ok(()), 3));
}
