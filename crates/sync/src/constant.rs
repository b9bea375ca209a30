//! Constructors that are `const`.

/// Declares a function that is `const`. Models have a macro of the same name that leaves that out,
/// because loom's atomics are not made in constants.
#[macro_export]
macro_rules! constant {
    ($(#[$meta:meta])* $visibility:vis fn $($function:tt)*) => {
        $(#[$meta])* $visibility const fn $($function)*
    };
}
