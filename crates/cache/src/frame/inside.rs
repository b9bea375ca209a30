//! Reads of single frames that ask little: of those that are known to be inside, without version and size (see
//! [`gate`](super::gate)); and of a frame that is alone.

use super::FRAME_SIZE;
use super::map::Frames;
use super::node::place;
use super::slot::Keeps;
use crate::epoch::{Brief, Guard};
use crate::frame_primitive::{AtomicU64, Ordering, fence};

impl<X: Send + 'static> Frames<X> {
    /// The filled bytes of a frame that is [inside](super::FramesLock::inside), at some moment of the call;
    /// none if there is no such frame: then it is zero. The outer `None`: it is not known to be
    /// inside, or changes are being made, or its use is to be [told](Frames::touch).
    #[inline]
    pub fn find_inside<'g>(&'g self, number: u64, guard: &'g Guard) -> Option<Option<&'g [u8]>> {
        self.inside(number, guard)
    }

    /// Copies bytes of frame `number` from byte `at` on, if all of them are filled and it is known to be
    /// [inside](super::FramesLock::inside), its use need not be [told](Frames::touch), and the thread can pin itself at once, which one
    /// that does so often can. Else nothing is copied.
    #[inline(always)]
    #[must_use]
    #[expect(unsafe_code, reason = "a pin that is not counted")]
    pub fn copy_inside(&self, number: u64, at: usize, buf: &mut [u8]) -> bool {
        if at > FRAME_SIZE || buf.len() > FRAME_SIZE - at {
            return false;
        }
        // SAFETY: what follows follows slots and copies bytes, and pins nothing.
        let Some(brief) = (unsafe { Brief::pin() }) else {
            return false;
        };
        let found = self.inside(number, &brief).flatten();
        let Some(data) = found.and_then(|frame| frame.get(at..at + buf.len())) else {
            return false;
        };
        buf.copy_from_slice(data);
        true
    }

    /// Was there just now no frame but possibly number 0, and no side part? Then nothing is
    /// [inside](super::FramesLock::inside).
    #[inline(always)]
    #[must_use]
    pub fn is_small(&self) -> bool {
        !self.root.leads_on()
    }

    /// Copies bytes of frame 0 from byte `at` on, if there is no other and no side part, if all of them are filled
    /// and lie before the end that `size` tells, which belongs to the same state as with a [`Snapshot`](super::Snapshot),
    /// and if the thread can pin itself at once. Else nothing is copied.
    #[inline(always)]
    #[must_use]
    #[expect(unsafe_code, reason = "a pin that is not counted")]
    pub fn copy_alone(&self, at: usize, buf: &mut [u8], size: &AtomicU64) -> bool {
        if at > FRAME_SIZE || buf.len() > FRAME_SIZE - at {
            return false;
        }
        let end = at + buf.len();
        // SAFETY: as in `copy_inside`.
        let Some(brief) = (unsafe { Brief::pin() }) else {
            return false;
        };
        // All as for a snapshot.
        let version = self.version.load(Ordering::Acquire);
        let found = self.root.find(&brief);
        if !version.is_multiple_of(2) || found.is_node() {
            return false;
        }
        // Of a broken frame no bytes are shown.
        let data = found.frame().and_then(|frame| frame.bytes().get(at..end));
        let is_inside = end as u64 <= size.load(Ordering::Relaxed);
        fence(Ordering::Acquire);
        let holds = self.version.load(Ordering::Relaxed) == version;
        let Some(data) = data.filter(|_| is_inside && holds) else {
            return false;
        };
        buf.copy_from_slice(data);
        true
    }

    #[inline(always)]
    #[expect(
        unsafe_code,
        reason = "of what was found it was asked whether it is a node"
    )]
    fn inside<'g>(&'g self, number: u64, keeps: &'g impl Keeps) -> Option<Option<&'g [u8]>> {
        let root = self.root.find(keeps);
        if !root.is_node() {
            return None;
        }
        // SAFETY: just asked.
        let root = unsafe { root.way() };
        let gate = &root.node.gate;
        let pass = gate.pass(number)?;
        let near = root.near(number, keeps);
        if near.is_some_and(|(leaf, frame)| frame.is_broken() || leaf.is_idle(place(number, 0))) {
            return None;
        }
        gate.holds(pass)
            .then_some(near.map(|(_, frame)| frame.bytes()))
    }
}
