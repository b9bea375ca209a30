//! The core by its public operations, over stores of the test kit.

mod coherence;
mod crowd;
mod damaged;
mod durable;
mod failing_store;
mod in_flight;
mod invariants;
mod kept;
mod kernel_held;
mod lifetime;
mod quota;
mod races;
mod told_times;
