//! A relay in front of a server that delays what passes.

use anyhow::{Context, Result};
use std::io::{Read as _, Write as _};
use std::net::{Ipv4Addr, Shutdown, TcpListener, TcpStream};
use std::sync::mpsc::{Receiver, Sender, channel};
use std::thread::{sleep, spawn};
use std::time::{Duration, Instant};

/// Bytes that are taken at once.
const PIECE: usize = 64 << 10;

/// Bytes, and when they are due at the other side.
type Piece = (Instant, Vec<u8>);

/// Relays connections to a server, each direction delayed by half of `round_trip`. Returns the
/// port on loopback. The threads end with the process, or with their connections.
///
/// # Errors
/// If there is no port to listen on.
pub(super) fn start(server: String, round_trip: Duration) -> Result<u16> {
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).context("cannot listen")?;
    let port = listener.local_addr()?.port();
    spawn(move || {
        for near in listener.incoming().flatten() {
            // The connection of a client ends when the server is away.
            let joined = TcpStream::connect(&server).and_then(|far| {
                near.set_nodelay(true)?;
                far.set_nodelay(true)?;
                relay(near.try_clone()?, far.try_clone()?, round_trip / 2);
                relay(far, near, round_trip / 2);
                Ok(())
            });
            if let Err(error) = joined {
                eprintln!("no connection to {server}: {error}");
            }
        }
    });
    Ok(port)
}

fn relay(from: TcpStream, to: TcpStream, delay: Duration) {
    let (sender, receiver) = channel();
    spawn(move || take(from, delay, &sender));
    spawn(move || pass_on(to, &receiver));
}

fn take(mut from: TcpStream, delay: Duration, to: &Sender<Piece>) {
    let mut piece = vec![0; PIECE];
    // An error is an end as well.
    while let Ok(length @ 1..) = from.read(&mut piece) {
        let taken = piece[..length].to_vec();
        if to.send((Instant::now() + delay, taken)).is_err() {
            return;
        }
    }
}

fn pass_on(mut to: TcpStream, from: &Receiver<Piece>) {
    for (due, bytes) in from {
        sleep(due.saturating_duration_since(Instant::now()));
        if to.write_all(&bytes).is_err() {
            break;
        }
    }
    // The other side may have closed it already.
    let _ = to.shutdown(Shutdown::Both);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_passes_is_the_same_and_a_round_trip_later() {
        let server = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).expect("a port");
        let address = server.local_addr().expect("bound").to_string();
        spawn(move || {
            let (mut client, _) = server.accept().expect("a client");
            let mut word = [0; 4];
            client.read_exact(&mut word).expect("asked");
            word.reverse();
            client.write_all(&word).expect("answered");
        });
        let delay = Duration::from_millis(60);
        let port = start(address, delay).expect("started");
        let mut client = TcpStream::connect((Ipv4Addr::LOCALHOST, port)).expect("there");
        let begun = Instant::now();
        client.write_all(b"ping").expect("sent");
        let mut answer = Vec::new();
        client
            .read_to_end(&mut answer)
            .expect("an answer, and the end");
        assert_eq!(answer, b"gnip");
        assert!(begun.elapsed() >= delay, "{:?}", begun.elapsed());
    }
}
