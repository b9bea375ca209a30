//! Why a store failed, and the callback that is told when it does.

use std::fmt;
use std::sync::OnceLock;

use parking_lot::Mutex;

type Notify = Box<dyn FnOnce(&str) + Send>;

/// The reason of a failure, which is kept, and the callback for it, which is called once.
#[derive(Default)]
pub(super) struct Alarm {
    reason: OnceLock<String>,
    notify: Mutex<Option<Notify>>,
}

impl Alarm {
    /// The store failed for this reason; a later one changes nothing.
    pub(super) fn ring(&self, reason: &str) {
        if self.reason.set(reason.to_owned()).is_ok() {
            self.notify();
        }
    }

    /// Calls this with the reason when the store fails, at once if it has.
    pub(super) fn set(&self, notify: Notify) {
        *self.notify.lock() = Some(notify);
        // Of a failure just before either thread takes the callback: the reason is written before the lock is taken there,
        // and read behind the lock here.
        if self.reason.get().is_some() {
            self.notify();
        }
    }

    /// Why the store failed, if it has.
    pub(super) fn reason(&self) -> Option<&str> {
        self.reason.get().map(String::as_str)
    }

    fn notify(&self) {
        let notify = self.notify.lock().take();
        if let (Some(notify), Some(reason)) = (notify, self.reason.get()) {
            notify(reason);
        }
    }
}

impl fmt::Debug for Alarm {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Alarm")
            .field("reason", &self.reason)
            .finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::mpsc;

    #[test]
    fn the_first_reason_is_told_once_whether_it_comes_before_or_behind() {
        for before in [false, true] {
            let (error_callback, (sender, told)) = (Alarm::default(), mpsc::channel());
            let notify = Box::new(move |reason: &str| sender.send(reason.to_owned()).unwrap());
            if before {
                error_callback.ring("full");
                error_callback.set(notify);
            } else {
                error_callback.set(notify);
                error_callback.ring("full");
            }
            error_callback.ring("broken");
            assert_eq!(told.iter().collect::<Vec<_>>(), ["full"]);
        }
    }
}
