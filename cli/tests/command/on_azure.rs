//! Stores on a service.

use std::{
    io::{BufRead, BufReader, Read},
    net::TcpListener,
    sync::mpsc::{self, Receiver},
    thread,
};

use super::*;

/// A request that a server got.
struct Request {
    method: String,
    path: String,
}

/// Answers each request with a JSON text. Returns the server's address, and the requests as it gets them.
fn json_server(answer: &'static str) -> (String, Receiver<Request>) {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = format!("http://{}", listener.local_addr().unwrap());
    let (asked, requests) = mpsc::channel();
    thread::spawn(move || {
        for stream in listener.incoming() {
            let mut stream = BufReader::new(stream.unwrap());
            let mut head = String::new();
            while !head.ends_with("\r\n\r\n") && stream.read_line(&mut head).unwrap() > 0 {}
            let length = head.lines().find_map(|line| {
                let line = line.to_ascii_lowercase();
                line.strip_prefix("content-length: ")?.parse().ok()
            });
            let mut body = vec![0; length.unwrap_or(0)];
            stream.read_exact(&mut body).unwrap();
            let mut words = head.split(' ').map(str::to_owned);
            let [method, path] = [(); 2].map(|()| words.next().unwrap_or_default());
            let request = Request { method, path };
            if asked.send(request).is_err() {
                return;
            }
            let head = "HTTP/1.1 200 OK\r\ncontent-type: application/json\r\nconnection: close";
            let stream = stream.get_mut();
            write!(stream, "{head}\r\ncontent-length: {}\r\n\r\n{answer}", answer.len()).unwrap();
        }
    });
    (address, requests)
}

/// A table endpoint that ends every connection: the command has no certificate to trust.
fn closed_endpoint() -> String {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    format!("https://{}/contosostaff", listener.local_addr().unwrap())
}

/// Lists the tables of an account that nobody serves, by an identity.
fn tables_by_identity(place: &Place, variables: &[(&str, &str)]) -> Run {
    let endpoint = closed_endpoint();
    let account = [("ENTABLE_ACCOUNT", "contosostaff"), ("ENTABLE_ENDPOINT", &*endpoint)];
    let variables = [&account[..], variables].concat();
    run_in(place.0.path(), &["tables", "azure:"], "", &variables)
}

#[test]
fn an_app_service_gives_its_identity() {
    let place = Place(tempdir().unwrap());
    let (endpoint, requests) = json_server(
        r#"{"access_token":"t0ken","expires_on":"4102444800","resource":"r","token_type":"Bearer"}"#,
    );
    let endpoint = format!("{endpoint}/msi/token");
    for kind in ["", "managedidentity"] {
        let run = tables_by_identity(
            &place,
            &[
                ("IDENTITY_ENDPOINT", &endpoint),
                ("IDENTITY_HEADER", "he4der"),
                ("AZURE_CLIENT_ID", "client1"),
                ("AZURE_CREDENTIAL_KIND", kind),
            ],
        );
        // The token is there, and nobody serves the account.
        assert!(run.code == 1 && run.err.contains("cannot be reached"), "{run:?}");
        let request = requests.try_recv().unwrap();
        for part in ["/msi/token?", "resource=https%3A%2F%2Fstorage.azure.com", "=client1"] {
            assert!(request.path.contains(part), "{part}: {}", request.path);
        }
        assert!(!run.err.contains("t0ken") && !run.err.contains("he4der"), "{run:?}");
    }
}

