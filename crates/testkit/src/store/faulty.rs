use super::{Call, Hook, Wrapped};
use holdfast_types::{Errno, Ino, Result};
use std::sync::{Mutex, PoisonError};

/// A store that fails as it is told.
pub type FaultyStore = Wrapped<Faults>;

/// One fault to come.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Fault {
    /// The call that fails; `None`: any.
    pub call: Option<Call>,
    /// Number of such calls that succeed first.
    pub after: u64,
    /// Number of calls that fail then; `None`: all.
    pub times: Option<u64>,
    /// What they answer.
    pub error: Errno,
}

/// The faults of a [`FaultyStore`]: none at first.
#[derive(Debug, Default)]
pub struct Faults {
    planned: Mutex<Vec<Fault>>,
    damaged: Mutex<Vec<Ino>>,
}

impl Faults {
    /// Plans a fault, counted from now.
    pub fn plan(&self, fault: Fault) {
        self.planned
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .push(fault);
    }

    /// From now on this inode cannot be loaded: `EIO`.
    pub fn damage(&self, ino: Ino) {
        self.damaged
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .push(ino);
    }

    /// Forgets all faults, and all damage.
    pub fn heal(&self) {
        self.damaged
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .clear();
        self.planned
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .clear();
    }
}

impl Hook for Faults {
    fn before(&self, call: Call) -> Result<()> {
        let mut planned = self.planned.lock().unwrap_or_else(PoisonError::into_inner);
        let mut answer = Ok(());
        for fault in planned
            .iter_mut()
            .filter(|fault| fault.call.is_none_or(|it| it == call))
        {
            match (&mut fault.after, &mut fault.times) {
                (0, Some(0)) => continue,
                (0, Some(times)) => *times -= 1,
                (0, None) => {}
                (after, _) => {
                    *after -= 1;
                    continue;
                }
            }
            answer = Err(fault.error);
        }
        answer
    }

    fn loads(&self, ino: Ino) -> Result<()> {
        let damaged = self.damaged.lock().unwrap_or_else(PoisonError::into_inner);
        match damaged.contains(&ino) {
            true => Err(Errno::EIO),
            false => Ok(()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_fault_strikes_after_its_count_and_as_often_as_planned() {
        let faults = Faults::default();
        let call = Some(Call::Apply);
        faults.plan(Fault {
            call,
            after: 2,
            times: Some(1),
            error: Errno::EIO,
        });
        let answers: Vec<_> = (0..4).map(|_| faults.before(Call::Apply)).collect();
        assert_eq!(answers, [Ok(()), Ok(()), Err(Errno::EIO), Ok(())]);
        assert_eq!(faults.before(Call::Commit), Ok(()));
        faults.plan(Fault {
            call: None,
            after: 0,
            times: None,
            error: Errno::ENOSPC,
        });
        assert_eq!(faults.before(Call::Commit), Err(Errno::ENOSPC));
        faults.heal();
        assert_eq!(faults.before(Call::Commit), Ok(()));
    }
}
