//! What others do that is seldom: between an answer and its being told, without a word, and with
//! numbers that are used again.

use super::SharedStore;
use holdfast_types::{FileType, Ino};
use parking_lot::Mutex;
use std::fmt;
use std::sync::atomic::Ordering;

type Act = Box<dyn FnOnce(&SharedStore) + Send>;

#[derive(Default)]
pub(super) struct Meanwhile(Mutex<Option<Act>>);

impl fmt::Debug for Meanwhile {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Meanwhile")
    }
}

impl SharedStore {
    /// Another does this, and it is told, after the next answer is made and before the core has it.
    pub fn meanwhile(&self, act: impl FnOnce(&Self) + Send + 'static) {
        *self.meanwhile.0.lock() = Some(Box::new(act));
    }

    /// An answer is made: nothing is locked.
    pub(super) fn answered(&self) {
        let act = self.meanwhile.0.lock().take();
        if let Some(act) = act {
            act(self);
        }
    }

    /// From now on it needs a proof that notifications arrive. The first is good for this time.
    pub fn prove(&self, millis: u64) {
        let until = self.millis.load(Ordering::SeqCst) + millis;
        self.proved.store(until, Ordering::SeqCst);
    }

    /// No notification arrives from now on, until it is [connected](Self::connect).
    pub fn cut_off(&self) {
        self.is_cut_off.store(true, Ordering::SeqCst);
    }

    /// Notifications arrive again, and those since it was cut off are lost.
    pub fn connect(&self) {
        if self.is_cut_off.swap(false, Ordering::SeqCst) {
            self.miss();
        }
    }

    /// Another writes a file anew, and nothing is told of that.
    ///
    /// # Panics
    /// If there is no such file.
    pub fn write_untold(&self, dir: Ino, name: &[u8], content: &[u8]) {
        let mut held = self.held.lock();
        let ino = held.child(dir, name).expect("it is there");
        if let Ok(file) = held.file(ino) {
            file.pages.truncate(0);
            file.pages.write(0, content);
            file.meta().size = content.len() as u64;
        }
        held.changed(ino);
    }

    /// Another makes a symbolic link; tells its number. One that is there is replaced by a link
    /// that gets its number.
    pub fn link(&self, dir: Ino, name: &[u8], target: &[u8]) -> Ino {
        let mut held = self.held.lock();
        let was = held.child(dir, name);
        let ino = was.unwrap_or_else(|| held.make(dir, name, FileType::Symlink));
        if let Some(link) = held.inodes.get_mut(&ino) {
            link.target = Some(target.into());
        }
        held.changed(dir);
        held.changed(ino);
        drop(held);
        self.tell_of_name((dir, name), &[Some(ino)]);
        ino
    }

    /// What is known under this number becomes an inode of another number.
    pub(super) fn renumber(&self, ino: Ino) {
        let mut held = self.held.lock();
        let Some(mut inode) = held.inodes.remove(&ino) else {
            return;
        };
        held.last += 1;
        let other = Ino(held.last);
        inode.meta().ino = other;
        held.inodes.insert(other, inode);
        let names = held
            .inodes
            .values_mut()
            .filter_map(|inode| inode.names.as_mut());
        for leads_to in names.flat_map(|names| names.values_mut()) {
            if *leads_to == ino {
                *leads_to = other;
            }
        }
    }
}
