//! Constructors that are `const`.

/// Declares a `const` function. Models define a macro of the same name without `const`, because
/// loom's atomics cannot be built in constants.
#[macro_export]
macro_rules! constant {
    ($(#[$meta:meta])* $visibility:vis fn $($function:tt)*) => {
        $(#[$meta])* $visibility const fn $($function)*
    };
}
