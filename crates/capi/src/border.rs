//! The border to C: what a call answers, and the one place where a panic ends.

use std::any::Any;
use std::ffi::{c_char, c_int};
use std::panic::{AssertUnwindSafe, catch_unwind};

use holdfast::types::Errno;

use crate::failure::{self, Failure, Result};
use crate::objects;

/// A result of C that is negative for an error.
pub(crate) trait Answer<R> {
    fn success(result: R) -> Self;
    fn failure(errno: Errno) -> Self;
}

macro_rules! numbers {
    ($($result:ty as $answer:ty: $convert:expr;)*) => {$(
        impl Answer<$result> for $answer {
            fn success(result: $result) -> Self {
                $convert(result)
            }

            fn failure(errno: Errno) -> Self {
                -(errno.raw() as Self)
            }
        }
    )*};
}

numbers! {
    () as c_int: |()| 0;
    bool as c_int: c_int::from;
    // No buffer of C is longer, and no number of names larger.
    usize as isize: usize::cast_signed;
}

/// A text, which there always is.
impl Answer<*const c_char> for *const c_char {
    fn success(text: *const c_char) -> Self {
        text
    }

    fn failure(_: Errno) -> Self {
        c"".as_ptr()
    }
}

/// Runs the function of this name. An error becomes its negative number, and its reason is kept for
/// `hf_last_error`. A panic becomes `-EIO`, and from then on all handles of the file system in use
/// only answer that.
pub(crate) fn run<R, A: Answer<R>>(function: &str, call: impl FnOnce() -> Result<R>) -> A {
    objects::begin_call();
    // What a panic leaves half done is used by no call: the file system is dead.
    let result = catch_unwind(AssertUnwindSafe(call)).unwrap_or_else(|panic| {
        if let Some(shared) = objects::used() {
            shared.kill();
        }
        let reason = format!(
            "the library panicked: {}; the handle is dead: close it, and report the panic",
            message(&*panic)
        );
        // The payload's own drop could panic.
        std::mem::forget(panic);
        Err(Failure::new(Errno::EIO, reason))
    });
    match result {
        Ok(result) => A::success(result),
        Err(Failure { errno, mut reason }) => {
            let volume = (errno == Errno::EIO).then(objects::used).flatten();
            if let Some(failure) = volume.and_then(|shared| shared.failure()) {
                reason = format!("{reason}; the volume: {failure}");
            }
            failure::keep(&format!("{function}: {reason}"));
            A::failure(errno)
        }
    }
}

/// The text of a panic.
fn message(panic: &(dyn Any + Send)) -> &str {
    let text = panic.downcast_ref::<&str>().copied();
    let text = text.or_else(|| panic.downcast_ref::<String>().map(String::as_str));
    text.unwrap_or("without a message")
}

#[cfg(test)]
mod tests {
    use zerocopy::FromZeros;

    use super::*;
    use crate::objects::{Place, find, insert, remove};
    use crate::open::memory;

    #[test]
    fn a_panic_is_an_error_and_the_handle_is_dead() {
        let [handle, other] =
            [(); 2].map(|()| insert(memory(FromZeros::new_zeroed()).unwrap()).unwrap());
        let answer = run::<(), c_int>("hf_test", || {
            find::<Place>(handle)?;
            panic!("a bug")
        });
        assert_eq!(answer, -libc::EIO);
        for _ in 0..2 {
            let answer: c_int = run("hf_test", || find::<Place>(handle).map(|_| ()));
            assert_eq!(answer, -libc::EIO);
        }
        let answer: c_int = run("hf_test", || find::<Place>(other).map(|_| ()));
        assert_eq!(answer, 0, "other file systems go on");
        assert!(remove::<Place>(handle).is_ok());
    }

    #[test]
    fn errors_are_negative_numbers_of_each_width() {
        fn fail<R>() -> Result<R> {
            Err(Failure::new(Errno::ENOENT, "gone"))
        }
        assert_eq!(run::<(), c_int>("hf_test", fail), -2);
        assert_eq!(run::<usize, isize>("hf_test", fail), -2);
        assert_eq!(run::<usize, isize>("hf_test", || Ok(7)), 7);
    }
}
