//! The reason of a failure, and its callback.

use std::fmt;
use std::sync::OnceLock;

use parking_lot::Mutex;

type Notify = Box<dyn FnOnce(&str) + Send>;

/// The first reason of a failure, and a callback that is called once.
#[derive(Default)]
pub(super) struct ErrorCallback {
    reason: OnceLock<String>,
    notify: Mutex<Option<Notify>>,
}

impl ErrorCallback {
    /// Records the reason of a failure; only the first one counts.
    pub(super) fn report(&self, reason: &str) {
        if self.reason.set(reason.to_owned()).is_ok() {
            self.notify();
        }
    }

    /// Sets the callback; called at once if the store has failed.
    pub(super) fn set(&self, notify: Notify) {
        *self.notify.lock() = Some(notify);
        // Pairs with `report`: it sets `reason` before it locks `notify`, and this reads `reason`
        // after that lock. So a failure meanwhile is seen by one of them.
        if self.reason.get().is_some() {
            self.notify();
        }
    }

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

impl fmt::Debug for ErrorCallback {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ErrorCallback")
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
            let (error_callback, (sender, reasons)) = (ErrorCallback::default(), mpsc::channel());
            let notify = Box::new(move |reason: &str| sender.send(reason.to_owned()).unwrap());
            if before {
                error_callback.report("full");
                error_callback.set(notify);
            } else {
                error_callback.set(notify);
                error_callback.report("full");
            }
            error_callback.report("broken");
            assert_eq!(reasons.iter().collect::<Vec<_>>(), ["full"]);
        }
    }
}
