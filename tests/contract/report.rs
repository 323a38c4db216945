//! Reports of a layout: the text, the page, and that what they say is what programs get.

use std::path::Path;

use entable::{
    Batch, Blob, Row, Written,
    backend::{
        Backend, BoxFuture, Capabilities, Memory, ReadRequest, Rows, ScanRequest, TableNames,
        TableRequest, layer::Recorder,
    },
    prelude::*,
};
use time::{Duration, OffsetDateTime, macros::datetime};

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

/// Bytes in blobs, and an index in another partition.
#[derive(Debug, Clone, PartialEq, TableEntity)]
#[table(
    name = "Badges",
    partition_key = "{department}",
    row_key = "badge_{id:06}",
    index(
        ByHost,
        partition_key = "host_{host}",
        row_key = "of_{department}_{id:06}",
        except(photo, print)
    )
)]
pub struct Badge {
    department: String,
    id: u32,
    host: String,
    #[table(blob)]
    photo: Option<Blob>,
    #[table(blob)]
    print: Option<Blob>,
}

/// Two rows, with 183 and 183 properties.
#[derive(Debug, Clone, PartialEq, TableEntity)]
#[table(name = "Messages", partition_key = "{department}", row_key = "{employee:06}", wide)]
pub struct Year {
    department: String,
    employee: u32,
    #[table(series("Day{:03}"))]
    days: [i32; 365],
    #[table(part = 2)]
    remark: Option<String>,
}

/// Two rows, and one row in each of three lists.
#[derive(Debug, Clone, PartialEq, TableEntity)]
#[table(
    name = "Files",
    partition_key = "{department}",
    row_key = "{employee:06}",
    list(FileByCity, row_key = "city_{city}"),
    list(FileByTeam, row_key = "team_{team}"),
    list(FileByState, row_key = "state_{state}"),
    wide
)]
pub struct File {
    department: String,
    employee: u32,
    city: String,
    team: String,
    state: String,
    #[table(part = 2)]
    remark: Option<String>,
}

/// A table for each day.
#[derive(Debug, Clone, PartialEq, TableEntity)]
#[table(name = "Logins{at:%Y%m%d}", partition_key = "{user}", row_key = "{at:desc}_{id:03}")]
pub struct Login {
    user: String,
    at: OffsetDateTime,
    id: u16,
    from: String,
}

/// A table for each month, by a time that is in no key.
#[derive(Debug, Clone, PartialEq, TableEntity)]
#[table(name = "Visits{at:%Y%m}", partition_key = "{page}", row_key = "id_{id:06}")]
pub struct Visit {
    page: String,
    id: u32,
    at: OffsetDateTime,
}

const JULY: OffsetDateTime = datetime!(2014-07-31 18:00 UTC);

/// A store that answers a scan with one row at a time.
#[derive(Debug)]
struct SmallPages(Memory);

impl Backend for SmallPages {
    fn capabilities(&self) -> Capabilities {
        self.0.capabilities()
    }

    fn read<'a>(&'a self, request: ReadRequest<'a>) -> BoxFuture<'a, Result<Option<Row>, Error>> {
        self.0.read(request)
    }

    fn scan<'a>(&'a self, request: ScanRequest<'a>) -> BoxFuture<'a, Result<Rows, Error>> {
        self.0.scan(ScanRequest { top: Some(1), ..request })
    }

    fn apply<'a>(&'a self, batch: &'a Batch) -> BoxFuture<'a, Result<Vec<Written>, Error>> {
        self.0.apply(batch)
    }

    fn tables<'a>(&'a self, request: TableRequest<'a>) -> BoxFuture<'a, Result<TableNames, Error>> {
        self.0.tables(request)
    }
}

