//! A proxy that cuts connections, after a number of bytes.

use std::io::{Read, Write};
use std::net::{Shutdown, TcpListener, TcpStream};
use std::sync::Arc;
use std::sync::atomic::{AtomicI64, Ordering};

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

#[derive(Default)]
struct State {
    /// Bytes that pass before a connection is cut, by the way; negative: none is.
    left: [AtomicI64; 2],
}

impl Proxy {
    pub(super) fn start(server: u16) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let port = listener.local_addr().unwrap().port();
        let state = Arc::new(State::default());
        state
            .left
            .iter()
            .for_each(|left| left.store(-1, Ordering::SeqCst));
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
        self.state.left[way as usize].store(bytes as i64, Ordering::SeqCst);
    }

    /// Is the cut still to come? It is called off.
    pub(super) fn call_off(&self, way: Way) -> bool {
        self.state.left[way as usize].swap(-1, Ordering::SeqCst) >= 0
    }
}

fn pass(way: usize, mut from: TcpStream, mut to: TcpStream, state: &State) {
    let mut buf = [0; 16 << 10];
    while let Ok(count @ 1..) = from.read(&mut buf) {
        let left = state.left[way].load(Ordering::SeqCst);
        let cut = (0..count as i64).contains(&left);
        let goes = if cut { left as usize } else { count };
        if to.write_all(&buf[..goes]).is_err() || cut {
            state.left[way].store(-1, Ordering::SeqCst);
            break;
        }
        if left >= 0 {
            state.left[way].store(left - count as i64, Ordering::SeqCst);
        }
    }
    // Errors: the other side ended it before.
    let _ = (from.shutdown(Shutdown::Both), to.shutdown(Shutdown::Both));
}
