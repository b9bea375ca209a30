//! How requests come and replies go: `/dev/fuse`, and io_uring.

pub(crate) mod device;
pub(crate) mod frame;
pub(crate) mod sys;
pub(crate) mod uring;

use std::cell::Cell;

thread_local! {
    static SERVING: Cell<bool> = const { Cell::new(false) };
}

/// Marks this thread as one that serves requests, and so must never wait for the kernel to
/// take a notification.
pub(crate) fn mark_serving() {
    SERVING.set(true);
}

/// Does this thread serve requests?
pub(crate) fn is_serving() -> bool {
    SERVING.get()
}