/// A store with two departments of one and of `employees` employees, and log-ins on two days.
async fn filled(employees: u32) -> Result<(Recorder, Client), Error> {
    let recorder = Recorder::around(Memory::new());
    let client = Client::builder().backend(recorder.clone()).build()?;
    client.create_table("Staff").await?;
    let staff = client.dynamic("Staff");
    for id in 0..=employees {
        let department = if id == 0 { "Sales" } else { "Marketing" };
        staff.insert(&DynamicEntity::new(department, format!("empid_{id:06}"))).await?;
    }
    for at in [JULY, JULY + Duration::DAY] {
        let login = Login { user: "don".into(), at, id: 7, from: "home".into() };
        client.table().insert(&login).await?;
    }
    Ok((recorder, client))
}

/// Returns a page with every kind of rows, and with figures.
pub fn page() -> String {
    let report = entable::report![Employee, Department, Session, Badge, Year, Login, Visit];
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    let report = runtime.block_on(async {
        let (_, client) = filled(9).await?;
        report.titled("Staff & more").measured(&client).await
    });
    report.unwrap().html()
}

/// Rows that are no row families of their own, and the costs and paths that follow from them.
#[derive(Debug, Clone, Copy, PartialEq, EdmEnum)]
enum State {
    Open,
    Closed,
}

#[derive(Debug, Clone, PartialEq, TableEntity)]
#[table(
    name = "Tickets",
    partition_key = "{state}",
    row_key = "{id:06}",
    list(ByTeam, partition_key = "{team}", row_key = "team")
)]
struct Ticket {
    state: State,
    id: u32,
    team: String,
}

#[test]
fn a_field_that_only_keys_hold_has_its_stored_type() {
    let text = entable::report![Ticket].markdown();
    for line in [
        "| `State` | String | in keys of Primary, only in keys |",
        "| `Id` | Int64 | in keys of Primary, only in keys |",
    ] {
        assert!(text.contains(line), "{line}\n{text}");
    }
}

#[test]
fn blobs_parts_and_periods_are_shown() {
    let badge = entable::report![Badge].markdown();
    for line in [
        "| Photo | bytes of a field, in a blob | Badges | `{department}` | `badge_{id:06}` | `Sales` \
         `badge_000223` | the bytes; the row has Photo, PhotoLength, PhotoHash, PhotoType | before the \
         transaction |",
        "| `Photo` | Blob | optional, bytes in a blob; the row stores PhotoLength, PhotoHash, PhotoType |",
        "| `insert` | 1, and 2 to the blob store | 0 | 3 | 2 |",
    ] {
        assert!(badge.contains(line), "{line}\n{badge}");
    }
    assert!(!badge.contains("| `PhotoLength` |"), "{badge}");

    let year = entable::report![Year].markdown();
    for line in [
        "| Primary | primary | Messages | `{department}` | `{employee:06}_01` | `Sales` `000223_01` | \
         183 properties | the transaction |",
        "| Part 2 | part 2 of 2 | Messages | `{department}` | `{employee:06}_02` | `Sales` `000223_02` | \
         183 properties | same transaction |",
        "| `Remark` | String | optional, part 2 |",
        "| `Year::primary()` | Department, Employee | Point | `(PartitionKey eq 'Sales') and (RowKey eq \
         '000223_01')` | 2, one for each part |",
        "| `insert` | 1 | 0 | 2 | 0 |",
        "- **Note:** The entity is stored in 2 rows, its parts; a transaction holds at most 50 such",
    ] {
        assert!(year.contains(line), "{line}\n{year}");
    }
    assert!(!year.contains("the service allows 252"), "a part is a row of its own: {year}");

    let login = entable::report![Login, Visit].markdown();
    for line in [
        "- One table for each day of `At` in UTC, such as `Logins20140731`. `drop_before`",
        "| `Login::primary()` | User, At, Id | Point |",
        "| `Login::primary()` | At or a window of it, User | PartitionScan |",
        "1 for each 1,000 rows, and 1 for each further table of the window |",
        "| `At` | DateTime | in keys of Primary, only in keys, part of the table name |",
        "- One table for each month of `At` in UTC, such as `Visits201407`.",
        "| `Visit::primary()` | At, Page, Id | Point |",
    ] {
        assert!(login.contains(line), "{line}\n{login}");
    }
}

