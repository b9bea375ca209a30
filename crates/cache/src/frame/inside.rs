//! Reads of single frames that skip the snapshot: of frames inside, without version and size (see
//! [`gate`](super::gate)).

use super::map::Frames;
use super::node::place;
use crate::epoch::Guard;

impl<X: Send + 'static> Frames<X> {
    /// The filled bytes of a frame that is [inside](super::FramesLock::inside), at some moment of
    /// the call. The inner `None`: there is no such frame, so it is zero. The outer `None`: it is
    /// not known to be inside, a change is under way, or its use is to be [noted](Frames::touch).
    #[inline]
    #[expect(unsafe_code, reason = "the root was asked whether it is a node")]
    pub fn find_inside<'g>(&'g self, number: u64, guard: &'g Guard) -> Option<Option<&'g [u8]>> {
        let root = self.root.find(guard);
        if !root.is_node() {
            return None;
        }
        // SAFETY: `is_node` was true.
        let root = unsafe { root.way() };
        let gate = &root.node.gate;
        let pass = gate.pass(number)?;
        let near = root.near(number, guard);
        if near.is_some_and(|(leaf, frame)| frame.is_broken() || leaf.is_idle(place(number, 0))) {
            return None;
        }
        gate.holds(pass)
            .then_some(near.map(|(_, frame)| frame.bytes()))
    }
}
