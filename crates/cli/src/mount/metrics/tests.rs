pub(super) mod openmetrics;
pub(super) mod promtool;

use super::http::HEAD_MAX;
use super::server::CLIENTS_MAX;
use super::*;
use std::io::{Read, Write};
use std::net::TcpStream;

/// Far longer than an answer takes on a busy machine, and shorter than the limit of a run.
const TIMEOUT: Duration = Duration::from_secs(30);
const SCRAPE: &str = "GET /metrics HTTP/1.1\r\nHost: x\r\n\r\n";

fn connect(url: &str) -> TcpStream {
    let address = url.trim_start_matches("http://");
    let client = TcpStream::connect(address.trim_end_matches("/metrics")).unwrap();
    client.set_read_timeout(Some(TIMEOUT)).unwrap();
    client
}

fn rest(mut client: TcpStream) -> String {
    let mut answer = String::new();
    client.read_to_string(&mut answer).unwrap();
    answer
}

fn answered(url: &str, request: &str) -> String {
    let mut client = connect(url);
    client.write_all(request.as_bytes()).unwrap();
    rest(client)
}

/// Asserts an answer with the whole of the metrics.
#[track_caller]
fn assert_scraped(answer: &str) {
    let (head, body) = answer.split_once("\r\n\r\n").unwrap();
    assert!(head.starts_with("HTTP/1.1 200 OK\r\n"), "{head}");
    let length = format!("\r\nContent-Length: {}\r\n", body.len());
    assert!(head.contains(&length), "{head}");
    assert!(body.contains("\nholdfast_inodes 42\n"), "{body}");
}

fn listening_at(address: &str) -> (String, Metrics) {
    let listening = Listening::at(address).unwrap();
    let url = listening.url();
    let report = || Report {
        inodes: 42,
        ..Report::default()
    };
    (url, listening.answer(Box::new(report)).unwrap())
}

fn listening() -> (String, Metrics) {
    listening_at("127.0.0.1:0")
}

#[test]
fn an_address_is_a_host_and_a_port() {
    for right in ["127.0.0.1:9464", "[::1]:0", "localhost:80", "0.0.0.0:65535"] {
        assert_eq!(check(right), Ok(()));
    }
    for wrong in [
        "",
        "9464",
        ":9464",
        "127.0.0.1",
        "127.0.0.1:",
        "host:http",
        "host:65536",
    ] {
        assert!(check(wrong).unwrap_err().contains("HOST:PORT"), "{wrong}");
    }
}

#[test]
fn the_report_is_answered_at_its_path_alone() {
    let (url, metrics) = listening();
    assert_scraped(&answered(&url, SCRAPE));
    let head = answered(&url, "HEAD /metrics?x=1 HTTP/1.0\r\n\r\n");
    let (_, body) = head.split_once("\r\n\r\n").unwrap();
    assert!(head.contains("200 OK") && body.is_empty(), "{head}");
    for (request, status, body) in [
        ("GET / HTTP/1.1\r\n\r\n", "404 Not Found", "at /metrics\n"),
        ("HEAD / HTTP/1.1\r\n\r\n", "404 Not Found", ""),
        (
            "POST /metrics HTTP/1.1\r\nContent-Length: 3\r\n\r\nabc",
            "405 Method Not Allowed\r\nAllow: GET, HEAD",
            "only GET and HEAD are served\n",
        ),
        ("nonsense\r\n\r\n", "400 Bad Request", "HTTP/1.x\n"),
    ] {
        let answer = answered(&url, request);
        let begins = format!("HTTP/1.1 {status}\r\n");
        assert!(answer.starts_with(&begins), "{answer}");
        let ends = answer.split_once("\r\n\r\n").unwrap().1;
        assert!(ends.ends_with(body), "{answer}");
        assert_eq!(ends.is_empty(), body.is_empty(), "{answer}");
    }
    drop(metrics);
    let address = url.trim_start_matches("http://");
    assert!(TcpStream::connect(address.trim_end_matches("/metrics")).is_err());
}

#[test]
fn silent_clients_delay_no_scrape_and_lose_their_places_to_new_clients() {
    let (url, _metrics) = listening();
    let mut silent: Vec<TcpStream> = (0..CLIENTS_MAX + 40).map(|_| connect(&url)).collect();
    for _ in 0..5 {
        assert_scraped(&answered(&url, SCRAPE));
    }
    let mut nothing = [0];
    assert_eq!(silent[0].read(&mut nothing).unwrap(), 0, "it was sent away");
}

#[test]
fn a_request_may_come_in_parts_while_others_are_answered() {
    let (url, _metrics) = listening();
    let mut slow = connect(&url);
    for part in SCRAPE.as_bytes().chunks(9) {
        slow.write_all(part).unwrap();
        assert_scraped(&answered(&url, SCRAPE));
    }
    assert_scraped(&rest(slow));
}

#[test]
fn clients_that_do_not_read_delay_no_scrape() {
    let (url, _metrics) = listening();
    let asking = || {
        let mut client = connect(&url);
        client.write_all(SCRAPE.as_bytes()).unwrap();
        client
    };
    let clients: Vec<TcpStream> = (0..CLIENTS_MAX / 2).map(|_| asking()).collect();
    assert_scraped(&answered(&url, SCRAPE));
    for client in clients {
        assert_scraped(&rest(client));
    }
}

#[test]
fn a_head_that_is_too_long_is_refused_in_words_that_arrive() {
    let (url, _metrics) = listening();
    let long = format!(
        "GET /metrics HTTP/1.1\r\nX: {}\r\n\r\n",
        "y".repeat(100 * HEAD_MAX)
    );
    let answer = answered(&url, &long);
    assert!(answer.starts_with("HTTP/1.1 431 "), "{answer}");
    assert!(answer.ends_with("8 KiB together\n"), "{answer}");
}

#[test]
fn a_connection_ends_with_its_first_answer() {
    let (url, _metrics) = listening();
    let kept = "GET /metrics HTTP/1.1\r\nConnection: keep-alive\r\n\r\n";
    for requests in [1, 2, 3000] {
        let answer = answered(&url, &kept.repeat(requests));
        assert_scraped(&answer);
        assert!(answer.contains("\r\nConnection: close\r\n"), "{answer}");
    }
}

#[test]
fn ipv6_is_served() {
    if TcpListener::bind("[::1]:0").is_err() {
        return holdfast_testkit::skip::skipped_by_kernel("it has no IPv6");
    }
    let (url, _metrics) = listening_at("[::1]:0");
    assert!(url.starts_with("http://[::1]:"), "{url}");
    assert_scraped(&answered(&url, SCRAPE));
}

#[test]
fn the_end_waits_for_no_client() {
    let (url, metrics) = listening();
    let silent = connect(&url);
    // The silent client has been accepted before this answer.
    assert_scraped(&answered(&url, SCRAPE));
    drop(metrics);
    assert_eq!(rest(silent), "");
}
