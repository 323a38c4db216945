//! Reports of a layout: the text, the page, and that what they say is what programs get.

use std::path::Path;

use entable::prelude::*;
use time::OffsetDateTime;

#[derive(Debug, Clone, PartialEq, TableEntity)]
#[table(
    name = "Staff",
    partition_key = "{department}",
    row_key = "empid_{id:06}",
    index(ByName, row_key = "name_{last_name}_{id:06}", only(age)),
    index(ByEmail, partition_key = "email_{email:lower}", row_key = "account", unique),
    index(
        Newest,
        table = "StaffByArrival",
        partition_key = "{since:%Y%m}",
        row_key = "{since:desc}_{department}_{id:06}",
        only(last_name)
    ),
    list(ByCity, row_key = "city_{city}")
)]
pub struct Employee {
    department: String,
    id: u32,
    last_name: String,
    city: String,
    email: String,
    since: OffsetDateTime,
    #[table(default)]
    age: i32,
    #[table(encrypt(pad = 64), blind)]
    iban: String,
    #[table(series)]
    sent: [i32; 3],
}

#[derive(Debug, Clone, PartialEq, TableEntity)]
#[table(name = "Staff", partition_key = "{department}", row_key = "department")]
pub struct Department {
    department: String,
    head_count: Option<i32>,
}

#[derive(Debug, Projection)]
#[table(of = Employee)]
struct Number {
    id: u32,
}

/// Names that markup gives a meaning, and keys that fit in no line.
#[derive(Debug, Clone, PartialEq, TableEntity)]
#[table(
    name = "Sessions",
    partition_key = "all",
    row_key = "a-very-long-literal-that-begins-every-row-key-of-this-table_{host}&{token:hmac}_{shard:bucket(4)}",
    entity_type = "A<B>&\"C\""
)]
pub struct Session {
    host: String,
    #[table(encrypt)]
    token: String,
    shard: u64,
    a_property_with_a_name_that_is_far_too_long_for_the_column_of_a_telephone_in_portrait: bool,
}

pub fn page() -> String {
    entable::report![Employee, Department, Session].titled("Staff & more").html()
}

const EMPLOYEE: &str = "
### Employee

Recognised by EntityType = Employee, version 1.

| rows | kind | table | PartitionKey | RowKey | example | holds | written |
|---|---|---|---|---|---|---|---|
| Primary | primary | Staff | `{department}` | `empid_{id:06}` | `Sales` `empid_000223` | all fields | the transaction |
| ByName | local index | Staff | `{department}` | `name_{last_name}_{id:06}` | `Sales` `name_Jones_000223` | without City, Email, Since, Iban, Sent0, Sent1 and 1 more | same transaction |
| ByEmail | remote index, unique | Staff | `email_{email:lower}` | `account` | `email_jonesj@contoso.com` `account` | all fields | later, by the outbox |
| Newest | remote index | StaffByArrival | `{since:%Y%m}` | `{since:desc}_{department}_{id:06}` | `201407` `2519955017999999999_Sales_000223` | without City, Email, Age, Iban, Sent0, Sent1 and 1 more | later, by the outbox |
| ByCity | local list | Staff | `{department}` | `city_{city}` | `Sales` `city_Seattle` | ids | same transaction |

| property | type | flags |
|---|---|---|
| `Department` | String | in keys of Primary, ByName, Newest, ByCity, property of ByEmail only |
| `Id` | Int64 | in keys of Primary, ByName, Newest, property of ByEmail only |
| `LastName` | String | in keys of ByName |
| `City` | String | in keys of ByCity |
| `Email` | String | in keys of ByEmail |
| `Since` | DateTime | in keys of Newest |
| `Age` | Int32 | default |
| `Iban` | String | encrypted, padded to 64 bytes, blind token IbanBlind |
| `Sent0 .. Sent2` | Int32 | 3 slots of sent |
";

#[test]
fn the_text_shows_rows_properties_and_notes() {
    let text = entable::report![Employee, Department].titled("Staff").markdown();
    let begin = "# Staff\n\n## Table Staff\n\n- One transaction: rows of Employee, Department with equal \
                 PartitionKey `{department}`.\n";
    assert!(text.starts_with(begin), "{text}");
    assert!(text.contains(EMPLOYEE), "{text}");
    for note in [
        "The PartitionKey of rows of `Newest` is a time",
        "An insert writes 5 rows, 3 of them in its transaction; a transaction holds at most 33",
        "Rows in other partitions follow their primary. Run a worker",
        "No key has `Age`, `Iban`, `Sent0 .. Sent2`",
        "Every path needs `Department`",
    ] {
        assert!(text.contains(&format!("- **Note:** {note}")), "{note}: {text}");
    }
    let session = entable::report![Session].markdown();
    assert!(session.contains("All primaries are in one partition, `all`"), "{session}");
    assert!(session.contains("<token of Token>"), "{session}");
}

/// Returns the rows of the table of access paths: entry, given, class, filter.
fn paths(text: &str, entry: &str) -> Vec<[String; 4]> {
    let start = format!("| `{entry}()` |");
    let rows = text.lines().filter(|line| line.starts_with(&start));
    rows.map(|line| {
        let cells: Vec<&str> = line.split('|').map(str::trim).collect();
        [1, 2, 3, 4].map(|at| cells[at].trim_matches('`').to_owned())
    })
    .collect()
}

