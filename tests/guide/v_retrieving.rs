//! V: retrieving entities.

use std::{path::Path as FilePath, process::Command};

use entable::{
    backend::layer::{Request, RequestKind},
    prelude::*,
};
use tokio::time::Instant;

use crate::{
    latency::{delay, latencies_since},
    model::{Department, Employee, SampleEmployee, Worker, department, employee, sample, worker},
    store::{Store, TestResult, on_both, on_local},
};

#[tokio::test]
async fn v01_a_point_is_the_entity_or_none() -> TestResult {
    on_both(async |store| {
        let staff = store.table::<Worker>().await;
        staff.insert(&worker(212)).await?;
        let found: Option<Stored<Worker>> =
            staff.get(Worker::primary().department("Sales").id(212)).await?;
        assert_eq!(found.unwrap().into_inner(), worker(212));
        assert!(staff.get(Worker::primary().department("Sales").id(213)).await?.is_none());
        assert!(staff.get(Worker::primary().department("None").id(212)).await?.is_none());
        Ok(())
    })
    .await
}

#[tokio::test]
async fn v02_a_row_of_another_type_is_a_typed_error() -> TestResult {
    on_both(async |store| {
        let departments = store.table::<Department>().await;
        departments.insert(&department("Sales")).await?;
        let workers = store.client.table::<Worker>();
        let error = workers.get(Point::<Worker>::at("Sales", "department")).await.unwrap_err();
        assert!(error.is_unrecognized_entity());
        for part in ["Worker", "Department", "Sales", "Staff"] {
            assert!(error.to_string().contains(part), "{error}");
        }
        Ok(())
    })
    .await
}

/// Employees under their last names, as in the guide's LINQ sample.
#[derive(Debug, Clone, PartialEq, TableEntity)]
#[table(name = "ByName", partition_key = "{department}", row_key = "{last_name}")]
struct ByName {
    department: String,
    last_name: String,
}

async fn names(store: &Store) -> Result<Table<ByName>, Error> {
    let table = store.table::<ByName>().await;
    for (department, last_name) in
        [("Sales", "Abel"), ("Sales", "Baker"), ("Sales", "Byrd"), ("Sales", "Cao"), ("HR", "Bly")]
    {
        let row = ByName { department: department.into(), last_name: last_name.into() };
        table.insert(&row).await?;
    }
    store.requests();
    Ok(table)
}

#[tokio::test]
async fn v03_typed_columns_of_the_keys() -> TestResult {
    on_both(async |store| {
        let table = names(&store).await?;
        let condition =
            ByName::PARTITION_KEY.eq("Sales") & ByName::ROW_KEY.ge("B") & ByName::ROW_KEY.lt("C");
        let text = condition.clone().into_filter()?.to_string();
        assert_eq!(text, "(PartitionKey eq 'Sales') and (RowKey ge 'B') and (RowKey lt 'C')");
        let query = table.query(ByName::scan()).filter(condition);
        assert_eq!(query.explain().class, CostClass::Range, "the columns give the keys");
        let found = query.collect().await?;
        let found: Vec<&str> = found.iter().map(|row| row.last_name.as_str()).collect();
        assert_eq!(found, ["Baker", "Byrd"]);
        Ok(())
    })
    .await
}

#[tokio::test]
async fn v04_a_query_without_a_partition_key_is_refused() -> TestResult {
    on_both(async |store| {
        names(&store).await?;
        let filter = Filter::ge("RowKey", "B") & Filter::lt("RowKey", "C");
        let query = store.client.dynamic("ByName").query(filter);
        assert!(query.collect().await.unwrap_err().is_scan_refused());
        assert!(query.page(None).await.unwrap_err().is_scan_refused());
        assert!(query.first().await.unwrap_err().is_scan_refused());
        assert_eq!(store.count(), 0);
        Ok(())
    })
    .await
}

#[tokio::test]
async fn v05_untyped_filters_nest_as_they_are_built() -> TestResult {
    on_both(async |store| {
        let table = names(&store).await?;
        let nested = Filter::all([
            Filter::all([Filter::eq("PartitionKey", "Sales"), Filter::ge("RowKey", "B")]),
            Filter::lt("RowKey", "C"),
        ]);
        let text = "((PartitionKey eq 'Sales') and (RowKey ge 'B')) and (RowKey lt 'C')";
        assert_eq!(nested.to_string(), text);
        let untyped = store.client.dynamic("ByName").query(nested).collect().await?;
        let untyped: Vec<String> =
            untyped.iter().map(|row| Stored::row_key(row).to_owned()).collect();
        let typed = table.query(ByName::primary().department("Sales").last_name_prefix("B"));
        assert_eq!(
            typed.explain().filter,
            "(PartitionKey eq 'Sales') and (RowKey ge 'B') and (RowKey lt 'C')"
        );
        let typed: Vec<String> =
            typed.collect().await?.iter().map(|row| row.last_name.clone()).collect();
        assert_eq!(untyped, typed);
        assert_eq!(typed, ["Baker", "Byrd"]);
        Ok(())
    })
    .await
}

