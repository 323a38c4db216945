//! Tests reads from an account's copy in another region while the primary region is out.

use std::{sync::Arc, time::Duration};

use entable::{
    AzureOptions, Client, Error, Filter, Location, Operation,
    backend::{
        Backend, ScanRequest, TableRequest,
        azure::{PrimaryThenSecondary, Transport},
    },
    prelude::*,
};

use crate::{
    emulator::{apply, read, row},
    raw_server::{http, listen},
    scripted_http::{Asked, Fake, KEY, Reply, answer, refusal},
};

#[derive(Debug, Clone, PartialEq, TableEntity)]
#[table(name = "Staff", partition_key = "{department}", row_key = "{id:03}")]
struct Employee {
    department: String,
    id: u32,
    name: String,
}

const PRIMARY: &str = "https://myaccount.table.core.windows.net/";
const SECONDARY: &str = "https://myaccount-secondary.table.core.windows.net/";

fn options() -> AzureOptions {
    AzureOptions::from_account_key("myaccount", KEY).unwrap()
}

fn reads(fake: &Arc<Fake>) -> PrimaryThenSecondary {
    let transport = Arc::clone(fake) as Arc<dyn Transport>;
    PrimaryThenSecondary::new(options().transport(transport)).unwrap()
}

/// A client that repeats nothing, so that each test counts its requests.
fn reader(fake: &Arc<Fake>) -> Client {
    Client::builder().backend(reads(fake)).build().unwrap()
}

const ROW: &str = r#"{"odata.etag":"W/\"one\"","PartitionKey":"Sales","RowKey":"007","Timestamp":"2026-01-01T00:00:00Z","EntityType":"Employee","Name":"Cao"}"#;

fn found() -> Reply {
    Reply::Answer(200, vec![("etag", "W/\"one\"")], ROW.to_owned())
}

fn page(next: &'static [(&'static str, &'static str)]) -> Reply {
    let mut headers = vec![("date", "Thu, 01 Jan 2026 00:00:00 GMT")];
    headers.extend(next);
    Reply::Answer(200, headers, format!("{{\"value\":[{ROW}]}}"))
}

const NEXT: &[(&str, &str)] =
    &[("x-ms-continuation-nextpartitionkey", "1!8!x"), ("x-ms-continuation-nextrowkey", "1!8!y")];

fn busy() -> Reply {
    refusal(503, "ServerBusy", "The server is busy.")
}

/// The place that each request went to, in order: `P` or `S`.
fn places(asked: &[Asked]) -> String {
    let place =
        |asked: &Asked| match (asked.url.starts_with(PRIMARY), asked.url.starts_with(SECONDARY)) {
            (true, false) => 'P',
            (false, true) => 'S',
            _ => panic!("{}", asked.url),
        };
    asked.iter().map(place).collect()
}

fn at() -> Point<Employee> {
    Employee::primary().department("Sales").id(7)
}

#[tokio::test(start_paused = true)]
async fn a_value_says_where_it_was_read_and_each_outage_leads_to_the_secondary() {
    let fake = Fake::new([found()]);
    let cao = reader(&fake).table::<Employee>().get(at()).await.unwrap().unwrap();
    assert_eq!((cao.location(), &*places(&fake.asked())), (Location::Primary, "P"));

    for outage in [busy(), Reply::Reset, Reply::Silence, answer(500, &[]), answer(408, &[])] {
        let fake = Fake::new([outage.clone(), found()]);
        let cao = reader(&fake).table::<Employee>().get(at()).await.unwrap().unwrap();
        assert_eq!(cao.location(), Location::Secondary, "{outage:?}");
        assert_eq!((&*cao.name, cao.etag().to_string()), ("Cao", "W/\"one\"".to_owned()));
        assert_eq!(places(&fake.asked()), "PS", "{outage:?}");
        // The signature of the copy is the one of the account.
        let signature = fake.asked()[1].header("authorization").map(str::to_owned);
        assert!(signature.unwrap().starts_with("SharedKey myaccount:"));
    }
}

#[tokio::test]
async fn what_the_primary_says_counts_and_what_the_secondary_lacks_is_not_said_to_be_missing() {
    let missing = || refusal(404, "ResourceNotFound", "none");
    let fake = Fake::new([missing()]);
    assert!(reader(&fake).table::<Employee>().get(at()).await.unwrap().is_none());
    let fake = Fake::new([refusal(403, "AuthenticationFailed", "no")]);
    assert!(reader(&fake).table::<Employee>().get(at()).await.unwrap_err().is_denied());
    let fake = Fake::new([refusal(404, "TableNotFound", "none")]);
    assert!(reader(&fake).table::<Employee>().get(at()).await.unwrap_err().is_not_found());
    // The row may have been written a minute ago. The table, too.
    for lacks in [missing(), refusal(404, "TableNotFound", "none"), Reply::Reset] {
        let fake = Fake::new([busy(), lacks]);
        let error = reader(&fake).table::<Employee>().get(at()).await.unwrap_err();
        assert!(error.is_throttled(), "{error}");
        assert_eq!(places(&fake.asked()), "PS");
    }
}

