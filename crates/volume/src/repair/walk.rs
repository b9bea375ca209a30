//! Reading all that can be read of a tree.

use parking_lot::Mutex;

use crate::nodes::Nodes;
use crate::tree::{Finding, Inspect, Pointer, Record, Tree};

struct Visitor<'w, N, F> {
    shared: &'w Mutex<(N, F, Vec<Finding>)>,
}

impl<R, N, F> Inspect<R> for Visitor<'_, N, F>
where
    R: Record,
    N: FnMut(Pointer) + Send,
    F: for<'v> FnMut(R::Key, R::Value<'v>) + Send,
{
    fn finding(&mut self, finding: Finding) {
        self.shared.lock().2.push(finding);
    }

    fn node(&mut self, node: Pointer, _level: u8) {
        (self.shared.lock().0)(node);
    }

    fn record(&mut self, key: R::Key, value: R::Value<'_>) {
        (self.shared.lock().1)(key, value);
    }
}

/// Shows all nodes and records in order of keys; returns what is wrong with the tree.
pub(super) fn walk<R: Record>(
    tree: &Tree<'_, R, Nodes>,
    newest: u64,
    node: impl FnMut(Pointer) + Send,
    record: impl for<'v> FnMut(R::Key, R::Value<'v>) + Send,
) -> Vec<Finding> {
    let shared = Mutex::new((node, record, Vec::new()));
    let visitor = || Visitor { shared: &shared };
    drop(tree.check(newest, 1, visitor));
    shared.into_inner().2
}
