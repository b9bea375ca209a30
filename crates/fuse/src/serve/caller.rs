//! From a request's context to a caller of the core.

use crate::Context;
use holdfast_core::types::{Caller, Caps};
use std::sync::Arc;

thread_local! {
    /// No groups: per thread, because counting references of one for all would be shared.
    static NO_GROUPS: Arc<[u32]> = Arc::new([]);
}

/// The caller of a request whose permissions the kernel has checked.
pub(super) fn caller(cx: &Context<'_>) -> Caller {
    let mut groups = cx.extensions.groups().peekable();
    let groups = if groups.peek().is_some() {
        groups.collect()
    } else {
        NO_GROUPS.with(Arc::clone)
    };
    Caller {
        uid: cx.uid,
        gid: cx.gid,
        groups,
        caps: Caps::all(),
        umask: cx.umask,
        pid: cx.pid,
        checked: true,
    }
}

/// The same, with all powers but that of keeping set-id bits.
pub(super) fn caller_without_fsetid(cx: &Context<'_>) -> Caller {
    Caller {
        caps: Caps::all().difference(Caps::FSETID),
        checked: false,
        ..caller(cx)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::wire::Extensions;

    #[test]
    fn a_caller_who_may_not_keep_set_id_bits_may_do_everything_else() {
        let cx = Context {
            unique: 0,
            uid: 5,
            gid: 6,
            pid: 7,
            umask: 0o27,
            extensions: Extensions::default(),
        };
        assert!(caller(&cx).has(Caps::FSETID) && caller(&cx).checked);
        let limited = caller_without_fsetid(&cx);
        assert!(!limited.has(Caps::FSETID) && limited.has(Caps::FOWNER));
        assert_eq!((limited.uid, limited.umask), (5, 0o27));
    }
}
