use crate::file_system::Core;
use crate::inode::Numbered as _;
use crate::node::Node;
use crate::quota::Check;
use crate::store::{Change, Class, Intent};
use crate::types::{Caller, Result};
use crate::watch::EventMask;

impl Core {
    /// Gives a regular file another size; what is new reads as zeros. `lsn`: its times change
    /// even if the size does not, as open(2) and ftruncate(2) demand, and truncate(2) does not.
    pub(crate) fn resize(&self, who: &Caller, node: &Node, size: u64, lsn: bool) -> Result<()> {
        let inode = node.inode();
        let pages = inode.regular()?;
        if let Some(through) = self.through() {
            return through.resize(who, node, size);
        }
        {
            // What is to be thrown away need not be loaded first.
            let keeps = size > 0;
            let mut pages = match keeps {
                true => self.lock_mapped(inode, pages)?,
                false => pages.lock(),
            };
            let mut reservation = self.reserve_for(inode, &pages, 0..0, || {
                let (old, ranges) = (inode.size(), 1);
                let class = match size > old {
                    true => Class::Changing,
                    false => Class::GivingBack,
                };
                Intent {
                    class,
                    ranges,
                    records: 1,
                    moved: self.outgrown(old, size),
                    ..Intent::default()
                }
            })?;
            self.drop_privileges(who, node)?;
            let space = self.space_of(inode, Check::of(who));
            let turn = self.log_order([inode]);
            let record = {
                let mut meta = inode.write();
                // To the same size it frees what was allocated behind the end, and like tmpfs
                // moves the times of a file that holds any space.
                if lsn || size != meta.size || pages.pages() > 0 {
                    meta.modified(inode.time_of_change());
                }
                if size < meta.size {
                    pages.begin();
                }
                if size <= meta.size {
                    pages.truncate(size, space.account());
                }
                meta.size = size;
                inode.record(&meta)
            };
            pages.has_size(size);
            if !keeps {
                // Only now, that the size says so too: there is nothing to be asked for.
                self.unmapped.cut(inode.ino());
                inode.completed();
            }
            if !self.pinned {
                space.hand_over(&mut reservation);
                let ino = inode.ino();
                self.apply_in(
                    turn,
                    &mut reservation,
                    [inode],
                    &[
                        Change::Truncate { ino, size },
                        Change::Attributes { inode: record },
                    ],
                )?;
            }
        }
        self.notify_event(inode, EventMask::MODIFY);
        Ok(())
    }
}
