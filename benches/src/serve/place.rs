//! The servers under load, each in a process of its own.

use std::{
    io::{BufRead, BufReader},
    net::{TcpListener, TcpStream},
    path::{Path, PathBuf},
    process::{Child, Command, Stdio},
    sync::Arc,
    time::{Duration, Instant},
};

use entable::backend::{Durability, Embedded};
use entable_server::Server;
use tempfile::TempDir;

/// The argument that makes this program run as a server.
const CHILD: &str = "serve-child";
/// How long relaxed writes may wait for the disk.
const DELAY: Duration = Duration::from_millis(100);

/// A server that answers the requests.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Place {
    Durable,
    Relaxed,
    Azurite,
}

/// A running server. It ends when this is dropped.
pub(super) struct Served {
    process: Child,
    /// The address of the port.
    pub(super) endpoint: String,
    _files: TempDir,
}

impl Place {
    /// Starts the server, if it is installed.
    pub(super) fn find(self) -> Option<(Served, Duration)> {
        (self != Self::Azurite || azurite().exists()).then(|| self.start())
    }

    /// Starts the server and returns how long it took until a client could connect.
    pub(super) fn start(self) -> (Served, Duration) {
        let files = tempfile::tempdir().unwrap();
        let began = Instant::now();
        let (process, endpoint) = match self {
            Self::Azurite => start_azurite(files.path()),
            Self::Durable | Self::Relaxed => start_own(self, files.path()),
        };
        let took = began.elapsed();
        (Served { process, endpoint, _files: files }, took)
    }
}

fn azurite() -> PathBuf {
    let place = "../tests/azurite/node_modules/azurite/dist/src/table/main.js";
    Path::new(env!("CARGO_MANIFEST_DIR")).join(place)
}

fn start_azurite(files: &Path) -> (Child, String) {
    let port = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port().to_string();
    let process = Command::new("node")
        .arg(azurite())
        .args([
            "--tableHost",
            "127.0.0.1",
            "--tablePort",
            &port,
            "--skipApiVersionCheck",
            "--silent",
        ])
        .arg("--disableTelemetry")
        .arg("--location")
        .arg(files)
        .stdout(Stdio::null())
        .spawn()
        .unwrap();
    let endpoint = format!("127.0.0.1:{port}");
    while TcpStream::connect(&endpoint).is_err() {
        std::thread::sleep(Duration::from_millis(5));
    }
    (process, endpoint)
}

fn start_own(place: Place, files: &Path) -> (Child, String) {
    let mut process = Command::new(std::env::current_exe().unwrap())
        .args([CHILD, if place == Place::Relaxed { "relaxed" } else { "durable" }])
        .arg(files.join("rows.db"))
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let mut line = String::new();
    BufReader::new(process.stdout.as_mut().unwrap()).read_line(&mut line).unwrap();
    (process, line.trim().to_owned())
}

impl Served {
    /// Returns the memory of the process, in MiB.
    pub(super) fn memory(&self) -> f64 {
        let status = std::fs::read_to_string(format!("/proc/{}/status", self.process.id()));
        let status = status.unwrap_or_default();
        let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:")).unwrap_or("0");
        line.trim().trim_end_matches(" kB").parse::<f64>().unwrap_or_default() / 1024.0
    }
}

impl Drop for Served {
    fn drop(&mut self) {
        // It may have ended already.
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}

pub(super) fn is_child(arguments: &[String]) -> bool {
    arguments.first().is_some_and(|first| first == CHILD)
}

/// Serves a file, prints the address, and ends with the process.
pub(super) fn serve(arguments: &[String]) {
    let options = Embedded::options();
    let options = match arguments[1].as_str() {
        "relaxed" => options.durability(Durability::Relaxed { delay: DELAY }),
        _ => options,
    };
    let rows = Arc::new(options.open(&arguments[2]).unwrap());
    tokio::runtime::Runtime::new().unwrap().block_on(async {
        let server = Server::builder(rows).address("127.0.0.1:0").bind().await.unwrap();
        println!("{}", server.address());
        server.run(std::future::pending()).await.unwrap();
    });
}
