//! The spans of functions that an operation passes on its way.

/// Records a `tracing` span while the function that it stands in runs. The field `at` is the path
/// of that function, so its name cannot be out of date.
///
/// A release build has none of it. A test compares the spans of five operations with
/// `docs/internals.md`.
#[macro_export]
macro_rules! hop {
    () => {
        #[cfg(debug_assertions)]
        let _hop = {
            fn here() {}
            let name = ::std::any::type_name_of_val(&here);
            $crate::trace_span!("hop", at = name).entered()
        };
    };
}
