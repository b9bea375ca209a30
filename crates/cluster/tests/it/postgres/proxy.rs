//! A proxy that cuts connections, after a number of bytes.

use std::io::{Read, Write};
use std::net::{Shutdown, TcpListener, TcpStream};
use std::sync::{Arc, Mutex, PoisonError};

/// The way that bytes take.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Way {
    ToServer,
    ToClient,
}

/// A proxy before a server. Its threads end with the process.
pub(super) struct Proxy {
    pub(super) port: u16,
    state: Arc<State>,
}

/// Bytes that pass before a connection is cut, by the way.
#[derive(Default)]
struct State(Mutex<[Option<u64>; 2]>);

impl State {
    fn with<T>(&self, way: usize, change: impl FnOnce(&mut Option<u64>) -> T) -> T {
        change(&mut self.0.lock().unwrap_or_else(PoisonError::into_inner)[way])
    }

    /// Lets bytes pass. Returns how many go on before the cut, if it is among them.
    fn pass(&self, way: usize, count: usize) -> Option<usize> {
        self.with(way, |left| {
            let before = (*left)?;
            *left = before.checked_sub(count as u64);
            left.is_none().then_some(before as usize)
        })
    }
}

impl Proxy {
    pub(super) fn start(server: u16) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let port = listener.local_addr().unwrap().port();
        let state = Arc::new(State::default());
        let proxy = Self {
            port,
            state: Arc::clone(&state),
        };
        std::thread::spawn(move || {
            for client in listener.incoming() {
                let (Ok(client), Ok(server)) = (client, TcpStream::connect(("127.0.0.1", server)))
                else {
                    continue;
                };
                for stream in [&client, &server] {
                    stream.set_nodelay(true).unwrap();
                }
                for (way, from, to) in [(0, &client, &server), (1, &server, &client)] {
                    let (from, to) = (from.try_clone().unwrap(), to.try_clone().unwrap());
                    let state = Arc::clone(&state);
                    std::thread::spawn(move || pass(way, from, to, &state));
                }
            }
        });
        proxy
    }

    /// Cuts the connection that carries the byte after this number of them.
    pub(super) fn cut_after(&self, way: Way, bytes: u64) {
        self.state.with(way as usize, |left| *left = Some(bytes));
    }

    /// Is the cut still to come? It is called off.
    pub(super) fn call_off(&self, way: Way) -> bool {
        self.state.with(way as usize, Option::take).is_some()
    }
}

fn pass(way: usize, mut from: TcpStream, mut to: TcpStream, state: &State) {
    let mut buf = [0; 16 << 10];
    while let Ok(count @ 1..) = from.read(&mut buf) {
        // Before the bytes go: their answer may call the cut off.
        let cut = state.pass(way, count);
        if to.write_all(&buf[..cut.unwrap_or(count)]).is_err() || cut.is_some() {
            break;
        }
    }
    // Errors: the other side ended it before.
    let _ = (from.shutdown(Shutdown::Both), to.shutdown(Shutdown::Both));
}
