//! `-o metrics=`: scrapes of a real mount.

use crate::fixture::{Place, holdfast, on_each_store};
use crate::openmetrics::{self, Family};
use crate::promtool;
use std::collections::BTreeMap;
use std::fs;
use std::io::{Read, Write};
use std::net::TcpStream;

/// The URL in the report of `mnt`, and the address in it.
fn url(place: &Place) -> (String, String) {
    let url = place.info()["metrics"].as_str().expect("a URL").to_owned();
    let address = url.strip_prefix("http://").expect("a URL");
    let address = address.strip_suffix("/metrics").expect("a path").to_owned();
    (url, address)
}

/// Head and body of the answer to a scrape with these headers.
fn answered(address: &str, headers: &str) -> (String, String) {
    let mut client = TcpStream::connect(address).expect("it listens");
    let request = format!("GET /metrics HTTP/1.1\r\nHost: {address}\r\n{headers}\r\n");
    client.write_all(request.as_bytes()).expect("it reads");
    let mut answer = String::new();
    client.read_to_string(&mut answer).expect("text");
    let (head, body) = answer.split_once("\r\n\r\n").expect("a head");
    assert!(head.starts_with("HTTP/1.1 200 OK\r\n"), "{head}");
    (head.to_owned(), body.to_owned())
}

fn scraped(address: &str) -> BTreeMap<String, Family> {
    let (head, body) = answered(address, "Accept: application/openmetrics-text\r\n");
    assert!(head.contains("openmetrics-text; version=1.0.0"), "{head}");
    openmetrics::parse(&body).unwrap_or_else(|error| panic!("{error} in {body}"))
}

fn value(families: &BTreeMap<String, Family>, name: &str, labels: &[(&str, &str)]) -> f64 {
    let family = families.get(name);
    let value = family.and_then(|family| family.value(labels));
    value.unwrap_or_else(|| panic!("{name} {labels:?}"))
}

on_each_store! {
    fn numbers_of_a_mount_are_served_and_grow_with_what_is_done(place: &Place) {
        place.mount(&["-o", "metrics=127.0.0.1:0"]);
        let (url, address) = url(place);
        fs::write(place.path("mnt/file"), "content").unwrap();
        let before = scraped(&address);
        let is_volume = place.source() != "mem:";
        assert_eq!(value(&before, "holdfast_mount", &[("mount_point", &place.mnt())]), 1.0);
        let one = [("operation", "WRITE")];
        assert_eq!(value(&before, "holdfast_requests", &one), 1.0);
        fs::write(place.path("mnt/other"), vec![1; 1 << 20]).unwrap();
        fs::File::open(place.path("mnt/other")).unwrap().sync_all().unwrap();
        let after = scraped(&address);
        let grown = |name: &str, labels: &[(&str, &str)]| {
            value(&after, name, labels) - value(&before, name, labels)
        };
        assert_eq!(grown("holdfast_written_bytes", &[]), f64::from(1 << 20));
        assert!(grown("holdfast_requests", &one) >= 1.0);
        assert_eq!(grown("holdfast_names", &[]), 1.0);
        // Every syncing request is measured.
        let fsync = &after["holdfast_request_seconds"];
        let is_count = |it: &&(String, openmetrics::Labels, f64)| {
            it.0.ends_with("_count") && it.1["operation"] == "FSYNC"
        };
        assert_eq!(fsync.samples.iter().find(is_count).map(|it| it.2), Some(1.0));
        for of_volumes in ["holdfast_commits", "holdfast_memory_bytes", "holdfast_device_bytes"] {
            assert_eq!(after.contains_key(of_volumes), is_volume, "{of_volumes}");
        }
        if is_volume {
            assert!(grown("holdfast_commits", &[]) >= 1.0);
            assert!(grown("holdfast_device_bytes", &[("operation", "write")]) >= f64::from(1 << 20));
            assert!(value(&after, "holdfast_journal_capacity_bytes", &[]) > 0.0);
        }
        assert_eq!(value(&after, "holdfast_build", &[("version", env!("CARGO_PKG_VERSION"))]), 1.0);
        assert!(value(&after, "process_resident_memory_bytes", &[]) > 0.0);
        // The kernel asks for the attribute, and there is none.
        let errors = [("operation", "GETXATTR"), ("error", "other")];
        let of_errors = |families: &BTreeMap<String, Family>| {
            families.get("holdfast_request_errors").and_then(|family| family.value(&errors))
        };
        let none = rustix::fs::getxattr(place.path("mnt/file"), "user.none", &mut [0_u8; 16][..]);
        assert!(none.is_err());
        let more = of_errors(&scraped(&address)).unwrap_or(0.0);
        assert!(more > of_errors(&after).unwrap_or(0.0), "{more}");
        let (head, plain) = answered(&address, "");
        assert!(head.contains("text/plain; version=0.0.4"), "{head}");
        if let Some(said) = promtool::check(&plain) {
            assert_eq!(said, "", "{plain}");
        }
        let table = holdfast(["info", &place.mnt()]).ok();
        assert!(table.contains(&url), "{table}");
        assert!(table.contains("metrics=127.0.0.1:0"), "{table}");
        assert_eq!(table.contains("journal  "), is_volume, "{table}");
        let error = holdfast(["mount", &place.source(), &place.mnt(), "-o", "remount,metrics=127.0.0.1:1"]);
        let error = error.fails(1);
        assert!(error.contains("metrics=127.0.0.1:1 cannot be changed while mounted"), "{error}");
        place.umount();
        assert!(TcpStream::connect(&address).is_err(), "it has ended");
    }

    fn an_address_in_use_leaves_no_mount_behind(place: &Place) {
        let taken = std::net::TcpListener::bind("127.0.0.1:0").expect("a port");
        let option = format!("metrics={}", taken.local_addr().expect("an address"));
        let error = holdfast(["mount", &place.source(), &place.mnt(), "-o", &option]).fails(1);
        assert!(error.contains(&format!("option {option}: metrics cannot be served there")), "{error}");
        assert!(error.contains("hint: another process listens there"), "{error}");
        assert!(!place.is_mounted() && !place.path("mnt").exists());
        drop(taken);
        place.mount(&["-o", &option]);
        place.umount();
    }
}

#[test]
fn a_directory_of_the_host_is_counted_too() {
    let Some(place) = Place::with_mounts() else {
        return;
    };
    fs::create_dir(place.path("source")).unwrap();
    fs::write(place.path("source/file"), "content").unwrap();
    let source = place.path("source").into_os_string().into_string().unwrap();
    let mnt = place.mnt();
    holdfast(["mount", "-o", "ro,metrics=localhost:0", &source, &mnt]).ok();
    assert_eq!(
        fs::read_to_string(place.path("mnt/file")).unwrap(),
        "content"
    );
    let told = scraped(&url(&place).1);
    assert!(value(&told, "holdfast_requests", &[("operation", "LOOKUP")]) >= 1.0);
    assert!(told.contains_key("holdfast_memory_bytes") && !told.contains_key("holdfast_commits"));
    assert_eq!(value(&told, "holdfast_read_only", &[]), 1.0);
    place.umount();
}