#[tokio::test]
async fn the_pages_of_a_query_come_from_one_place() {
    let query =
        |client: &Client| client.table::<Employee>().query(Employee::primary().department("Sales"));
    // From the secondary, although the primary is there again.
    let fake = Fake::new([Reply::Reset, page(NEXT), page(&[])]);
    let client = reader(&fake);
    let first = query(&client).page(None).await.unwrap();
    assert_eq!(first.items[0].location(), Location::Secondary);
    // A cursor is text, which another process may go on with.
    let cursor: Cursor = first.next.unwrap().to_string().parse().unwrap();
    let second = query(&client).page(Some(cursor)).await.unwrap();
    assert_eq!(second.items[0].location(), Location::Secondary);
    assert!(second.next.is_none());
    assert_eq!(places(&fake.asked()), "PSS");
    let asked = &fake.asked()[2].url;
    assert!(asked.contains("NextPartitionKey=1%218%21x&NextRowKey=1%218%21y"), "{asked}");

    // From the primary, although it is out now.
    let fake = Fake::new([page(NEXT), busy()]);
    let other = reader(&fake);
    let first = query(&other).page(None).await.unwrap();
    assert_eq!(first.items[0].location(), Location::Primary);
    assert!(query(&other).page(first.next).await.unwrap_err().is_throttled());
    assert_eq!(places(&fake.asked()), "PP");
}

#[tokio::test]
async fn a_page_of_the_secondary_has_no_date() {
    let filter = Filter::Constant(true);
    let scan = ScanRequest { table: "Staff", filter: &filter, select: None, top: None, from: None };
    let fake = Fake::new([page(&[]), busy(), page(&[])]);
    let reads = reads(&fake);
    assert!(reads.scan(scan).await.unwrap().date.is_some());
    assert!(reads.scan(scan).await.unwrap().date.is_none());
    assert!(!reads.capabilities().strong_reads);
}

#[tokio::test]
async fn a_client_that_reads_the_secondary_writes_nothing() {
    let employee = Employee { department: "Sales".into(), id: 7, name: "Cao".into() };
    let fake = Fake::new([busy(), found()]);
    let client = reader(&fake);
    let staff = client.table::<Employee>();
    let refused = |error: Error| {
        assert!(
            error.is_unsupported() && error.to_string().contains("client of the primary"),
            "{error}"
        );
    };
    refused(staff.insert(&employee).await.map(drop).unwrap_err());
    refused(staff.insert_or_replace(&employee).await.map(drop).unwrap_err());
    refused(staff.delete_at(at()).await.map(drop).unwrap_err());
    refused(client.create_table("Staff").await.unwrap_err());
    refused(
        apply(&reads(&fake), "Staff", Operation::insert(row("p", "r", "x"))).await.unwrap_err(),
    );
    refused(reads(&fake).tables(TableRequest::Delete("Staff")).await.unwrap_err());
    assert_eq!(places(&fake.asked()), "", "nothing is sent");
    // A verb that reads first, too, even if the read came through.
    refused(
        staff
            .update(at(), |employee| {
                employee.name = "Wu".into();
                Ok(())
            })
            .await
            .map(drop)
            .unwrap_err(),
    );
    assert!(fake.asked().iter().all(|asked| asked.method == "GET"));
}

#[tokio::test]
async fn a_value_of_the_secondary_is_written_at_the_primary_under_its_etag() {
    let fake = Fake::new([busy(), found(), refusal(412, "UpdateConditionNotSatisfied", "changed")]);
    let mut cao = reader(&fake).table::<Employee>().get(at()).await.unwrap().unwrap();
    cao.name = "Wu".into();
    let primary = Client::builder().backend(fake.azure()).build().unwrap();
    let error = primary.table::<Employee>().replace(&cao).await.map(drop).unwrap_err();
    assert!(error.is_precondition_failed(), "{error}");
    assert_eq!(places(&fake.asked()), "PSP");
    assert_eq!(fake.asked()[2].header("if-match"), Some("W/\"one\""));
}

/// Over the transport on two sockets: the primary closes each connection.
#[tokio::test]
async fn a_primary_that_closes_each_connection_is_passed_by() {
    let (primary, refused) = listen(crate::raw_server::says("")).await;
    let headers = "Content-Type: application/json\r\n";
    let body = r#"{"PartitionKey":"p","RowKey":"r","Timestamp":"2026-01-01T00:00:00Z"}"#;
    let (secondary, asked) = listen(http("200 OK", headers, body)).await;
    let options = options().endpoint(&primary).unwrap().timeout(Duration::from_secs(20));
    let options = options.secondary_endpoint(&secondary).unwrap();
    let reads = PrimaryThenSecondary::new(options).unwrap();
    assert!(read(&reads, "Staff", "p", "r").await.unwrap().is_some());
    let count =
        |asked: &std::sync::atomic::AtomicUsize| asked.load(std::sync::atomic::Ordering::SeqCst);
    assert_eq!((count(&refused), count(&asked)), (1, 1));
}

#[test]
fn the_address_of_the_secondary_follows_from_the_endpoint() {
    let address = |options: AzureOptions| {
        PrimaryThenSecondary::new(options).map(|reads| reads.secondary_endpoint().to_owned())
    };
    assert_eq!(address(options()).unwrap(), SECONDARY.trim_end_matches('/'));
    let china = options().endpoint_suffix("core.chinacloudapi.cn").unwrap();
    assert_eq!(address(china).unwrap(), "https://myaccount-secondary.table.core.chinacloudapi.cn");
    assert_eq!(
        address(AzureOptions::emulator()).unwrap(),
        "http://127.0.0.1:10002/devstoreaccount1-secondary"
    );
    for other in ["https://tables.example.com", "https://myaccount.table.cosmos.azure.com"] {
        let error = address(options().endpoint(other).unwrap()).unwrap_err();
        assert!(error.is_invalid() && error.to_string().contains("secondary_endpoint"), "{error}");
    }
}
