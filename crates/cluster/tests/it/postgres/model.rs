//! The engine does what the model does, and answers as the engine in memory does.

use super::beside::Beside;
use super::server::Server;
use crate::requests::agrees;
use holdfast_cluster::memory::Database;
use holdfast_cluster::meta::{Meta, Settings};
use holdfast_testkit::{effort, seed};
use holdfast_types::Time;
use std::sync::Arc;
use std::time::Duration;

#[test]
fn random_requests_by_two_sessions_do_what_the_model_does() {
    let Some(server) = Server::start(&[]) else {
        return;
    };
    let first = seed(1);
    for seed in first..first + effort().of(3, 60) {
        println!("seed {seed}");
        let schema = format!("model {seed}");
        server.mkfs(&schema, Settings::default());
        let memory = Database::new(Settings::default());
        memory.stop_clock(Time::new(1000, 0));
        let sessions = [(); 2].map(|()| server.session(&schema));
        // Both engines deal the same numbers from now on.
        let dealer = memory.session();
        let next = dealer.deal(1000).unwrap().end;
        dealer.end().unwrap();
        server.sql(&format!(
            "UPDATE \"{schema}\".volume SET next_number = {next}"
        ));
        let sessions = sessions.map(|postgres| {
            let memory = memory.session();
            Arc::new(Beside { postgres, memory }) as Arc<dyn Meta>
        });
        agrees(sessions, seed, 600, || memory.pass(Duration::from_nanos(1)));
    }
}
