# Chores by name; `just` lists them. CONTRIBUTING.md says when to run which.

_list:
    @just --list --unsorted

# What every change must pass before it is committed.
check: fmt clippy tidy test docs

# The formatting is rustfmt's.
fmt:
    cargo fmt --all --check

# Lints of rustc and clippy, warnings denied.
clippy:
    cargo clippy --workspace --all-targets -- -D warnings

# The rules that no lint covers.
tidy:
    cargo xtask tidy

# Unit tests, tests of public behaviour, examples in the documentation: within ten minutes on two cores.
test *ARGUMENTS:
    cargo test {{ARGUMENTS}}

# The documentation, with broken links denied.
docs:
    RUSTDOCFLAGS="-D warnings" cargo doc --workspace --no-deps --document-private-items

# Licences, advisories and sources of all dependencies (needs cargo-deny).
deny:
    cargo deny check

# Uploads the crates to crates.io, each after those that it uses: `just publish --dry-run` builds them only.
publish *ARGUMENTS:
    cargo publish --workspace {{ARGUMENTS}}

# Packages of this commit, tried on Debian and Alpine (needs root and many minutes).
packages *DIR:
    scripts/packages.sh {{DIR}}

# Does it build with the oldest Rust that Cargo.toml promises?
msrv:
    scripts/msrv.sh

# The concurrent crates' tests, then the stress test, under both sanitizers.
safety: safety-thread safety-address

# Data races. The standard library itself is not instrumented (that takes a nightly toolchain): a
# report wholly inside std may be false, see docs/testing.md.
safety-thread SECONDS="60":
    scripts/sanitize.sh thread {{SECONDS}}

# Which operations that commute touch a cache line in common, over both stores, against the constants.
conflicts:
    cargo xtask conflicts --check
    cargo xtask conflicts --check --store volume

# The library for C: its header, its test from C, the pages for other languages, its interface.
capi:
    scripts/capi.sh

# How many instructions an operation takes, against the limits (needs valgrind).
instructions:
    cargo xtask instructions --check

# Memory errors; leaks are not looked for: see docs/testing.md.
safety-address SECONDS="60":
    scripts/sanitize.sh address {{SECONDS}}

# Fuzz one target (`just fuzz-list`) for some seconds; needs cargo-fuzz. Leaks are not looked for: see
# docs/testing.md.
fuzz TARGET SECONDS="60":
    ASAN_OPTIONS=detect_leaks=0 RUSTC_BOOTSTRAP=1 cargo fuzz run {{TARGET}} -- -max_total_time={{SECONDS}}

# The names of the fuzz targets.
fuzz-list:
    cargo fuzz list

# The workload of many small files, in memory against tmpfs.
bench FILES="100000" THREADS="2":
    mkdir -p /dev/shm/holdfast-bench
    cargo run --release -p holdfast-bench -- sharded --threads {{THREADS}} --files {{FILES}} \
        --target mem: --target dir:/dev/shm/holdfast-bench
    rmdir /dev/shm/holdfast-bench

# The Python package: built, tested and type-checked in an environment of its own.
python:
    scripts/python.sh

# What continuous integration runs for each change: within 25 minutes on two cores.
ci:
    .ci/run

# Everything there is, in full length: tests, suites over each transport, store and option, the conflict
# audit, the sanitizers. Some hours; it needs root and /dev/fuse, and says at the end what it ran.
deep:
    HOLDFAST_EFFORT=deep .ci/run