#[cfg(unix)]
#[test]
fn a_developer_is_signed_in_by_the_tools_of_azure() {
    use std::os::unix::fs::PermissionsExt;
    let place = Place(tempdir().unwrap());
    let token = r#"{"accessToken":"t0ken","expiresOn":"2100-01-01 00:00:00.000000","expires_on":4102444800,"tokenType":"Bearer"}"#;
    let script = format!("#!/bin/sh\necho \"$@\" >> asked.txt\necho '{token}'\n");
    let script = script.replace("asked.txt", place.path("asked.txt").to_str().unwrap());
    fs::write(place.path("az"), script).unwrap();
    fs::set_permissions(place.path("az"), fs::Permissions::from_mode(0o755)).unwrap();
    let path = format!("{}:/usr/bin:/bin", place.0.path().display());
    for kind in ["", "developertools"] {
        let run = tables_by_identity(&place, &[("PATH", &path), ("AZURE_CREDENTIAL_KIND", kind)]);
        assert!(run.code == 1 && run.err.contains("cannot be reached"), "{run:?}");
    }
    let asked = place.read("asked.txt");
    assert_eq!(asked.lines().count(), 2, "{asked}");
    assert!(asked.contains("--scope https://storage.azure.com/.default"), "{asked}");
}

#[test]
fn credentials_that_are_missing_or_contradict_each_other_are_refused() {
    let place = Place(tempdir().unwrap());
    let tables =
        |variables: &[(&str, &str)]| run_in(place.0.path(), &["tables", "azure:"], "", variables);
    tables(&[]).fails(2, "ENTABLE_ACCOUNT");
    let both =
        [("ENTABLE_ACCOUNT", "a"), ("ENTABLE_CONNECTION_STRING", "UseDevelopmentStorage=true")];
    tables(&both).fails(2, "unset one");
    let file = [("ENTABLE_ACCOUNT", "contoso"), ("ENTABLE_CLIENT_SECRET_FILE", "none.txt")];
    tables(&file).fails(2, "needs AZURE_TENANT_ID as well");
    let file = [&file[..], &[("AZURE_TENANT_ID", "t"), ("AZURE_CLIENT_ID", "c")]].concat();
    tables(&file).fails(3, "reading `none.txt`");
    let of_file = ("ENTABLE_CONNECTION_STRING_FILE", "none.txt");
    tables(&[of_file]).fails(3, "reading `none.txt`");
    // The variable of other tools is the last one that is read, and names no second account.
    let others = ("AZURE_STORAGE_CONNECTION_STRING", "nonsense");
    let expected = "connection string";
    tables(&[others]).fails(5, expected);
    run_in(place.0.path(), &["tables"], "", &[others]).fails(5, expected);
    run_in(place.0.path(), &["lag"], "", &[others]).fails(5, expected);
    tables(&[others, of_file]).fails(3, "reading `none.txt`");
    run_in(place.0.path(), &["tables", "azure:old"], "", &[others])
        .fails(2, "set ENTABLE_OLD_CONNECTION_STRING");
    // Another account has variables of its own, and never those without its name.
    let other = |name: &str, variables: &[(&str, &str)]| {
        run_in(place.0.path(), &["tables", name], "", variables)
    };
    let plain = [("ENTABLE_CONNECTION_STRING", "UseDevelopmentStorage=true")];
    other("azure:old", &plain).fails(2, "set ENTABLE_OLD_CONNECTION_STRING");
    other("azure:old", &[("ENTABLE_OLD_CONNECTION_STRING_FILE", "old.txt")])
        .fails(3, "reading `old.txt`");
    let both = [("ENTABLE_OLD_ACCOUNT", "a"), ("ENTABLE_OLD_CONNECTION_STRING", "b")];
    other("azure:old", &both).fails(2, "both ENTABLE_OLD_ACCOUNT");
    let secret = other("azure:c2VjcmV0==", &plain).fails(2, "no argument takes a secret");
    assert!(!secret.err.contains("c2VjcmV0"), "{secret:?}");
    // Two accounts in one command: each is asked with its own credentials.
    let closed = closed_endpoint();
    let of = |name: &str| format!("AccountName={name};AccountKey=a2V5;TableEndpoint={closed}");
    let accounts = [
        ("ENTABLE_OLD_CONNECTION_STRING", &*of("old")),
        ("ENTABLE_CONNECTION_STRING", &*of("new")),
    ];
    run_in(place.0.path(), &["copy", "azure:old", "azure:"], "", &accounts).fails(1, "");
    run_in(place.0.path(), &["copy", "azure:new", "azure:"], "", &accounts)
        .fails(2, "ENTABLE_NEW_ACCOUNT");
}