#[test]
fn v06_any_number_of_conditions_is_combined() {
    let three = [Filter::eq("A", 1), Filter::eq("B", 2), Filter::eq("C", 3)];
    assert_eq!(Filter::all(three.clone()).to_string(), "(A eq 1) and (B eq 2) and (C eq 3)");
    assert_eq!(Filter::any(three.clone()).to_string(), "(A eq 1) or (B eq 2) or (C eq 3)");
    let [a, b, c] = three;
    assert_eq!((a & b & c).to_string(), "(A eq 1) and (B eq 2) and (C eq 3)");
}

#[tokio::test]
async fn v07_typed_and_untyped_styles_find_the_same() -> TestResult {
    on_both(async |store| {
        let staff = store.table::<Employee>().await;
        let rows = (1..=20).map(|id| Employee { age: 20 + id as i32, ..employee(id, "Jones") });
        staff.bulk().insert_all(rows).await?.into_result()?;
        let sales = || Employee::primary().department("Sales");
        let typed = staff.query(sales()).filter(Employee::AGE.ge(30) & !Employee::AGE.eq(35));
        let typed: Vec<String> =
            typed.collect().await?.iter().map(|e| e.row_key().to_owned()).collect();
        let built = sales().keys().filter() & Filter::ge("Age", 30) & !Filter::eq("Age", 35);
        let parsed = Filter::parse(
            "PartitionKey eq 'Sales' and RowKey ge 'empid_' and RowKey lt 'empid`' and Age ge 30 and not (Age eq 35)",
        )?;
        for filter in [built, parsed] {
            let found = store.client.dynamic("Staff").query(filter).collect().await?;
            let found: Vec<String> =
                found.iter().map(|row| Stored::row_key(row).to_owned()).collect();
            assert_eq!(found, typed);
        }
        assert_eq!(typed.len(), 10);
        Ok(())
    })
    .await
}

async fn two_and_a_half_thousand(store: &Store) -> Result<Table<Worker>, Error> {
    let staff = store.table::<Worker>().await;
    let rows = (0..2_500).map(|id| Worker { department: format!("D{}", id / 900), ..worker(id) });
    staff.bulk().insert_all(rows).await?.into_result()?;
    store.requests();
    Ok(staff)
}

/// One partition answers page by page, several are read side by side, and each page is one request.
#[tokio::test]
async fn v08_several_pages_of_several_partitions() -> TestResult {
    on_both(async |store| {
        let staff = two_and_a_half_thousand(&store).await?;
        let more = (10_000..11_400).map(|id| Worker { department: "D0".into(), ..worker(id) });
        staff.bulk().insert_all(more).await?.into_result()?;
        store.requests();
        let path = |department: &str| Worker::primary().department(department);

        let one = staff.query(path("D0")).collect().await?;
        assert_eq!((one.len(), store.requests().len()), (2_300, 3));

        let all = staff.query_many(["D0", "D1", "D2"].map(path)).collect().await?;
        assert_eq!((all.len(), store.requests().len()), (3_900, 5));
        let mut keys: Vec<_> = all.iter().map(|worker| (&worker.department, worker.id)).collect();
        keys.sort();
        keys.dedup();
        assert_eq!(keys.len(), 3_900, "each once");
        Ok(())
    })
    .await
}

#[tokio::test]
async fn v09_a_stream_crosses_pages() -> TestResult {
    on_both(async |store| {
        let staff = two_and_a_half_thousand(&store).await?;
        let mut seen = Vec::new();
        let mut stream = staff.query(Worker::scan()).stream();
        while let Some(found) = stream.next().await {
            seen.push(found?.id);
        }
        assert_eq!(seen, (0..2_500).collect::<Vec<u32>>(), "each once, in order");
        assert!(store.count() >= 3);
        Ok(())
    })
    .await
}

