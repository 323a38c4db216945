//! `entable serve`: programs reach its port, and what they wrote is in the file.

use std::{
    io::{BufRead, BufReader, Read},
    process::Child,
};

use super::*;

/// A key that is not the emulator's.
const OWN_KEY: &str = "b3duIGtleSBvZiB0aGUgdGVzdHM=";

/// A server that is killed when it is dropped.
pub(crate) struct Served {
    pub(crate) child: Child,
    /// The JSON that the server printed when it was ready.
    pub(crate) said: Json,
}

impl Served {
    pub(crate) fn start(place: &Place, arguments: &[&str], variables: &[(&str, &str)]) -> Self {
        let command = Command::new(env!("CARGO_BIN_EXE_entable"));
        Self::start_with(command, place, arguments, variables)
    }

    /// Starts the server by a command that ends with the path of the program.
    pub(crate) fn start_with(
        mut command: Command,
        place: &Place,
        arguments: &[&str],
        variables: &[(&str, &str)],
    ) -> Self {
        command.current_dir(place.0.path()).args(["--json", "serve", "--listen", "127.0.0.1:0"]);
        for name in ["ENTABLE_SERVE_KEY", "ENTABLE_SERVE_KEY_FILE", "ENTABLE_SERVE_ACCOUNT"] {
            command.env_remove(name);
        }
        command.args(arguments).envs(variables.iter().copied()).stdout(Stdio::piped());
        let mut child = command.spawn().unwrap();
        let mut line = String::new();
        BufReader::new(child.stdout.as_mut().unwrap()).read_line(&mut line).unwrap();
        let said = serde_json::from_str(&line).unwrap_or_else(|error| panic!("{error}: {line}"));
        Self { child, said }
    }

    pub(crate) fn connection_string(&self) -> &str {
        self.said["connectionString"].as_str().unwrap()
    }

    fn client(&self, connection_string: &str) -> Client {
        Client::azure(AzureOptions::from_connection_string(connection_string).unwrap()).unwrap()
    }

    /// Asks the server to end, and returns its exit code.
    #[cfg(unix)]
    pub(crate) fn stop(mut self) -> i32 {
        let id = rustix::process::Pid::from_child(&self.child);
        rustix::process::kill_process(id, rustix::process::Signal::TERM).unwrap();
        self.child.wait().unwrap().code().unwrap()
    }
}

impl Drop for Served {
    fn drop(&mut self) {
        // It may have ended already.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

pub(crate) fn block_on<T>(work: impl Future<Output = T>) -> T {
    tokio::runtime::Runtime::new().unwrap().block_on(work)
}

#[cfg(unix)]
#[test]
fn rows_written_over_the_port_are_in_the_file_when_the_server_has_stopped() {
    let place = Place(tempdir().unwrap());
    let served = Served::start(&place, &["staff.db"], &[]);
    let client = served.client(served.connection_string());
    block_on(async {
        client.create_table("Staff").await.unwrap();
        let row = DynamicEntity::new("Sales", "1").with("Age", 34);
        client.dynamic("Staff").insert(&row).await.unwrap();
    });
    // Two processes cannot open one file, and the server has it.
    place.run(&["tables", "staff.db"]).fails(1, "");
    assert_eq!(served.stop(), 0);
    let row = place.run(&["--json", "get", "staff.db", "Staff", "Sales", "1"]).json();
    assert_eq!(row["Age"], 34);
}

#[test]
fn a_store_that_is_only_read_refuses_writes_and_missing_files() {
    let place = Place::filled();
    place
        .run(&["serve", "missing.db", "--read-only", "--listen", "127.0.0.1:0"])
        .fails(3, "file `missing.db` does not exist");
    let served = Served::start(&place, &["staff.db", "--read-only"], &[]);
    let client = served.client(served.connection_string());
    block_on(async {
        assert_eq!(client.tables().await.unwrap(), ["Staff", "Types"]);
        let row = DynamicEntity::new("Sales", "new");
        assert!(client.dynamic("Staff").insert(&row).await.unwrap_err().is_denied());
        assert!(client.create_table("More").await.unwrap_err().is_denied());
    });
}

#[test]
fn a_key_from_the_environment_or_a_file_replaces_the_well_known_one() {
    let place = Place(tempdir().unwrap());
    fs::write(place.path("key"), format!("{OWN_KEY}\n")).unwrap();
    for (name, value) in [("ENTABLE_SERVE_KEY", OWN_KEY), ("ENTABLE_SERVE_KEY_FILE", "key")] {
        let served =
            Served::start(&place, &[], &[(name, value), ("ENTABLE_SERVE_ACCOUNT", "mine")]);
        assert_eq!(served.said["account"], "mine");
        assert!(!served.said.to_string().contains(OWN_KEY), "{}", served.said);
        let connection = served.connection_string();
        let with = |key: &str| served.client(&connection.replace("<your key>", key));
        block_on(async {
            assert!(with("b3RoZXI=").tables().await.unwrap_err().is_denied());
            assert_eq!(with(OWN_KEY).tables().await.unwrap(), [""; 0]);
        });
    }
}

#[test]
fn half_of_a_key_is_refused_and_an_address_that_others_reach_needs_one() {
    let place = Place(tempdir().unwrap());
    let fails = |arguments: &[&str], variables: &[(&str, &str)], code, message| {
        let run = run_in(place.0.path(), &[&["serve"], arguments].concat(), "", variables);
        assert!(!run.err.contains(OWN_KEY));
        run.fails(code, message);
    };
    let local = ["--listen", "127.0.0.1:0"];
    fails(&local, &[("ENTABLE_SERVE_KEY", OWN_KEY)], 2, "ENTABLE_SERVE_ACCOUNT is not set");
    fails(&local, &[("ENTABLE_SERVE_ACCOUNT", "mine")], 2, "set ENTABLE_SERVE_KEY");
    let public = ["--listen", "0.0.0.0:0"];
    fails(&public, &[], 1, "listening on `0.0.0.0:0` failed");
    fails(&["--relaxed", "50"], &[], 2, "required");
}

/// A name that one of a browser's pages could have bound to this machine is refused, unless it is allowed.
#[test]
fn only_named_hosts_are_answered() {
    let place = Place(tempdir().unwrap());
    let served = Served::start(&place, &["--allow-host", "tables"], &[]);
    let endpoint = served.said["endpoint"].as_str().unwrap();
    let address = endpoint.trim_start_matches("http://").split('/').next().unwrap();
    let (_, port) = address.split_once(':').unwrap();
    let status = |host: &str| {
        let mut stream = std::net::TcpStream::connect(address).unwrap();
        write!(
            stream,
            "GET /devstoreaccount1/Tables HTTP/1.1\r\nHost: {host}:{port}\r\nConnection: close\r\n\r\n"
        )
        .unwrap();
        let mut answer = String::new();
        stream.read_to_string(&mut answer).unwrap();
        answer
    };
    assert!(status("elsewhere").contains("AuthorizationFailure"), "{}", status("elsewhere"));
    assert!(!status("tables").contains("AuthorizationFailure"), "{}", status("tables"));
}
