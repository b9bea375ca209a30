use crate::clock;
use crate::file_system::Core;
use crate::inode::Numbered as _;
use crate::node::Node;
use crate::store::Change;
use crate::types::{Caller, Result};
use crate::watch::EventMask;

impl Core {
    /// Gives a regular file another size; what is new reads as zeros. `stamp`: its times change
    /// even if the size does not, as open(2) and ftruncate(2) demand, and truncate(2) does not.
    pub(crate) fn resize(&self, who: &Caller, node: &Node, size: u64, stamp: bool) -> Result<()> {
        let inode = node.inode();
        let body = inode.regular()?;
        if size == 0 && !self.pinned {
            // What is to be thrown away need not be loaded first.
            let pages = body.pages.write();
            body.complete
                .store(true, std::sync::atomic::Ordering::Release);
            drop(pages);
        }
        self.complete_pages(inode, body)?;
        {
            let mut pages = body.pages.write();
            self.drop_privileges(who, node)?;
            let record = {
                let mut meta = inode.write();
                // To the same size it frees what was allocated behind the end, and like tmpfs
                // moves the times of a file that holds any space.
                if stamp || size != meta.size || pages.pages() > 0 {
                    meta.modified(clock::now());
                }
                if size <= meta.size {
                    pages.truncate(size, self.account());
                }
                meta.size = size;
                inode.record(&meta)
            };
            if !self.pinned {
                let ino = inode.ino();
                self.apply(&[
                    Change::Truncate { ino, size },
                    Change::Attributes { inode: record },
                ])?;
            }
        }
        self.happened(inode, EventMask::MODIFY);
        Ok(())
    }
}
