//! Tests of [`lazytime`](crate::lazytime), in a file of their own: the loom model compiles that
//! module a second time.

use crate::lazytime::Lazytime;
use crate::types::Errno;
use std::cell::Cell;

#[test]
fn nobody_is_asked_unless_somebody_was_marked_since() {
    let lazytime = Lazytime::default();
    let walks = Cell::new(0);
    let sync = |outcome| {
        let walk = || {
            walks.set(walks.get() + 1);
            outcome
        };
        (lazytime.write(walk), walks.get())
    };
    assert_eq!(sync(Ok(())), (Ok(()), 0));
    lazytime.note();
    assert!(lazytime.any());
    assert_eq!(sync(Err(Errno::EIO)), (Err(Errno::EIO), 1));
    assert!(lazytime.any(), "not written yet");
    assert_eq!(sync(Ok(())), (Ok(()), 2));
    assert_eq!(sync(Ok(())), (Ok(()), 2));
    lazytime.note();
    lazytime.note();
    assert_eq!(sync(Ok(())), (Ok(()), 3));
}
