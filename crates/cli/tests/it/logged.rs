//! Where the log of a daemon goes.

use crate::fixture::{HOLDFAST, Place, on_each_store, wait_until};
use crate::private::{HELPERS, well};
use rustix::process::{Pid, Signal, kill_process};
use std::fs;
use std::os::unix::fs::symlink;
use std::os::unix::net::UnixDatagram;
use std::process::{Command, Stdio};
use std::time::Duration;

/// A script that ends a daemon without a log file by a signal, which logs an error. It prints only
/// the process id.
const ENDED_BY_A_SIGNAL: &str = r#"
    holdfast mount mem: "$T/mnt" >/dev/null
    pid=$(holdfast info --json "$T/mnt" | sed 's/.*"pid":\([0-9]*\).*/\1/')
    kill -QUIT "$pid"
    while kill -0 "$pid" 2>/dev/null; do sleep 0.05; done
    echo "$pid"
"#;

/// A socket in the place of the system's log.
fn listening(place: &Place, name: &str) -> UnixDatagram {
    let socket = UnixDatagram::bind(place.path(name)).unwrap();
    socket
        .set_read_timeout(Some(Duration::from_secs(60)))
        .unwrap();
    socket
}

/// The next entry that is not empty: a client of the journal sends an empty one first.
fn entry(socket: &UnixDatagram) -> String {
    let mut bytes = [0; 1 << 14];
    loop {
        let len = socket.recv(&mut bytes).expect("an entry");
        if len > 0 {
            return String::from_utf8_lossy(&bytes[..len]).into_owned();
        }
    }
}

#[test]
fn without_a_file_the_log_goes_to_syslog() {
    let Some(place) = Place::alone() else {
        return;
    };
    let socket = listening(&place, "log");
    let pid = well(&place, HELPERS, ENDED_BY_A_SIGNAL);
    let entry = entry(&socket);
    // The facility "daemon", the severity "error".
    assert!(entry.starts_with("<27>"), "{entry}");
    let subject = format!(" holdfast[{}]: {} (mem:): ERROR ", pid.trim(), place.mnt());
    assert!(entry.contains(&subject), "{entry}");
    assert!(
        entry.contains("the daemon ends") && entry.contains("SIGQUIT"),
        "{entry}"
    );
}

#[test]
fn where_there_is_a_journal_the_log_goes_there() {
    let Some(place) = Place::alone() else {
        return;
    };
    let socket = listening(&place, "journal");
    well(&place, HELPERS, ENDED_BY_A_SIGNAL);
    let entry = entry(&socket);
    for part in [
        "PRIORITY\n",
        "SYSLOG_IDENTIFIER\n",
        "HOLDFAST_SOURCE\n",
        "HOLDFAST_MOUNT_POINT\n",
        "the daemon ends",
        &place.mnt(),
    ] {
        assert!(entry.contains(part), "{part:?} in {entry:?}");
    }
}

/// A mount in the foreground. The environment says that its standard error is the journal, as in a
/// unit of systemd.
const IN_A_UNIT: &str = r#"
    : >"$T/errors"
    JOURNAL_STREAM=$(stat -c %d:%i "$T/errors") HOLDFAST_LOG=holdfast=info \
        holdfast mount --foreground mem: "$T/mnt" 2>"$T/errors" &
    while ! mountpoint -q "$T/mnt"; do sleep 0.05; done
    kill "$!"
    wait "$!"
    cat "$T/errors"
"#;

#[test]
fn in_a_unit_entries_have_their_fields_and_come_once() {
    let Some(place) = Place::alone() else {
        return;
    };
    let socket = listening(&place, "journal");
    let errors = well(&place, HELPERS, IN_A_UNIT);
    assert!(!errors.contains("INFO"), "{errors}");
    let entry = entry(&socket);
    for part in [
        "PRIORITY\n",
        "HOLDFAST_SOURCE\n",
        "mem:",
        "live",
        &place.mnt(),
    ] {
        assert!(entry.contains(part), "{part:?} in {entry:?}");
    }
}

/// Ends the daemon by a signal, and waits for the last line in this file.
fn end_and_read(place: &Place, log: &std::path::Path) {
    let daemon = Pid::from_raw(place.daemon()).unwrap();
    kill_process(daemon, Signal::QUIT).unwrap();
    wait_until("the log has the end", || {
        fs::read_to_string(log).is_ok_and(|text| text.contains("the daemon ends"))
    });
    wait_until("the mount can be cleared", || {
        crate::fixture::umount(&place.mnt()).code == Some(0)
    });
}

on_each_store! {
    fn an_option_names_the_file_that_the_log_is_appended_to(place: &Place) {
        let log = place.path("a,b.log");
        fs::write(&log, "before\n").unwrap();
        let option = format!("log={}", log.to_str().unwrap().replace(',', "\\,"));
        place.mount(&["-o", &option]);
        let info = place.info();
        assert!(info["options"].as_str().unwrap().contains("a,b.log"), "{info}");
        end_and_read(place, &log);
        assert!(fs::read_to_string(&log).unwrap().starts_with("before\n"));
    }

    fn a_line_of_fstab_names_it_as_well_and_a_relative_path_is_the_callers(place: &Place) {
        let helper = place.path("mount.holdfast");
        symlink(HOLDFAST, &helper).unwrap();
        let mounted = Command::new(&helper)
            .args([&place.source(), &place.mnt(), "-o", "rw,log=daemon.log"])
            .current_dir(place.path(""))
            .stdin(Stdio::null())
            .status()
            .unwrap();
        assert!(mounted.success());
        end_and_read(place, &place.path("daemon.log"));
    }
}
