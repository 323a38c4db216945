//! The patterns of the design guide by typed entities, each with the outcome that the library promises.

use std::sync::Arc;

use entable::{
    Bag, Error, KeyScope, Keyring, PlaintextPolicy, RootKey,
    backend::{Backend, BoxFuture},
    prelude::*,
};
use time::{Duration, OffsetDateTime, macros::datetime};

use super::outcome::{Finding, Unexpected, expect, expect_error};

type Outcome = Result<(), Unexpected>;

/// A pattern: its name and the function that tries it. Each pattern uses its own tables.
type Pattern = (&'static str, fn(Arc<dyn Backend>) -> BoxFuture<'static, Outcome>);

const PATTERNS: &[Pattern] = &[
    ("compound keys: point, range, partition", |store| Box::pin(compound_keys(store))),
    ("optimistic concurrency", |store| Box::pin(concurrency(store))),
    ("merge keeps what it does not name", |store| Box::pin(merges(store))),
    ("index in the partition, unique", |store| Box::pin(local_index(store))),
    ("index in another partition, by a worker", |store| Box::pin(remote_index(store))),
    ("unique value across partitions", |store| Box::pin(unique_value(store))),
    ("log tail", |store| Box::pin(log_tail(store))),
    ("pages of a large partition", |store| Box::pin(pages(store))),
    ("data series and split values", |store| Box::pin(series(store))),
    ("entity of several rows", |store| Box::pin(wide(store))),
    ("encrypted properties", |store| Box::pin(encrypted(store))),
    ("tables by day", |store| Box::pin(dated(store))),
];

/// Tries every pattern on a store. An error of the service is a finding of its pattern.
pub(super) async fn try_all(store: &Arc<dyn Backend>, progress: &impl Fn(&str)) -> Vec<Finding> {
    let mut findings = Vec::with_capacity(PATTERNS.len());
    for (name, try_pattern) in PATTERNS {
        progress(&format!("pattern: {name}"));
        findings.push(Finding::new(*name, try_pattern(Arc::clone(store)).await));
    }
    findings
}

fn client(store: Arc<dyn Backend>) -> Result<Client, Error> {
    Client::builder().backend(store).build()
}

#[derive(Debug, Clone, PartialEq, TableEntity)]
#[table(name = "Reviews", partition_key = "{department}", row_key = "{employee:06}_{year:04}")]
struct Review {
    department: String,
    employee: u32,
    year: u16,
    rating: i32,
    note: Option<String>,
}

fn review(employee: u32, year: u16) -> Review {
    Review {
        department: "Sales".to_owned(),
        employee,
        year,
        rating: i32::from(year) - 2010,
        note: None,
    }
}

async fn compound_keys(store: Arc<dyn Backend>) -> Outcome {
    let reviews: Table<Review> = client(store)?.table();
    reviews.create_if_not_exists().await?;
    for (employee, year) in [(7, 2013), (7, 2014), (8, 2014), (90, 2012)] {
        reviews.insert(&review(employee, year)).await?;
    }
    let path = || Review::primary().department("Sales");
    let point = reviews.get(path().employee(7).year(2014)).await?;
    expect("a point", Some(2014), point.map(|found| found.year))?;
    let years = |found: Vec<Stored<Review>>| -> Vec<_> {
        found.iter().map(|review| (review.employee, review.year)).collect()
    };
    let one = reviews.query(path().employee(7)).collect().await?;
    expect("all years of an employee", vec![(7, 2013), (7, 2014)], years(one))?;
    let range = reviews.query(path().employee_range(8..=90)).collect().await?;
    expect("a range of employees", vec![(8, 2014), (90, 2012)], years(range))?;
    let filtered = reviews.query(path()).filter(Review::RATING.ge(4)).count().await?;
    expect("a filter on a property", 2, filtered)
}

#[derive(Debug, Clone, PartialEq, TableEntity)]
#[table(name = "Counters", partition_key = "{group}", row_key = "{name}")]
struct Counter {
    group: String,
    name: String,
    count: i64,
    note: Option<String>,
}

fn counter(name: &str) -> Counter {
    Counter { group: "g".to_owned(), name: name.to_owned(), count: 1, note: None }
}

