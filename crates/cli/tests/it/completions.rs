//! Completions, by the engine and by the shells that are here.

use crate::fixture::{HOLDFAST, Place, Store, call, holdfast};
use holdfast_testkit::skip::skipped;
use std::path::Path;
use std::process::{Command, Stdio};

/// What the engine proposes for the last of these words.
#[track_caller]
fn proposed(shell: &str, dir: &Path, words: &[&str]) -> Vec<String> {
    let output = Command::new(HOLDFAST)
        .args(["--", "holdfast"])
        .args(words)
        .env("COMPLETE", shell)
        .env("_CLAP_IFS", "\n")
        .env("_CLAP_COMPLETE_INDEX", words.len().to_string())
        .current_dir(dir)
        .output()
        .expect("it runs");
    assert!(output.status.success(), "{words:?}");
    let text = String::from_utf8(output.stdout).expect("text");
    text.lines().map(str::to_owned).collect()
}

/// The output of a script of a shell, which gets the script for completions as its first argument;
/// `None` if there is no such shell.
fn in_shell(shell: &str, place: &Place, script: &str) -> Option<String> {
    let registration = place.path(shell);
    std::fs::write(&registration, holdfast(["completions", shell]).ok()).unwrap();
    let programs = Path::new(HOLDFAST).parent().expect("a folder");
    let path = format!("{}:{}", programs.display(), std::env::var("PATH").unwrap());
    let output = Command::new(shell)
        .args([
            "-c",
            &script.replace("SCRIPT", registration.to_str().unwrap()),
        ])
        .env("PATH", path)
        .env("HOME", place.path("home"))
        .current_dir(place.folder())
        .stdin(Stdio::null())
        .output();
    match output {
        Ok(output) => Some(String::from_utf8_lossy(&output.stdout).into_owned()),
        Err(_) => {
            skipped("a shell is not installed");
            None
        }
    }
}

#[test]
fn commands_options_values_and_paths_in_volumes_are_proposed() {
    let place = Place::new();
    let dir = place.folder();
    std::fs::create_dir(place.path("from")).unwrap();
    std::fs::write(place.path("from/file"), "x").unwrap();
    let (from, image) = (place.path("from"), place.path("v.hf"));
    call(&[&"mkfs", &"-q", &"--size", &"64m", &"--from", &from, &image]).ok();
    for (words, expected) in [
        (&["moun"][..], &["mount"][..]),
        (&["mount", "--transport", "u"], &["uring"]),
        (&["mount", "-t", "v"], &["volume"]),
        (&["mount", "-o", "ro,locks=s"], &["ro,locks=served"]),
        (&["mount", "-o", "nr_"], &["nr_inodes="]),
        (&["mount", "mem"], &["mem:"]),
        (&["cp", "v.hf"], &["v.hf", "v.hf:/"]),
        (&["rm", "v.hf:/f"], &["v.hf:/file"]),
    ] {
        assert_eq!(proposed("bash", &dir, words), expected, "{words:?}");
    }
    assert!(
        proposed("bash", &dir, &["mount", "-t", ""])
            .iter()
            .all(|word| word != "uring")
    );
}

#[test]
fn mount_points_are_proposed() {
    let Some(place) = Place::over(Store::Memory) else {
        return;
    };
    place.mount(&[]);
    let mnt = place.mnt();
    for command in ["umount", "info", "top", "trim", "cp"] {
        assert_eq!(
            proposed("bash", Path::new("/"), &[command, &mnt])[0],
            mnt,
            "{command}"
        );
    }
    place.umount();
    assert!(!proposed("bash", Path::new("/"), &["umount", &mnt]).contains(&mnt));
}

/// A call of bash's completion function, as bash makes it: it splits words at `=` and `:`.
const IN_BASH: &str = r#"
    source SCRIPT
    complete -p holdfast
    ask() { # LINE WORD…
        COMP_LINE=$1; COMP_POINT=${#1}; shift
        COMP_WORDS=("$@"); COMP_CWORD=$(($# - 1))
        local last=${!#}
        case $last in = | :) last= ;; esac
        _holdfast holdfast "$last" 2>/dev/null
        printf '<%s>' "${COMPREPLY[@]}"; echo
    }
    ask "holdfast mou" holdfast mou
    ask "holdfast mount -o ro,locks=s" holdfast mount -o ro,locks = s
    ask "holdfast mount -o transport=" holdfast mount -o transport =
    ask "holdfast rm v.hf:/f" holdfast rm v.hf : /f
    ask "holdfast warm --sort=n" holdfast warm --sort = n
"#;

#[test]
fn bash_zsh_and_fish_ask_the_program() {
    let place = Place::new();
    std::fs::create_dir_all(place.path("home")).unwrap();
    std::fs::create_dir(place.path("from")).unwrap();
    std::fs::write(place.path("from/file"), "x").unwrap();
    let (from, image) = (place.path("from"), place.path("v.hf"));
    call(&[&"mkfs", &"-q", &"--size", &"64m", &"--from", &from, &image]).ok();
    if let Some(out) = in_shell("bash", &place, IN_BASH) {
        let lines: Vec<&str> = out.lines().collect();
        assert!(lines[0].contains("_holdfast holdfast"), "{out}");
        let expected = [
            "<mount>",
            "<served>",
            "<auto><uring><dev>",
            "</file>",
            "<none>",
        ];
        assert_eq!(lines[1..], expected, "{out}");
    }
    let script = "source SCRIPT; complete -C 'holdfast mount -o ro,locks=s'; complete -C 'holdfast rm v.hf:/f'";
    if let Some(out) = in_shell("fish", &place, script) {
        assert_eq!(out, "ro,locks=served\nv.hf:/file\n");
    }
    // In zsh an answer needs a terminal: the function is there, and the engine answers it.
    let script = "autoload -Uz compinit; compinit -u -D; source SCRIPT; print ${_comps[holdfast]}";
    if let Some(out) = in_shell("zsh", &place, script) {
        assert!(out.contains("holdfast"), "{out}");
    }
    let found = proposed("zsh", &place.folder(), &["mount", "-o", "locks=s"]);
    assert_eq!(found, ["locks=served"]);
}
