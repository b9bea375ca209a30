//! A server on loopback, in a directory of its own.

use holdfast_cluster::meta::{Meta, Settings};
use holdfast_cluster::postgres::{Config, MkfsOptions, connect, mkfs};
use std::fs;
use std::io::{BufRead as _, BufReader, Write as _};
use std::net::TcpListener;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdin, Command, Stdio};
use std::sync::Arc;
use tempfile::TempDir;

/// A server. It ends when this is dropped.
pub(super) struct Server {
    bin: PathBuf,
    dir: TempDir,
    pub(super) port: u16,
}

/// The programs of the newest server that is installed.
fn programs() -> Option<PathBuf> {
    let versions = fs::read_dir("/usr/lib/postgresql").ok()?;
    let bins = versions.filter_map(|version| Some(version.ok()?.path().join("bin")));
    bins.filter(|bin| bin.join("initdb").exists()).max()
}

/// A port that nothing listened on a moment ago.
fn free_port() -> u16 {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    listener.local_addr().unwrap().port()
}

impl Server {
    /// Starts a server with these settings beside the usual ones. `None`, and counted as skipped:
    /// there is none on this machine.
    pub(super) fn start(settings: &[&str]) -> Option<Self> {
        let Some(bin) = programs() else {
            holdfast_testkit::skip::skipped_by_package("PostgreSQL is not installed");
            return None;
        };
        let dir = tempfile::tempdir().unwrap();
        fs::set_permissions(dir.path(), fs::Permissions::from_mode(0o777)).unwrap();
        let port = free_port();
        let server = Self { bin, dir, port };
        let data = server.data();
        let data = data.to_str().unwrap();
        let options = [
            "-U",
            "postgres",
            "-A",
            "trust",
            "-E",
            "UTF8",
            "--locale=C",
            "-N",
        ];
        server.run("initdb", &[&["-D", data][..], &options].concat());
        let conf = [
            "listen_addresses = '127.0.0.1'",
            "unix_socket_directories = ''",
            &format!("port = {port}"),
            "fsync = off",
            "autovacuum = off",
            "shared_buffers = 32MB",
        ];
        let conf = [&conf, settings].concat().join("\n");
        fs::write(server.data().join("postgresql.conf"), conf).unwrap();
        server.restart();
        Some(server)
    }

    pub(super) fn dir(&self) -> &Path {
        self.dir.path()
    }

    fn data(&self) -> PathBuf {
        self.dir.path().join("data")
    }

    pub(super) fn log(&self) -> PathBuf {
        self.dir.path().join("log")
    }

    /// Runs a program of the server, as an ordinary user.
    fn run(&self, program: &str, args: &[&str]) {
        let program = self.bin.join(program);
        let mut command = match rustix::process::geteuid().is_root() {
            true => {
                let mut command = Command::new("runuser");
                command.args(["-u", "postgres", "--"]).arg(program);
                command
            }
            false => Command::new(program),
        };
        command.args(args).current_dir("/");
        // A server inherits pipes and holds them open: none is given to it.
        let output = fs::File::create(self.dir.path().join("output")).unwrap();
        command.stdout(output.try_clone().unwrap()).stderr(output);
        let status = command.status().unwrap();
        let read = |name| fs::read_to_string(self.dir.path().join(name)).unwrap_or_default();
        assert!(status.success(), "{}{}", read("output"), read("log"));
    }

    pub(super) fn restart(&self) {
        let (data, log) = (self.data(), self.log());
        let (data, log) = (data.to_str().unwrap(), log.to_str().unwrap());
        self.run("pg_ctl", &["-D", data, "-l", log, "-w", "start"]);
    }

    pub(super) fn stop(&self, mode: &str) {
        let data = self.data();
        let data = data.to_str().unwrap();
        self.run("pg_ctl", &["-D", data, "-m", mode, "-w", "stop"]);
    }

    /// The configuration for a file system of this server, over a port.
    pub(super) fn config(&self, schema: &str, port: u16) -> Config {
        Self::config_at(schema, port)
    }

    /// The same, of a server that another process started.
    pub(super) fn config_at(schema: &str, port: u16) -> Config {
        let mut connection = tokio_postgres::Config::new();
        connection
            .host("127.0.0.1")
            .port(port)
            .user("postgres")
            .dbname("postgres");
        let mut config = Config::new(connection);
        schema.clone_into(&mut config.schema);
        config.host = "here".to_owned();
        config
    }

    /// Makes a file system.
    pub(super) fn mkfs(&self, schema: &str, settings: Settings) {
        let options = MkfsOptions {
            settings,
            role: None,
        };
        mkfs(&self.config(schema, self.port), &options).unwrap();
    }

    pub(super) fn session(&self, schema: &str) -> Arc<dyn Meta> {
        connect(self.config(schema, self.port)).unwrap()
    }

    /// Runs statements, and returns their rows.
    pub(super) fn sql(&self, text: &str) -> String {
        let port = self.port.to_string();
        let output = Command::new(self.bin.join("psql"))
            .args([
                "-X",
                "-A",
                "-t",
                "-q",
                "-v",
                "ON_ERROR_STOP=1",
                "-h",
                "127.0.0.1",
            ])
            .args(["-U", "postgres", "-p", &port, "-c", text, "postgres"])
            .output()
            .unwrap();
        let error = String::from_utf8_lossy(&output.stderr).into_owned();
        assert!(output.status.success(), "{text}: {error}");
        String::from_utf8(output.stdout).unwrap().trim().to_owned()
    }

    /// Holds a lock that a statement takes, until this is dropped.
    pub(super) fn hold(&self, statement: &str) -> Held {
        let mut process = Command::new(self.bin.join("psql"))
            .args(["-X", "-q", "-t", "-h", "127.0.0.1", "-U", "postgres"])
            .args(["-p", &self.port.to_string(), "postgres"])
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let mut input = process.stdin.take().unwrap();
        writeln!(input, "BEGIN; {statement};\n\\echo held").unwrap();
        let mut output = BufReader::new(process.stdout.take().unwrap());
        let mut line = String::new();
        output.read_line(&mut line).unwrap();
        assert_eq!(line, "held\n");
        Held(process, Some(input))
    }

    /// Runs a statement that counts.
    pub(super) fn count(&self, text: &str) -> u64 {
        let answer = self.sql(text);
        answer
            .parse()
            .unwrap_or_else(|_| panic!("{text}: {answer}"))
    }
}

/// A process with a transaction that is open.
pub(super) struct Held(Child, Option<ChildStdin>);

impl Drop for Held {
    fn drop(&mut self) {
        drop(self.1.take());
        self.0.wait().unwrap();
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        // Not while a test fails for another reason: the server may not run.
        if self.data().join("postmaster.pid").exists() {
            self.stop("immediate");
        }
    }
}