#[tokio::test]
async fn figures_are_read_with_a_bound_of_requests() -> Result<(), Error> {
    let (recorder, client) = filled(3).await?;
    recorder.clear();
    let report = entable::report![Employee, Login, Session].measured(&client).await?;
    // The names of tables, two tables, one that is missing, and the directory of the outbox.
    assert_eq!(recorder.take().len(), 5);
    let text = report.markdown();
    for line in [
        "Outbox: 0 open rows in 0 partitions, 0 stuck; lag none.\n",
        "- Rows: 4, ",
        " Partitions: 2.\n",
        "| `Marketing` | 3 | ",
        " | 75.0 % |\n",
        "- There are 2 tables, `Logins20140731` to `Logins20140801`. The figures are for `Logins20140801`.",
        "- The table does not exist yet.\n- Rows: 0, 0 bytes. Partitions: 0.\n",
    ] {
        assert!(text.contains(line), "{line}\n{text}");
    }
    let page = report.html();
    assert!(page.contains("<dt>lag</dt>") && page.contains("style=\"width:75.0%\""), "{page}");
    assert!(!entable::report![Employee].html().contains("<dt>lag</dt>"), "none without a store");
    Ok(())
}

/// A large table is not read to its end, and the report says so.
#[tokio::test]
async fn the_figures_of_a_large_table_are_of_its_beginning() -> Result<(), Error> {
    let recorder = Recorder::around(SmallPages(Memory::new()));
    let client = Client::builder().backend(recorder.clone()).build()?;
    let visits = client.table::<Visit>();
    // Next month's table is made ahead, and empty.
    visits.create_between(JULY..JULY + Duration::DAY).await?;
    for id in 0..=100 {
        visits.insert(&Visit { page: format!("{}", id / 10), id, at: JULY }).await?;
    }
    recorder.clear();
    let text = entable::report![Visit].measured(&client).await?.markdown();
    let note =
        "- The table is larger: the figures cover its first 100 rows, read with 100 requests.\n";
    assert!(text.contains(note), "{text}");
    assert!(text.contains("- Rows: 100, ") && text.contains(" Partitions: 11.\n"), "{text}");
    // The names of tables, the empty table, the rows, and the directory of the outbox.
    assert_eq!(recorder.take().len(), 103);
    Ok(())
}

const EMPLOYEE: &str = "
### Employee

Identified by EntityType = Employee, version 1.

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
        "Rows in other partitions are written after their primary. Run a worker",
        "No key contains `Age`, `Iban`, `Sent0 .. Sent2`",
        "Every path needs `Department`",
    ] {
        assert!(text.contains(&format!("- **Note:** {note}")), "{note}: {text}");
    }
    let file = entable::report![File].markdown();
    let note =
        "An insert writes 5 rows, 5 of them in its transaction; a transaction holds at most 20";
    assert!(file.contains(note), "{file}");
    let session = entable::report![Session].markdown();
    assert!(session.contains("All primaries are in one partition, `all`"), "{session}");
    assert!(session.contains("<token of Token>"), "{session}");
}

macro_rules! noted {
    ($name:ident, $($allow:meta),*) => {
        #[derive(Debug, TableEntity)]
        #[table(
            name = "Notes",
            partition_key = "all",
            row_key = "{id:06}",
            list(Everything, row_key = "ids"),
            list(Everywhere, table = "NoteIds", partition_key = "every", row_key = "ids"),
            list(ByKind, row_key = "kind_{kind}"),
            index(OfKind, row_key = "of_{kind}_{id:06}"),
            index(OfBytes, row_key = "bytes_{kind}_{id:06}", except(body)),
            index(Brief, row_key = "brief_{kind}_{id:06}", except(body, photo))
            $(, $allow)*
        )]
        struct $name {
            id: u32,
            kind: String,
            #[table(split(2))]
            body: String,
            #[table(blob)]
            photo: Option<Blob>,
        }
    };
}