async fn concurrency(store: Arc<dyn Backend>) -> Outcome {
    let counters: Table<Counter> = client(store)?.table();
    counters.create_if_not_exists().await?;
    let mut first = counters.insert(&counter("a")).await?;
    let mut second = first.clone();
    expect_error(
        "a second insert",
        "`is_conflict`",
        counters.insert(&counter("a")).await,
        Error::is_conflict,
    )?;
    first.count = 2;
    counters.replace(&first).await?;
    second.count = 3;
    let stale = counters.replace(&second).await;
    expect_error(
        "a replacement under an old ETag",
        "`is_precondition_failed`",
        stale,
        Error::is_precondition_failed,
    )?;
    let stale = counters.delete(&second).await;
    expect_error(
        "a delete under an old ETag",
        "`is_precondition_failed`",
        stale,
        Error::is_precondition_failed,
    )?;
    let point = || Counter::primary().group("g").name("a");
    for _ in 0..3 {
        counters
            .update(point(), |counter| {
                counter.count += 1;
                Ok(())
            })
            .await?;
    }
    let count = counters.get(point()).await?.map(|counter| counter.count);
    expect("the count after three updates", Some(5), count)
}

async fn merges(store: Arc<dyn Backend>) -> Outcome {
    let client = client(store)?;
    let counters: Table<Counter> = client.table();
    counters.create_if_not_exists().await?;
    let noted = Counter { note: Some("kept".to_owned()), ..counter("m") };
    counters.insert(&noted).await?;
    let point = || Counter::primary().group("g").name("m");
    counters.patch_at(point(), Counter::patch().count(9)).await?;
    let found = counters.get(point()).await?;
    let found = found.map(|counter| (counter.count, counter.note.clone()));
    expect("after a patch of the count", Some((9, Some("kept".to_owned()))), found)?;
    let row = client.dynamic("Counters").get("g", "m").await?;
    let bag: Option<Bag> = row.map(|row| row.row().to_bag()).transpose()?;
    let count = bag.and_then(|bag| bag.get("Count").cloned());
    expect("the stored type of a 64-bit count", Some(Value::Int64(9)), count)
}

#[derive(Debug, Clone, PartialEq, TableEntity)]
#[table(
    name = "Staff",
    partition_key = "{department}",
    row_key = "empid_{id:06}",
    index(ByEmail, row_key = "email_{email:lower}", unique)
)]
struct Employee {
    department: String,
    id: u32,
    email: String,
}

fn employee(id: u32, email: &str) -> Employee {
    Employee { department: "Sales".to_owned(), id, email: email.to_owned() }
}

async fn local_index(store: Arc<dyn Backend>) -> Outcome {
    let staff: Table<Employee> = client(store)?.table();
    staff.create_if_not_exists().await?;
    let mut jones = staff.insert(&employee(1, "jones@contoso.com")).await?;
    let by_email = |email: &str| Employee::by_email().department("Sales").email(email);
    let found = staff.get(by_email("Jones@Contoso.com")).await?.map(|found| found.id);
    expect("by e-mail in another case", Some(1), found)?;
    let taken = staff.insert(&employee(2, "JONES@contoso.com")).await;
    expect_error("a taken e-mail", "`is_unique_violation`", taken, Error::is_unique_violation)?;
    jones.email = "new@contoso.com".to_owned();
    staff.replace(&jones).await?;
    let old = staff.get(by_email("jones@contoso.com")).await?.map(|found| found.id);
    expect("by the former e-mail", None, old)?;
    let new = staff.get(by_email("new@contoso.com")).await?.map(|found| found.id);
    expect("by the new e-mail", Some(1), new)
}

#[derive(Debug, Clone, PartialEq, TableEntity)]
#[table(
    name = "Orders",
    partition_key = "{customer}",
    row_key = "{number:08}",
    index(ByProduct, partition_key = "product_{product}", row_key = "{customer}_{number:08}")
)]
struct Order {
    customer: String,
    number: u32,
    product: String,
}

