//! The log: to standard error, as `HOLDFAST_LOG` asks.

use tracing_subscriber::EnvFilter;

/// The variable that says what is logged.
const VARIABLE: &str = "HOLDFAST_LOG";

/// Begins to log. Directives that make no sense are left out, with a word about them.
pub(crate) fn begin() {
    let directives = std::env::var(VARIABLE).unwrap_or_default();
    let filter = match directives.trim() {
        "" => EnvFilter::new("warn"),
        directives => EnvFilter::new(directives),
    };
    let colours = anstream::AutoStream::choice(&std::io::stderr()) != anstream::ColorChoice::Never;
    // A second call in one process has nothing to begin.
    let _ = tracing_subscriber::fmt()
        .with_env_filter(filter)
        .with_writer(std::io::stderr)
        .with_ansi(colours)
        .try_init();
}
