//! What the daemon tells the service manager: a socket of the test receives it.

use crate::failed::Host;
use crate::fixture::{Foreground, HOLDFAST, Place, call, is_gone, on_each_store, wait_until};
use std::fs;
use std::os::unix::net::UnixDatagram;
use std::process::{Command, Stdio};
use std::time::Duration;

/// The service manager's socket.
pub(crate) struct Manager(UnixDatagram);

impl Manager {
    pub(crate) fn of(place: &Place) -> Self {
        let socket = UnixDatagram::bind(place.path("notify")).unwrap();
        let timeout = Some(Duration::from_secs(60));
        socket.set_read_timeout(timeout).unwrap();
        Self(socket)
    }

    /// The command as a unit's process.
    pub(crate) fn unit(&self) -> Command {
        let address = self.0.local_addr().unwrap();
        let mut command = Command::new(HOLDFAST);
        command
            .env("NOTIFY_SOCKET", address.as_pathname().unwrap())
            .stdin(Stdio::null())
            .stderr(Stdio::null());
        command
    }

    /// The next message.
    #[track_caller]
    pub(crate) fn next(&self) -> String {
        let mut bytes = [0; 4096];
        let length = self.0.recv(&mut bytes).expect("a message");
        String::from_utf8(bytes[..length].to_vec()).unwrap()
    }

    /// The first message with this line.
    #[track_caller]
    pub(crate) fn find(&self, line: &str) -> String {
        loop {
            let message = self.next();
            if message.contains(line) {
                return message;
            }
        }
    }

    /// Is no message left?
    pub(crate) fn is_silent_for(&self, time: Duration) -> bool {
        self.0.set_read_timeout(Some(time)).unwrap();
        let silent = self.0.recv(&mut [0; 4096]).is_err();
        self.0
            .set_read_timeout(Some(Duration::from_secs(60)))
            .unwrap();
        silent
    }
}

on_each_store! {
    fn a_unit_in_the_foreground_is_ready_when_the_mount_is_live_and_stops_at_its_end(place: &Place) {
        let manager = Manager::of(place);
        let arguments = ["mount", "--foreground", &place.source(), &place.mnt()];
        let child = manager.unit().args(arguments).spawn().unwrap();
        let unit = Foreground { child };
        let opening = manager.next();
        assert_eq!(opening, format!("STATUS=opening {}\n", place.source()));
        let ready = manager.next();
        assert!(place.is_mounted(), "told before the mount is live");
        let status = format!("READY=1\nSTATUS=serving {} over ", place.source());
        assert!(ready.starts_with(&status), "{ready}");
        place.umount();
        assert_eq!(manager.next(), format!("STOPPING=1\nSTATUS=closing {}\n", place.source()));
        assert_eq!(unit.end(), Some(0));
    }

    fn a_daemon_in_the_background_becomes_the_main_process_of_its_unit(place: &Place) {
        let manager = Manager::of(place);
        let mut unit = manager.unit();
        // The watchdog of the unit's first process is the daemon's.
        unit.env("WATCHDOG_USEC", "60000000").env("WATCHDOG_PID", "1");
        assert!(unit.args(["mount", &place.source(), &place.mnt()]).status().unwrap().success());
        let ready = manager.find("READY=1");
        let daemon = place.daemon();
        assert_eq!(ready, format!("MAINPID={daemon}\nREADY=1\n"));
        place.umount();
        manager.find("STOPPING=1");
        wait_until("the daemon is gone", || is_gone(daemon));
    }

    fn a_command_within_a_unit_of_others_tells_their_manager_nothing(place: &Place) {
        let manager = Manager::of(place);
        let mut command = manager.unit();
        command.env("SYSTEMD_EXEC_PID", "1").env("WATCHDOG_USEC", "3000");
        assert!(command.args(["mount", &place.source(), &place.mnt()]).status().unwrap().success());
        place.umount();
        assert!(manager.is_silent_for(Duration::from_millis(100)));
    }

    fn the_watchdog_gets_an_answer_until_the_volume_is_closed(place: &Place) {
        let manager = Manager::of(place);
        let mut unit = manager.unit();
        unit.env("WATCHDOG_USEC", "300000");
        unit.args(["mount", "--foreground", &place.source(), &place.mnt()]);
        let unit = Foreground { child: unit.spawn().unwrap() };
        manager.find("READY=1");
        for _ in 0..5 {
            assert_eq!(manager.next(), "WATCHDOG=1\n");
        }
        place.umount();
        manager.find("STOPPING=1");
        assert_eq!(unit.end(), Some(0));
    }
}

#[test]
fn the_status_says_that_a_volume_failed_and_why() {
    let Some(place) = Place::with_mounts() else {
        return;
    };
    let (manager, host) = (Manager::of(&place), Host::mounted(&place));
    let image = place.path("host/data.hf");
    call(&[&"mkfs", &"--quiet", &"--size", &"64m", &image]).ok();
    let mut unit = manager.unit();
    unit.args(["mount", "--foreground"])
        .args([&image, &place.path("mnt")]);
    let unit = Foreground {
        child: unit.spawn().unwrap(),
    };
    manager.find("READY=1");
    drop(host.lose(&place));
    let status = manager.find("STATUS=failed");
    assert!(status.contains("No space left"), "{status}");
    crate::fixture::umount(&place.mnt()).fails(1);
    manager.find("STOPPING=1");
    assert_eq!(unit.end(), Some(1));
    assert!(fs::metadata(&image).is_ok());
}