/// On the emulator `staff` is another table than `Staff`.
#[test]
fn case_counts_in_the_names_of_tables_where_it_does_in_the_store() {
    let place = Place(tempdir().unwrap());
    let (server, requests) = json_server(r#"{"value":[{"TableName":"Staff"}]}"#);
    let address = format!("{server}/devstoreaccount1");
    let row = "{\"PartitionKey\":\"p\",\"RowKey\":\"1\"}\n";
    run_with_input(place.0.path(), &["put", &address, "staff"], row)
        .fails(3, "table `staff` does not exist");
    let methods: Vec<String> = requests.try_iter().map(|request| request.method).collect();
    assert!(!methods.is_empty() && methods.iter().all(|method| method == "GET"), "{methods:?}");
}

#[test]
fn only_services_are_checked() {
    let place = Place::filled();
    place.run(&["check-service", "staff.db"]).fails(2, "`staff.db` is a file");
    place.run(&["check-service", "https://contoso.table.core.windows.net"]).fails(2, "credentials");
    fs::write(place.path("taken.json"), "kept").unwrap();
    let taken = ["check-service", "http://127.0.0.1:9/devstoreaccount1", "--report", "taken"];
    place.run(&taken).fails(4, "taken.json");
    assert_eq!(place.read("taken.json"), "kept");
}

/// The emulator is known to differ in promises about comparisons and limits, and in nothing else.
#[test]
#[ignore = "needs the emulator, whose connection string is in ENTABLE_AZURITE"]
fn the_emulator_is_checked() {
    let connection = std::env::var("ENTABLE_AZURITE").unwrap();
    let place = Place::filled();
    fs::write(place.path("connection.txt"), &connection).unwrap();
    let file = [("ENTABLE_CONNECTION_STRING_FILE", "connection.txt")];
    let check = ["--json", "check-service", "azure:", "--report", "found"];
    let run = run_in(place.0.path(), &check, "", &file);
    let run = run.fails(5, "differs from the promises in");
    let report: Json = serde_json::from_str(&run.out).unwrap();
    assert_eq!(serde_json::from_str::<Json>(&place.read("found.json")).unwrap(), report);
    let names = |part: &Json| -> Vec<String> {
        let found = part.as_array().unwrap().iter().filter(|one| !one["found"].is_null());
        found.map(|one| one["name"].as_str().unwrap().to_owned()).collect()
    };
    let broken = names(&report["promises"]["broken"]);
    for known in
        ["table::list_is_sorted", "value::double_negative_zero", "filter::negative_numbers"]
    {
        assert!(broken.iter().any(|name| name == known), "{known}: {broken:?}");
    }
    let topics = ["compare", "filter", "limit", "page", "table", "value"];
    let is_known = |name: &String| topics.contains(&name.split("::").next().unwrap());
    assert!(broken.iter().all(is_known), "{broken:?}");
    assert_eq!(report["differences"], broken.len());
    for (part, tried) in [("patterns", 12), ("lost_answers", 14)] {
        assert_eq!(report[part].as_array().unwrap().len(), tried);
        assert!(names(&report[part]).is_empty(), "{part}: {}", report[part]);
    }
    assert_eq!(report["timings"].as_array().unwrap().len(), 4);
    // What a user sends to others: neither the account nor its key.
    let key = connection.split("AccountKey=").nth(1).unwrap().split(';').next().unwrap();
    for text in [&run.out, &run.err, &place.read("found.md"), &place.read("found.json")] {
        assert!(!text.contains(key) && !text.contains("devstoreaccount1"), "{text}");
    }
    assert!(place.read("found.md").contains("### value::double_negative_zero"));
    let tables = run_in(place.0.path(), &["tables", "azure:"], "", &file).ok();
    assert!(!tables.contains("Check"), "{tables}");
}

/// The chapter "from a file on a laptop to Azure", as it is written.
#[test]
#[ignore = "needs the emulator, whose connection string is in ENTABLE_AZURITE"]
fn a_store_moves_from_a_file_to_the_service_and_back() {
    let connection = std::env::var("ENTABLE_AZURITE").unwrap();
    let place = Place::filled();
    fs::write(place.path("connection.txt"), &connection).unwrap();
    let run = |arguments: &[&str]| {
        let file = [("ENTABLE_CONNECTION_STRING_FILE", "connection.txt")];
        run_in(place.0.path(), arguments, "", &file)
    };
    let said: Vec<String> = run(&["tables", "azure:"]).ok().lines().map(str::to_owned).collect();
    for table in said.iter().filter(|table| ["Staff", "Types"].contains(&table.as_str())) {
        run(&["delete", "azure:", table, "--whole-table", "--yes"]).ok();
    }
    // The emulator stores -0.0 as 0.0.
    run(&["delete", "staff.db", "Types", "p", "r0", "--yes"]).ok();
    // 1. a copy to fall back to; 2. the bulk, while the program writes on.
    run(&["backup", "staff.db", "before.db"]).ok();
    run(&["backup", "staff.db", "now.db"]).ok();
    run(&["export", "now.db", "all"]).ok();
    run(&["copy", "now.db", "azure:", "--table", "Staff", "--table", "Types"]).ok();
    let row = "{\"PartitionKey\":\"Sales\",\"RowKey\":\"late\",\"Age\":1}\n";
    run_with_input(place.0.path(), &["put", "staff.db", "Staff"], row).ok();
    run(&["delete", "staff.db", "Staff", "Sales", "000", "--yes"]).ok();
    // 3. nothing is open; 4. the rest, and the proof.
    assert!(run(&["lag", "staff.db"]).ok().contains("nothing is open"));
    let both = ["--table", "Staff", "--table", "Types"];
    let copy = |from: &str, to: &str, more: &[&str]| {
        run(&[&["--json", "copy", from, to], &both[..], more].concat())
    };
    copy("staff.db", "azure:", &["--compare"]).fails(5, "differ");
    let moved = copy("staff.db", "azure:", &["--delete-extra", "--yes"]).json();
    let staff = &moved["tables"][0];
    assert_eq!(
        (&moved["equal"], &staff["written"]["rows"], &staff["deleted"]),
        (&true.into(), &1.into(), &1.into())
    );
    // 5. the switch: the service has what the file has, every type exactly.
    for table in ["Staff", "Types"] {
        let export = |store: &str| run(&["export", store, "-", "--table", table]).ok();
        assert_eq!(export("azure:"), export("staff.db"));
    }
    assert_eq!(run(&["count", "azure:", "Staff"]).ok(), "250\n");
    // Back: what was written on the service meanwhile comes along.
    let row = "{\"PartitionKey\":\"Sales\",\"RowKey\":\"cloud\",\"Age\":2}\n";
    let file = [("ENTABLE_CONNECTION_STRING_FILE", "connection.txt")];
    run_in(place.0.path(), &["put", "azure:", "Staff"], row, &file).ok();
    let back = copy("azure:", "staff.db", &["--delete-extra", "--yes"]).json();
    assert_eq!((&back["equal"], &back["tables"][0]["written"]["rows"]), (&true.into(), &1.into()));
    run(&["get", "staff.db", "Staff", "Sales", "cloud"]).ok();
    // The exported directory brings the moment of the backup back.
    run(&["import", "again.db", "all"]).ok();
    assert_eq!(
        run(&["--json", "copy", "before.db", "again.db", "--compare"]).json()["equal"],
        true
    );
    for table in ["Staff", "Types"] {
        run(&["delete", "azure:", table, "--whole-table", "--yes"]).ok();
    }
}
