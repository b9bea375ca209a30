//! What is made from the definitions of the command line: help, completions, manual pages.

use crate::fixture::{holdfast, named};

const COMMANDS: [&str; 6] = ["mount", "umount", "info", "trace", "completions", "man"];

#[test]
fn help_lists_every_command_and_hides_what_is_for_daemons() {
    let help = holdfast(["--help"]).ok();
    for command in COMMANDS {
        assert!(
            help.contains(&format!("  {command} ")),
            "{command} in {help}"
        );
        let own = holdfast([command, "--help"]).ok();
        assert!(own.contains(&format!("holdfast {command}")), "{own}");
    }
    for hidden in ["watch-mount", "ask-mount", "mark-failed-mount"] {
        assert!(!help.contains(hidden), "{help}");
    }
    let mount = holdfast(["mount", "--help"]).ok();
    for part in [
        "size=AMOUNT",
        "--foreground",
        "--transport",
        "HOLDFAST_LOG",
        "auto_unmount",
    ] {
        assert!(mount.contains(part), "{part} in {mount}");
    }
    assert!(
        !mount.contains("--daemon") && !mount.contains("--made"),
        "{mount}"
    );
}

#[test]
fn output_that_is_no_terminal_has_no_colours() {
    for run in [
        holdfast(["mount", "--help"]),
        holdfast(["mount"]),
        holdfast(["info", "/proc"]),
    ] {
        assert!(!run.out.contains('\x1b') && !run.error.contains('\x1b'));
    }
}

#[test]
fn wrong_calls_are_told_apart_from_failures() {
    holdfast(["mount"]).fails(2);
    holdfast(["frobnicate"]).fails(2);
    holdfast(["mount", "mem:", "/nowhere", "--transport", "pigeon"]).fails(2);
    holdfast(["info", "/nowhere"]).fails(1);
}

#[test]
fn completions_of_every_shell_ask_the_program() {
    for shell in ["bash", "elvish", "fish", "powershell", "zsh"] {
        let script = holdfast(["completions", shell]).ok();
        assert!(
            script.contains("COMPLETE") && script.contains(shell),
            "{shell}: {script}"
        );
    }
}

#[test]
fn the_helpers_of_mount_are_this_program_by_name() {
    assert!(
        named("/sbin/mount.holdfast", ["--help"])
            .ok()
            .contains("on behalf of mount(8)")
    );
    assert!(
        named("umount.fuse.holdfast", ["--help"])
            .ok()
            .contains("on behalf of umount(8)")
    );
    named("mount.fuse.holdfast", ["mem:"]).fails(1);
}