async fn remote_index(store: Arc<dyn Backend>) -> Outcome {
    let client = client(store)?;
    let orders: Table<Order> = client.table();
    orders.create_if_not_exists().await?;
    for (customer, number) in [("ann", 1), ("don", 2), ("jun", 3)] {
        let product = "tea".to_owned();
        orders.insert(&Order { customer: customer.to_owned(), number, product }).await?;
    }
    orders.delete_at(Order::primary().customer("don").number(2)).await?;
    let stats = client.worker().with::<Order>().drain().await?;
    expect("work that is open after a worker", (0, 0), (stats.open, stats.poisoned))?;
    let found = orders.query(Order::by_product().product("tea")).collect().await?;
    let customers: Vec<_> = found.iter().map(|order| order.customer.clone()).collect();
    expect("customers of a product", vec!["ann".to_owned(), "jun".to_owned()], customers)
}

#[derive(Debug, Clone, PartialEq, TableEntity)]
#[table(
    name = "Accounts",
    partition_key = "region_{region}",
    row_key = "{id:08}",
    index(ByEmail, partition_key = "email_{email:lower}", row_key = "account", unique)
)]
struct Account {
    region: String,
    id: u32,
    email: String,
}

async fn unique_value(store: Arc<dyn Backend>) -> Outcome {
    let client = client(store)?;
    let accounts: Table<Account> = client.table();
    accounts.create_if_not_exists().await?;
    let account = |region: &str, id| Account {
        region: region.to_owned(),
        id,
        email: "don@contoso.com".to_owned(),
    };
    accounts.insert(&account("eu", 1)).await?;
    let taken = accounts.insert(&account("us", 2)).await;
    expect_error(
        "a value that another partition has",
        "`is_unique_violation`",
        taken,
        Error::is_unique_violation,
    )?;
    client.wait_for_copies().await;
    accounts.delete_at(Account::primary().region("eu").id(1)).await?;
    client.wait_for_copies().await;
    accounts.insert(&account("us", 2)).await?;
    client.worker().with::<Account>().drain().await?;
    let holder = accounts.get(Account::by_email().email("don@contoso.com")).await?;
    let holder = holder.map(|account| (account.region.clone(), account.id));
    expect("the holder of a value that was freed", Some(("us".to_owned(), 2)), holder)
}

#[derive(Debug, Clone, PartialEq, TableEntity)]
#[table(name = "Expenses", partition_key = "{employee:06}", row_key = "{at:desc}_{number:desc}")]
struct Expense {
    employee: u32,
    at: OffsetDateTime,
    number: u32,
}

const FIRST_EXPENSE: OffsetDateTime = datetime!(2014-08-22 00:50:32 UTC);

async fn log_tail(store: Arc<dyn Backend>) -> Outcome {
    let expenses: Table<Expense> = client(store)?.table();
    expenses.create_if_not_exists().await?;
    let rows = (0..20).map(|number| Expense {
        employee: 7,
        at: FIRST_EXPENSE + Duration::minutes(i64::from(number / 2)),
        number,
    });
    expenses.bulk().insert_all(rows).await?.into_result()?;
    let newest = expenses.query(Expense::primary().employee(7)).take(3).collect().await?;
    let newest: Vec<_> = newest.iter().map(|expense| expense.number).collect();
    expect("the newest three of twenty", vec![19, 18, 17], newest)
}

/// More than a page of the service has.
const LARGE: u32 = 1_100;

async fn pages(store: Arc<dyn Backend>) -> Outcome {
    let reviews: Table<Review> = client(store)?.table();
    reviews.create_if_not_exists().await?;
    let rows =
        (0..LARGE).map(|employee| Review { department: "Large".into(), ..review(employee, 2014) });
    reviews.bulk().insert_all(rows).await?.into_result()?;
    let found = reviews.query(Review::primary().department("Large")).collect().await?;
    let order: Vec<_> = found.iter().map(|review| review.employee).collect();
    expect("rows of two pages", order.len(), LARGE as usize)?;
    expect("rows of two pages in the order of keys", true, order.is_sorted())?;
    let report = reviews
        .query(Review::primary().department("Large"))
        .filter(Review::RATING.eq(4))
        .delete_all()
        .await?;
    expect("rows that are deleted", u64::from(LARGE), report.done)
}

#[derive(Debug, Clone, PartialEq, TableEntity)]
#[table(name = "Days", partition_key = "{employee:06}", row_key = "{day:04}")]
struct Day {
    employee: u32,
    day: u16,
    #[table(series)]
    sent: [i32; 24],
    #[table(split(2))]
    report: String,
}

