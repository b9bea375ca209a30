//! Reads everything readable of a tree.

use parking_lot::Mutex;

use crate::nodes::Nodes;
use crate::tree::{Finding, Inspect, Pointer, Record, Tree};

struct Visitor<'w, N, F> {
    shared: &'w Mutex<(N, F, bool)>,
}

impl<R, N, F> Inspect<R> for Visitor<'_, N, F>
where
    R: Record,
    N: FnMut(Pointer) + Send,
    F: for<'v> FnMut(R::Key, R::Value<'v>) + Send,
{
    fn finding(&mut self, _finding: Finding) {
        self.shared.lock().2 = true;
    }

    fn node(&mut self, node: Pointer, _level: u8) {
        (self.shared.lock().0)(node);
    }

    fn record(&mut self, key: R::Key, value: R::Value<'_>) {
        (self.shared.lock().1)(key, value);
    }
}

/// Calls `node` and `record` in order of keys. Returns whether the tree is damaged.
pub(crate) fn visit<R: Record>(
    tree: &Tree<'_, R, Nodes>,
    newest: u64,
    node: impl FnMut(Pointer) + Send,
    record: impl for<'v> FnMut(R::Key, R::Value<'v>) + Send,
) -> bool {
    let shared = Mutex::new((node, record, false));
    let visitor = || Visitor { shared: &shared };
    drop(tree.check(newest, 1, visitor));
    shared.into_inner().2
}

/// Calls `record` in order of keys. Returns whether the tree is damaged.
pub(crate) fn walk<R: Record>(
    tree: &Tree<'_, R, Nodes>,
    newest: u64,
    record: impl for<'v> FnMut(R::Key, R::Value<'v>) + Send,
) -> bool {
    visit(tree, newest, |_| {}, record)
}