noted!(Noted,);
noted!(Silenced, allow(hot_partition, growing_list, copied_blob));

#[test]
fn notes_name_what_grows_and_what_is_copied_unless_the_type_allows_it() {
    let notes = [
        "All primaries are in one partition, `all`",
        "List `Everything` grows with every entity of a partition, ",
        "List `Everywhere` grows with every entity, ",
        "Index `OfKind` holds `Photo`, `Body`, so each write of the entity sends the long values twice",
        "Index `OfBytes` holds `Photo` and is written again whenever the bytes change",
    ];
    let (noted, silenced) =
        (entable::report![Noted].markdown(), entable::report![Silenced].markdown());
    for note in notes {
        assert!(noted.contains(&format!("- **Note:** {note}")), "{note}: {noted}");
        assert!(!silenced.contains(note), "{note}: {silenced}");
    }
    for other in ["List `ByKind` grows", "Index `Brief` holds"] {
        assert!(!noted.contains(other), "{other}: {noted}");
    }
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
    let newest = || Employee::newest().since_exact(since);
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

/// A time or a window comes first where keys do not hold it; windows of whole periods need no condition.
#[test]
fn paths_of_dated_tables_are_printed_as_they_are_explained() {
    let text = entable::report![Login, Visit].markdown();
    let client = Client::memory();
    let (logins, visits) = (client.table::<Login>(), client.table::<Visit>());
    let day = datetime!(2014-07-31 00:00 UTC);
    let at = datetime!(2014-07-31 09:30 UTC);
    let month = datetime!(2014-07-01 00:00 UTC)..datetime!(2014-08-01 00:00 UTC);
    let login = || Login::primary().user("jonesj");
    let explained = [
        ("Login::primary", "User, At, Id", logins.query(login().at(at).id(223)).explain()),
        ("Login::primary", "User, At", logins.query(login().at(at)).explain()),
        (
            "Login::primary",
            "At or a window of it, User",
            logins
                .query(Login::primary().at_between(day..day + Duration::DAY).user("jonesj"))
                .explain(),
        ),
        (
            "Visit::primary",
            "At, Page, Id",
            visits.query(Visit::primary().at(at).page("page").id(223)).explain(),
        ),
        (
            "Visit::primary",
            "At or a window of it, Page",
            visits.query(Visit::primary().at_between(month).page("page")).explain(),
        ),
    ];
    for (entry, given, explain) in &explained {
        let printed = paths(&text, entry);
        let row = printed.iter().find(|row| row[1] == *given);
        let row = row.unwrap_or_else(|| panic!("{entry} by {given}: {printed:#?}"));
        assert_eq!(
            (&*row[2], &*row[3]),
            (&*explain.class.to_string(), &*explain.filter),
            "{given}"
        );
    }
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
    for name in ["Employee", "Department", "Session", "Badge", "Year", "Login", "Visit"] {
        assert!(page.contains(&format!("<article id=\"{name}\">")), "{name}");
    }
    // Every element that is opened is closed.
    for name in [
        "svg", "g", "table", "tr", "td", "section", "article", "figure", "code", "span", "ul",
        "li", "p", "div", "dl", "dt", "dd", "i",
    ] {
        let opened =
            page.matches(&format!("<{name}>")).count() + page.matches(&format!("<{name} ")).count();
        assert_eq!(opened, page.matches(&format!("</{name}>")).count(), "{name}");
    }
}

/// An entity that is over at a time of its own.
#[derive(Debug, Clone, PartialEq, TableEntity)]
#[table(name = "Tokens", partition_key = "{user}", row_key = "{id:06}", expires = until)]
pub struct Token {
    user: String,
    id: u32,
    until: Option<OffsetDateTime>,
}

#[test]
fn the_field_by_which_an_entity_expires_says_so() {
    let text = entable::report![Token].markdown();
    assert!(
        text.contains("| `Until` | DateTime | optional, the entity expires at this time |"),
        "{text}"
    );
    assert!(entable::report![Token].html().contains("the entity expires at this time"));
}