async fn series(store: Arc<dyn Backend>) -> Outcome {
    let days: Table<Day> = client(store)?.table();
    days.create_if_not_exists().await?;
    let report = "e".repeat(40_000);
    let day = Day { employee: 223, day: 31, sent: [0; 24], report: report.clone() };
    days.insert(&day).await?;
    let point = || Day::primary().employee(223).day(31);
    days.patch_at(point(), Day::patch().sent(9, 12)).await?;
    let found = days.get(point()).await?;
    let sent = found.as_ref().and_then(|day| day.sent.get(9).copied());
    expect("one value of the series", Some(12), sent)?;
    expect("a text of two properties", Some(report.len()), found.map(|day| day.report.len()))
}

#[derive(Debug, Clone, PartialEq, TableEntity)]
#[table(name = "Years", partition_key = "{department}", row_key = "{employee:06}", wide)]
struct Year {
    department: String,
    employee: u32,
    #[table(series("Day{:03}"))]
    days: [i32; 365],
}

async fn wide(store: Arc<dyn Backend>) -> Outcome {
    let years: Table<Year> = client(store)?.table();
    years.create_if_not_exists().await?;
    years.insert(&Year { department: "Sales".to_owned(), employee: 7, days: [1; 365] }).await?;
    let point = || Year::primary().department("Sales").employee(7);
    years.patch_at(point(), Year::patch().days(364, 9)).await?;
    let found = years.get(point()).await?.map(|year| year.days.iter().sum::<i32>());
    expect("the sum of a year in two rows", Some(364 + 9), found)
}

#[derive(Debug, Clone, PartialEq, TableEntity)]
#[table(
    name = "Patients",
    partition_key = "{clinic}",
    row_key = "patient_{id:06}",
    index(BySsn, row_key = "ssn_{ssn:hmac}")
)]
struct Patient {
    clinic: String,
    id: u32,
    #[table(encrypt)]
    ssn: String,
}

async fn encrypted(store: Arc<dyn Backend>) -> Outcome {
    let scope = KeyScope::default_scope();
    let keys = Keyring::builder()
        .primary(&scope, &RootKey::generate()?)
        .blind_token_key(&scope, 1, &RootKey::generate()?)
        .build()?;
    let sealed = Client::builder()
        .backend(Arc::clone(&store))
        .keys(keys)
        .plaintext(PlaintextPolicy::Reject)
        .build()?;
    let patients: Table<Patient> = sealed.table();
    patients.create_if_not_exists().await?;
    let ssn = "123-45-6789".to_owned();
    patients.insert(&Patient { clinic: "north".to_owned(), id: 1, ssn: ssn.clone() }).await?;
    let found = patients.get(Patient::by_ssn().clinic("north").ssn(&ssn)).await?;
    expect("by the token of an encrypted value", Some(ssn), found.map(|found| found.ssn.clone()))?;
    let stored = client(store)?.dynamic("Patients").get("north", "patient_000001").await?;
    let is_binary = stored.is_some_and(|row| row.bytes("Ssn").is_ok());
    expect("the stored value is encrypted", true, is_binary)
}

#[derive(Debug, Clone, PartialEq, TableEntity)]
#[table(name = "Logins{at:%Y%m%d}", partition_key = "{user}", row_key = "{at:desc}")]
struct Login {
    user: String,
    at: OffsetDateTime,
}

const FIRST_LOGIN: OffsetDateTime = datetime!(2014-07-29 09:00 UTC);

async fn dated(store: Arc<dyn Backend>) -> Outcome {
    let logins: Table<Login> = client(store)?.table();
    let window = FIRST_LOGIN..FIRST_LOGIN + Duration::days(3);
    logins.create_between(window.clone()).await?;
    for day in 0..3 {
        let at = FIRST_LOGIN + Duration::days(day);
        logins.insert(&Login { user: "don".to_owned(), at }).await?;
    }
    let path = || Login::primary().at_between(window.clone()).user("don");
    let found = logins.query(path()).collect().await?;
    expect("log-ins of three tables", 3, found.len())?;
    expect("the newest first", true, found.is_sorted_by(|a, b| a.at > b.at))?;
    let dropped = logins.drop_before(FIRST_LOGIN + Duration::days(2)).await?;
    expect("tables that are dropped", 2, dropped.dropped.len())
}
