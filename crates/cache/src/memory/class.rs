use std::ops::{Add, AddAssign};

/// What memory is used for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Class {
    /// Inodes, with the tables that find them.
    Inodes,
    /// Names of directories.
    Names,
    /// Pages of files, with the tables that find them.
    Content,
    /// Nodes of a volume's trees.
    Nodes,
    /// Changes that a volume has not put into its trees yet.
    Dirty,
    /// Pages that a volume has not written yet, without those that a file still has; if that is
    /// unknown, all of them.
    Waiting,
    /// Records of evicted inodes that a front end's kernel holds.
    Kernel,
    /// Page frames that no file has any more, and that do not wait for the device. They wait for
    /// the end of readers' guards, or for reuse.
    Garbage,
}

impl Class {
    /// All of them, in the order of reports.
    pub const ALL: [Self; 8] = [
        Self::Inodes,
        Self::Names,
        Self::Content,
        Self::Nodes,
        Self::Dirty,
        Self::Waiting,
        Self::Kernel,
        Self::Garbage,
    ];

    /// Its name in reports.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Inodes => "inodes",
            Self::Names => "names",
            Self::Content => "content",
            Self::Nodes => "nodes",
            Self::Dirty => "dirty",
            Self::Waiting => "waiting",
            Self::Kernel => "kernel-held",
            Self::Garbage => "garbage",
        }
    }
}

/// Bytes by class.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Usage([u64; Class::ALL.len()]);

impl Usage {
    /// Nothing.
    pub const NONE: Self = Self([0; Class::ALL.len()]);

    /// This, with `bytes` more of a class.
    #[must_use]
    pub fn with(mut self, class: Class, bytes: u64) -> Self {
        let held = &mut self.0[class as usize];
        *held = held.saturating_add(bytes);
        self
    }

    /// This, with `bytes` of a class in place of the former number.
    #[must_use]
    pub fn set(mut self, class: Class, bytes: u64) -> Self {
        self.0[class as usize] = bytes;
        self
    }

    /// Bytes of a class.
    #[must_use]
    pub fn of(&self, class: Class) -> u64 {
        self.0[class as usize]
    }

    /// Bytes of all classes.
    #[must_use]
    pub fn total(&self) -> u64 {
        self.0.iter().copied().fold(0, u64::saturating_add)
    }

    /// Bytes that can be freed at any time, because the store can bring them back.
    #[must_use]
    pub fn reclaimable(&self) -> u64 {
        let classes = [Class::Inodes, Class::Names, Class::Content];
        let bytes = classes.map(|class| self.of(class)).into_iter();
        bytes.fold(0, u64::saturating_add)
    }

    /// Bytes of the others.
    #[must_use]
    pub fn fixed(&self) -> u64 {
        self.total() - self.reclaimable()
    }
}

impl Add for Usage {
    type Output = Self;

    fn add(mut self, other: Self) -> Self {
        self += other;
        self
    }
}

impl AddAssign for Usage {
    fn add_assign(&mut self, other: Self) {
        for (held, more) in self.0.iter_mut().zip(other.0) {
            *held = held.saturating_add(more);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn classes_add_up_and_part_into_those_that_can_go_and_the_others() {
        let usage = Class::ALL
            .into_iter()
            .zip(1..)
            .fold(Usage::NONE, |sum, (class, bytes)| sum.with(class, bytes));
        assert_eq!(usage.total(), 36);
        assert_eq!((usage.reclaimable(), usage.fixed()), (6, 30));
        assert_eq!((usage + usage).of(Class::Names), 4);
        let names: Vec<&str> = Class::ALL.map(Class::name).to_vec();
        assert_eq!(names[0], "inodes");
    }
}