/// The classes and filters that are printed are those of the queries.
#[test]
fn every_path_is_printed_as_it_is_explained() {
    let text = entable::report![Employee].markdown();
    let staff = Client::memory().table::<Employee>();
    let since = time::macros::datetime!(2014-07-31 09:30 UTC);
    let by_name = || Employee::by_name().department("Sales");
    let newest = || Employee::newest().since(since);
    let explained = [
        (
            "Employee::primary",
            "Department, Id",
            staff.query(Employee::primary().department("Sales").id(223)).explain(),
        ),
        (
            "Employee::primary",
            "Department",
            staff.query(Employee::primary().department("Sales")).explain(),
        ),
        (
            "Employee::by_name",
            "Department, LastName, Id",
            staff.query(by_name().last_name("Jones").id(223)).select::<Number>().explain(),
        ),
        (
            "Employee::by_name",
            "Department, LastName",
            staff.query(by_name().last_name("Jones")).select::<Number>().explain(),
        ),
        ("Employee::by_name", "Department", staff.query(by_name()).select::<Number>().explain()),
        (
            "Employee::by_email",
            "Email",
            staff.query(Employee::by_email().email("jonesj@contoso.com")).explain(),
        ),
        (
            "Employee::newest",
            "Since, Department, Id",
            staff.query(newest().department("Sales").id(223)).select::<Number>().explain(),
        ),
        (
            "Employee::newest",
            "Since, Department",
            staff.query(newest().department("Sales")).select::<Number>().explain(),
        ),
        ("Employee::newest", "Since", staff.query(newest()).select::<Number>().explain()),
        (
            "Employee::newest",
            "period of Since",
            staff.query(Employee::newest().since_period(since)).select::<Number>().explain(),
        ),
        (
            "Employee::by_city",
            "Department, City",
            staff.query(Employee::by_city().department("Sales").city("Seattle")).explain(),
        ),
        ("Employee::scan", "", staff.query(Employee::scan()).allow_scan().explain()),
    ];
    let mut seen = 0;
    for (entry, given, explain) in &explained {
        let printed = paths(&text, entry);
        let row = printed.iter().find(|row| row[1] == *given);
        let row = row.unwrap_or_else(|| panic!("{entry} by {given}: {printed:#?}"));
        assert_eq!(row[2], explain.class.to_string(), "{entry} by {given}");
        assert_eq!(row[3], explain.filter, "{entry} by {given}");
        seen += 1;
    }
    let all = text.lines().filter(|line| line.starts_with("| `Employee::")).count();
    assert_eq!(seen, all, "each printed path is compared:\n{text}");
}

/// The picture that the README shows: `ENTABLE_REPORT=write` writes it again.
#[test]
fn the_readme_shows_a_picture_of_a_report() {
    #[derive(TableEntity)]
    #[table(
        name = "Staff",
        partition_key = "{department}",
        row_key = "empid_{id:06}",
        index(ByName, row_key = "name_{last_name}_{id:06}", only(first_name)),
        list(ByCity, row_key = "city_{city}"),
        index(ByEmail, partition_key = "email_{email:lower}", row_key = "account", unique)
    )]
    struct Employee {
        department: String,
        id: u32,
        first_name: String,
        last_name: String,
        city: String,
        email: String,
    }
    let report = entable::report![Employee, Department];
    let picture = report.picture("Staff").unwrap();
    assert_eq!(report.picture("Another"), None);
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../docs/images/report.svg");
    if std::env::var_os("ENTABLE_REPORT").is_some() {
        std::fs::write(&path, &picture).unwrap();
    }
    assert_eq!(std::fs::read_to_string(&path).unwrap(), picture, "run with ENTABLE_REPORT=write");
}

/// Example keys are keys: what they are made of is read back from a stored entity.
#[tokio::test]
async fn example_keys_are_those_of_such_an_entity() -> Result<(), Error> {
    let staff = Client::memory().table::<Department>();
    staff.create().await?;
    let stored = staff.insert(&Department { department: "Sales".into(), head_count: None }).await?;
    let example = format!("| `{}` `{}` |", stored.partition_key(), stored.row_key());
    assert!(entable::report![Department].markdown().contains(&example));
    Ok(())
}

#[test]
fn the_page_is_whole_and_needs_nothing_else() {
    let page = page();
    assert!(page.starts_with("<!doctype html>") && page.trim_end().ends_with("</html>"));
    assert!(page.contains("<title>Staff &amp; more</title>"));
    for part in
        ["prefers-color-scheme:dark", "@media print", "viewBox=\"0 0 1000", "viewBox=\"0 0 360"]
    {
        assert!(page.contains(part), "{part}");
    }
    for outside in ["<script", "http:", "https:", "url(", "@import", "<link", "<img"] {
        assert!(!page.contains(outside), "{outside}");
    }
    assert!(page.contains("A&lt;B&gt;&amp;&quot;C&quot;"), "names are escaped");
    assert!(!page.contains("A<B>"));
    for name in ["Employee", "Department", "Session"] {
        assert!(page.contains(&format!("<article id=\"{name}\">")), "{name}");
    }
    // Every element that is opened is closed.
    for name in [
        "svg", "g", "table", "tr", "td", "section", "article", "figure", "code", "span", "ul",
        "li", "p",
    ] {
        let opened =
            page.matches(&format!("<{name}>")).count() + page.matches(&format!("<{name} ")).count();
        assert_eq!(opened, page.matches(&format!("</{name}>")).count(), "{name}");
    }
}