#[tokio::test]
async fn v10_pages_are_asked_for_one_by_one() -> TestResult {
    on_both(async |store| {
        let staff = two_and_a_half_thousand(&store).await?;
        let query = staff.query(Worker::scan());
        let mut seen = Vec::new();
        let mut token: Option<Cursor> = None;
        loop {
            let page = query.page(token).await?;
            seen.extend(page.items.iter().map(|worker| worker.id));
            token = page.next;
            if token.is_none() {
                break;
            }
        }
        assert_eq!(seen, (0..2_500).collect::<Vec<u32>>());
        Ok(())
    })
    .await
}

#[tokio::test]
async fn v11_nothing_is_fetched_before_it_is_asked_for() -> TestResult {
    on_both(async |store| {
        let staff = store.table::<Worker>().await;
        staff.bulk().insert_all((0..200).map(worker)).await?.into_result()?;
        store.requests();
        let query = staff.query(Worker::primary().department("Sales")).page_size(50);
        let mut stream = query.stream();
        assert_eq!(store.recorder.count(), 0);
        for _ in 0..50 {
            stream.next().await.unwrap()?;
        }
        assert_eq!(store.recorder.count(), 1);
        stream.next().await.unwrap()?;
        assert_eq!(store.recorder.count(), 2);
        drop(stream);
        store.requests();
        let page = query.page(None).await?;
        assert!(page.next.is_some());
        assert_eq!(store.count(), 1);
        Ok(())
    })
    .await
}

#[tokio::test(start_paused = true)]
async fn v12_pages_are_futures_that_run_side_by_side() -> TestResult {
    on_local(async |store| {
        let staff = store.table::<Worker>().await;
        staff.insert(&worker(1)).await?;
        let query = staff.query(Worker::primary().department("Sales"));
        let tasks = (0..4).map(|_| {
            let query = query.clone();
            tokio::spawn(async move { query.page(None).await.map(|page| page.items.len()) })
        });
        delay(&store, RequestKind::Scan, 4);
        let begun = Instant::now();
        for task in tasks.collect::<Vec<_>>() {
            assert_eq!(task.await??, 1);
        }
        assert_eq!(latencies_since(begun), 1, "four pages take as long as one");
        Ok(())
    })
    .await
}

const CHILD: &str = "ENTABLE_GUIDE_V13";

fn resumable(staff: &Table<Worker>) -> Query<Worker, Stored<Worker>> {
    staff.query(Worker::scan())
}

/// The second process: goes on where the first one stopped, and writes down what it read.
async fn go_on(directory: &FilePath) -> TestResult {
    let client = Client::open(directory.join("staff.db"))?;
    let token: Cursor = serde_json::from_str(&std::fs::read_to_string(directory.join("token"))?)?;
    let query = resumable(&client.table());
    let mut ids = String::new();
    let mut token = Some(token);
    while let Some(cursor) = token {
        let page = query.page(Some(cursor)).await?;
        page.items.iter().for_each(|worker| ids.push_str(&format!("{}\n", worker.id)));
        token = page.next;
    }
    std::fs::write(directory.join("ids"), ids)?;
    Ok(())
}

#[tokio::test]
async fn v13_a_token_goes_on_in_a_new_process() -> TestResult {
    if let Some(directory) = std::env::var_os(CHILD) {
        return go_on(FilePath::new(&directory)).await;
    }
    let directory = tempfile::tempdir()?;
    let first = {
        let client = Client::open(directory.path().join("staff.db"))?;
        let staff = client.table::<Worker>();
        staff.create().await?;
        staff.bulk().insert_all((0..2_500).map(worker)).await?.into_result()?;
        let page = resumable(&staff).page(None).await?;
        let token = serde_json::to_string(&page.next.unwrap())?;
        std::fs::write(directory.path().join("token"), token)?;
        page.items.iter().map(|worker| worker.id).collect::<Vec<u32>>()
    };
    let name = "v_retrieving::v13_a_token_goes_on_in_a_new_process";
    let child = Command::new(std::env::current_exe()?)
        .args(["--exact", name])
        .env(CHILD, directory.path())
        .output()?;
    assert!(child.status.success(), "{}", String::from_utf8_lossy(&child.stdout));
    let rest = std::fs::read_to_string(directory.path().join("ids"))?;
    let rest: Result<Vec<u32>, _> = rest.lines().map(str::parse).collect();
    let all: Vec<u32> = first.into_iter().chain(rest?).collect();
    assert_eq!(all, (0..2_500).collect::<Vec<u32>>());
    Ok(())
}

