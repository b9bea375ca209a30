//! Which number belongs to what, of a tree that is computed.
//!
//! The root comes first. Then each thread has one run of numbers: its own directory, the
//! directories of files below that, if there are such, and the files.

use super::names;
use holdfast_core::types::{FileType, Ino};
use std::ops::Range;

/// A tree: each thread's files in one directory of its own, or dealt to directories below that.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Layout {
    /// At least one.
    pub(crate) threads: usize,
    /// Files of each thread, at least one.
    pub(crate) files: usize,
    /// Of which so many are in one directory.
    pub(crate) per_dir: Option<usize>,
}

/// What a number stands for; a thread's things are counted from 0.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Thing {
    Root,
    Top { thread: usize },
    Folder { thread: usize, folder: usize },
    File { thread: usize, file: usize },
}

use Thing::{File, Folder, Root, Top};

impl Layout {
    /// Directories of files below a thread's own.
    fn folders(&self) -> usize {
        self.per_dir.map_or(0, |each| self.files.div_ceil(each))
    }

    /// Numbers of one thread.
    fn run(&self) -> usize {
        1 + self.folders() + self.files
    }

    /// The highest number.
    pub(super) fn last(&self) -> Ino {
        Ino((1 + self.threads * self.run()) as u64)
    }

    /// What this number stands for, if for anything.
    pub(super) fn thing(&self, ino: Ino) -> Option<Thing> {
        if ino == Ino::ROOT {
            return Some(Root);
        }
        let number = usize::try_from(ino.0.checked_sub(2)?).ok()?;
        let (thread, place) = (number / self.run(), number % self.run());
        let folders = self.folders();
        let thing = match place.checked_sub(1) {
            None => Top { thread },
            Some(folder) if folder < folders => Folder { thread, folder },
            Some(file) => File {
                thread,
                file: file - folders,
            },
        };
        (thread < self.threads).then_some(thing)
    }

    /// Its number.
    pub(super) fn ino(&self, thing: Thing) -> Ino {
        let (thread, place) = match thing {
            Root => return Ino::ROOT,
            Top { thread } => (thread, 0),
            Folder { thread, folder } => (thread, 1 + folder),
            File { thread, file } => (thread, 1 + self.folders() + file),
        };
        Ino((2 + thread * self.run() + place) as u64)
    }

    /// The directory it is in.
    pub(super) fn parent(&self, thing: Thing) -> Thing {
        match (thing, self.per_dir) {
            (Root | Top { .. }, _) => Root,
            (Folder { thread, .. }, _) | (File { thread, .. }, None) => Top { thread },
            (File { thread, file }, Some(each)) => Folder {
                thread,
                folder: file / each,
            },
        }
    }

    /// How many things are in a directory.
    pub(super) fn children(&self, dir: Thing) -> usize {
        match (dir, self.per_dir) {
            (Root, _) => self.threads,
            (Top { .. }, None) => self.files,
            (Top { .. }, Some(_)) => self.folders(),
            (Folder { folder, .. }, Some(each)) => self.held(folder, each).len(),
            (Folder { .. }, None) | (File { .. }, _) => 0,
        }
    }

    /// The files of a directory.
    fn held(&self, folder: usize, each: usize) -> Range<usize> {
        let end = self.files.min((folder + 1) * each);
        folder * each..end
    }

    /// What is at this place in a directory, if there is such a place.
    pub(super) fn child(&self, dir: Thing, place: usize) -> Option<Thing> {
        if place >= self.children(dir) {
            return None;
        }
        Some(match (dir, self.per_dir) {
            (Root, _) => Top { thread: place },
            (Top { thread }, None) => File {
                thread,
                file: place,
            },
            (Top { thread }, Some(_)) => Folder {
                thread,
                folder: place,
            },
            (Folder { thread, folder }, Some(each)) => File {
                thread,
                file: self.held(folder, each).start + place,
            },
            (Folder { .. }, None) | (File { .. }, _) => return None,
        })
    }

    /// Where in its directory it is.
    pub(super) fn place(&self, thing: Thing) -> usize {
        match (thing, self.per_dir) {
            (Root, _) => 0,
            (Top { thread }, _) => thread,
            (Folder { folder, .. }, _) => folder,
            (File { file, .. }, each) => file % each.unwrap_or(usize::MAX),
        }
    }

    /// What has this name in a directory.
    pub(super) fn named(&self, dir: Thing, name: &[u8]) -> Option<Thing> {
        let thing = match (dir, self.per_dir) {
            (Root, _) => Top {
                thread: names::number(name, "t", names::top)?,
            },
            (Top { thread }, Some(_)) => Folder {
                thread,
                folder: names::number(name, "d", names::folder)?,
            },
            (Top { thread } | Folder { thread, .. }, _) => File {
                thread,
                file: names::number(name, names::FILE, names::file)?,
            },
            (File { .. }, _) => return None,
        };
        let known = self.parent(thing) == dir && self.place(thing) < self.children(dir);
        known.then_some(thing)
    }
}

impl Thing {
    /// What it is called in its directory; the root has no name.
    pub(super) fn name(self) -> String {
        match self {
            Root => String::new(),
            Top { thread } => names::top(thread),
            Folder { folder, .. } => names::folder(folder),
            File { file, .. } => names::file(file),
        }
    }

    pub(super) fn kind(self) -> FileType {
        match self {
            File { .. } => FileType::Regular,
            Root | Top { .. } | Folder { .. } => FileType::Directory,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_names_and_places_lead_to_the_same_thing() {
        for per_dir in [None, Some(1), Some(10), Some(100)] {
            let layout = Layout {
                threads: 3,
                files: 25,
                per_dir,
            };
            let mut met = 0;
            for number in 1..=layout.last().0 {
                let thing = layout.thing(Ino(number)).expect("a number in use");
                assert_eq!(layout.ino(thing), Ino(number));
                let dir = layout.parent(thing);
                assert!(layout.place(thing) <= layout.children(dir), "{thing:?}");
                if thing != Root {
                    assert_eq!(layout.child(dir, layout.place(thing)), Some(thing));
                    assert_eq!(layout.named(dir, thing.name().as_bytes()), Some(thing));
                    met += 1;
                }
                assert_eq!(layout.child(thing, layout.children(thing)), None);
            }
            let dirs = (1..=layout.last().0).filter_map(|number| layout.thing(Ino(number)));
            let listed: usize = dirs.map(|dir| layout.children(dir)).sum();
            assert_eq!(listed, met, "{layout:?}");
            assert_eq!(layout.thing(Ino(0)), None);
            assert_eq!(layout.thing(Ino(layout.last().0 + 1)), None);
        }
    }
}