#[tokio::test]
async fn v14_take_goes_on_over_short_and_empty_pages() -> TestResult {
    on_both(async |store| {
        let staff = store.table::<Worker>().await;
        staff.bulk().insert_all((0..200).map(worker)).await?.into_result()?;
        store.fault.shorten_pages(Some(17));
        store.fault.empty_pages(true);
        store.requests();
        let query = staff.query(Worker::primary().department("Sales")).page_size(50).take(120);
        let found = query.collect().await?;
        assert_eq!(found.iter().map(|w| w.id).collect::<Vec<_>>(), (0..120).collect::<Vec<u32>>());
        let requests = store.requests();
        for request in &requests {
            assert!(matches!(request, Request::Scan { top: Some(top), .. } if *top <= 50));
        }
        assert_eq!(requests.len(), 16, "eight pages of rows, each after an empty one");
        let few = staff.query(Worker::primary().department("Sales").id_range(0..=9)).take(120);
        assert_eq!(few.collect().await?.len(), 10, "until the end of the data");
        Ok(())
    })
    .await
}

#[tokio::test]
async fn v15_a_page_size_is_the_top_of_each_request() -> TestResult {
    on_both(async |store| {
        let staff = store.table::<Worker>().await;
        staff.bulk().insert_all((0..150).map(worker)).await?.into_result()?;
        store.requests();
        let query = staff.query(Worker::primary().department("Sales")).page_size(50);
        assert_eq!(query.page(None).await?.items.len(), 50);
        assert_eq!(query.collect().await?.len(), 150);
        let requests = store.requests();
        assert!(requests.iter().all(|r| matches!(r, Request::Scan { top: Some(50), .. })));
        Ok(())
    })
    .await
}

#[derive(Debug, PartialEq, Projection)]
#[table(of = SampleEmployee)]
struct EmailOnly {
    email: String,
}

async fn sales_emails(client: &Client) -> Result<Vec<Stored<EmailOnly>>, Error> {
    let employees = client.table::<SampleEmployee>();
    let sales = employees.query(SampleEmployee::primary().department("Sales"));
    sales.select::<EmailOnly>().collect().await
}

#[tokio::test]
async fn v16_a_projection_keeps_the_system_properties() -> TestResult {
    on_both(async |store| {
        sample(&store.client).await?;
        store.requests();
        let found = sales_emails(&store.client).await?;
        let Some(Request::Scan { select: Some(select), .. }) = store.requests().pop() else {
            panic!("a query with a selection")
        };
        assert!(select.contains(&"Email".to_owned()));
        assert!(
            !select.iter().any(|name| ["FirstName", "LastName", "Age"].contains(&name.as_str()))
        );
        let [ken] = &found[..] else { panic!("one employee in Sales") };
        assert_eq!(**ken, EmailOnly { email: "kenk@contoso.com".into() });
        assert_eq!((ken.partition_key(), ken.row_key()), ("Sales", "00010"));
        assert!(ken.timestamp().is_some());
        assert!(ken.etag().to_string().starts_with("W/"));
        assert_eq!(ken.row().get("LastName")?, None, "absent, not empty");
        Ok(())
    })
    .await
}

#[tokio::test]
async fn v17_the_printed_line() -> TestResult {
    on_both(async |store| {
        sample(&store.client).await?;
        let found = sales_emails(&store.client).await?;
        let lines: Vec<String> = found
            .iter()
            .map(|row| format!("RowKey: {}, EmployeeEmail: {}", row.row_key(), row.email))
            .collect();
        assert_eq!(lines, ["RowKey: 00010, EmployeeEmail: kenk@contoso.com"]);
        let example = include_str!("../../examples/find_by_email.rs");
        assert!(example.contains(r#"println!("RowKey: {}, EmployeeEmail: {}", don.row_key()"#));
        Ok(())
    })
    .await
}

#[tokio::test]
async fn v18_a_selection_holds_the_type() -> TestResult {
    on_both(async |store| {
        sample(&store.client).await?;
        let employees = store.client.table::<SampleEmployee>();
        let marketing = employees.query(SampleEmployee::primary().department("Marketing"));
        let marketing = marketing.select::<EmailOnly>();
        assert!(marketing.explain().select.contains(&"EntityType".to_owned()));
        assert_eq!(marketing.collect().await?.len(), 2, "the department is compared exactly");
        let point = Point::<SampleEmployee>::at("Marketing", "Department");
        let error = employees.get_as::<EmailOnly>(point).await.unwrap_err();
        assert!(error.is_unrecognized_entity(), "{error}");
        Ok(())
    })
    .await
}
