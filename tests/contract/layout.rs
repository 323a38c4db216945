//! Layouts of rows as text, what a change of a layout needs, and that the calls it names do it.

use std::{path::Path, process::Command};

use entable::{
    Blob, Filter,
    layout::{Layout, LayoutChange, RequiredWork},
    prelude::*,
};
use time::{
    Date, OffsetDateTime,
    macros::{date, datetime},
};

#[derive(Debug, Clone, PartialEq, TableEntity)]
#[table(
    name = "Staff",
    partition_key = "{department}",
    row_key = "empid_{id:06}",
    index(ByEmail, row_key = "email_{email:lower}", unique, when = Self::is_active),
    index(
        ByName,
        table = "StaffByName",
        partition_key = "{last_name}",
        row_key = "{department}_{id:06}",
        only(age)
    ),
    list(ByCity, row_key = "city_{city}")
)]
struct Employee {
    department: String,
    id: u32,
    email: String,
    last_name: String,
    city: String,
    age: i32,
    #[table(default)]
    active: bool,
    note: Option<String>,
    #[table(encrypt(pad = 64), blind)]
    iban: String,
    #[table(encrypt(hide_none))]
    illness: Option<String>,
    #[table(flatten)]
    home: Address,
    #[table(series("Hour{:02}"))]
    sent: [i32; 24],
    #[table(split(3))]
    story: String,
}

impl Employee {
    fn is_active(&self) -> bool {
        self.active
    }
}

#[derive(Debug, Clone, PartialEq, Properties)]
struct Address {
    street: String,
    #[table(encrypt)]
    door: Option<i64>,
}

const TEXT: &str = r#"# How rows are stored. Check this file in: a test compares it with the code.
# `entable::layout!` writes it; do not edit it by hand.
layout 1

entity "Employee" version 1
  table Staff
  discriminator property EntityType
  primary
    partition "{Department}" -
    row "empid_{Id:06}" 6
  index ByEmail local unique conditional
    partition "{Department}" -
    row "email_{Email:lower}" -
  index ByName remote table StaffByName
    partition "{LastName}" -
    row "{Department}_{Id:06}" - 6
    without Email City Active Note Iban Illness Home* Hour00 Hour01 Hour02 Hour03 Hour04 Hour05 Hour06 Hour07 Hour08 Hour09 Hour10 Hour11 Hour12 Hour13 Hour14 Hour15 Hour16 Hour17 Hour18 Hour19 Hour20 Hour21 Hour22 Hour23 Story Story_2 Story_3
  list ByCity local
    partition "{Department}" -
    row "city_{City}" -
  key Department String
  key Id Int64 as u32
  property Email String
  property LastName String
  property City String
  property Age Int32
  property Active Boolean default
  property Note String optional
  property Iban String encrypted pad 64 blind IbanBlind 8
  property Illness String optional encrypted pad 32 hide_none
  property HomeStreet String
  property HomeDoor Int64 optional encrypted
  series sent 24 to Hour23 first Hour00 Int32 optional
  split story 3 to Story_3 first Story String
"#;

#[test]
fn the_text_has_all_that_rows_depend_on() -> Result<(), Error> {
    let layout = entable::layout![Employee];
    assert_eq!(layout.to_string(), TEXT);
    assert_eq!(TEXT.parse::<Layout>()?, layout);
    assert_eq!(layout.changes_since(&TEXT.parse()?), []);
    Ok(())
}

#[test]
fn a_text_that_is_not_understood_names_its_line() {
    let refused = |text: &str| text.parse::<Layout>().unwrap_err();
    for text in ["", "layout 3\n", "entity \"E\" version 1\n"] {
        assert!(refused(text).is_invalid(), "{text}");
    }
    for (from, to) in [
        ("  table Staff\n", "  tables Staff\n"),
        ("  table Staff\n", "  table Staff and more\n"),
        ("version 1", "version one"),
        ("local unique", "nearby unique"),
        ("{Id:06}\" 6", "{Id:06}\" six"),
        ("Note String optional", "Note String maybe"),
        ("series sent 24 to", "series sent 24 from"),
        ("discriminator property", "discriminator other"),
    ] {
        let text = TEXT.replacen(from, to, 1);
        assert_ne!(text, TEXT, "{from}");
        let message = refused(&text).to_string();
        assert!(message.contains("line "), "{message}");
        assert!(message.contains(to.trim().split(' ').next_back().unwrap()), "{message}");
    }
}

/// The changes that lead from `TEXT` with `was` to the one with `is` in place of it.
fn changes(was: &str, is: &str) -> Vec<LayoutChange> {
    let (old, new) = (TEXT.to_owned(), TEXT.replace(was, is));
    assert_ne!(old, new, "`{was}` is not in the text");
    new.parse::<Layout>().unwrap().changes_since(&old.parse().unwrap())
}

/// The only change.
fn change(was: &str, is: &str) -> LayoutChange {
    let mut all = changes(was, is);
    assert_eq!(all.len(), 1, "{all:#?}");
    all.remove(0)
}

/// Changes, as the text before and after, with what each needs, and words of what it says and of how.
const CHANGES: &[(&str, &str, RequiredWork, &str, &str)] = {
    use RequiredWork::{Migration, Nothing, Rebuild, Version};
    &[
        // Fields.
        ("  property Age Int32\n", "", Nothing, "`Age` is gone", "deploy all readers before"),
        ("  property Note String optional\n", "", Nothing, "`Note` is gone", "keep the value"),
        ("Age Int32", "Years Int32", Version, "a renamed field", "#[table(rename = \"Age\")]"),
        ("Age Int32", "Age String", Version, "was Int32 and is String", "`upgrade_from`"),
        ("Age Int32", "Age Int64", Version, "was Int32 and is Int64", "wider type"),
        ("Note String optional", "Note String", Version, "may no longer be absent", "default"),
        ("Age Int32", "Age Int32 optional", Nothing, "may be absent", "readers before"),
        ("Active Boolean default", "Active Boolean optional", Nothing, "in another way", "before"),
        ("Age Int32", "Age Int32 part 2", Version, "is in part 2", "`upgrade_from`"),
        // Encryption.
        ("Age Int32", "Age Int32 encrypted", Migration, "is now encrypted", "table.reencrypt()"),
        ("City String", "City String encrypted pad 8", Migration, "now encrypted", "Allow"),
        ("pad 32 hide_none", "pad 32", Nothing, "no longer hidden", "as before"),
        (
            "HomeDoor Int64 optional encrypted",
            "HomeDoor Int64 optional",
            Migration,
            "no longer",
            "keep the keys",
        ),
        (
            "HomeDoor Int64 optional encrypted",
            "HomeDoor Int64 optional encrypted hide_none",
            Migration,
            "hidden",
            "reencrypt",
        ),
        ("pad 64", "pad 32", Nothing, "padded to 32 bytes, not 64", "reencrypt"),
        ("IbanBlind 8", "IbanBlind 9", Migration, "blind token", "table.reencrypt()"),
        (" blind IbanBlind 8", "", Nothing, "no blind token", "stored tokens stay"),
        ("EntityType\n", "EntityType\n  sealed\n", Migration, "now sealed", "table.reencrypt()"),
        (
            "EntityType\n",
            "EntityType\n  expires Until\n",
            Migration,
            "rows now expire by `Until`",
            "table.mark_expiring()",
        ),
        // Series and pieces.
        ("24 to Hour23", "12 to Hour11", Version, "shortened from 24 to 12", "would be lost"),
        ("24 to Hour23", "36 to Hour35", Nothing, "lengthened", "deploy all readers"),
        ("first Hour00", "first H00", Version, "stored from `H00` on", "would not be found"),
        ("24 to Hour23", "24 to Hour0023", Version, "ends with `Hour0023`", "not be found"),
        (
            "split story 3 to Story_3",
            "split story 2 to Story_2",
            Version,
            "split field `story` is shortened",
            "lost",
        ),
        ("  split story 3 to Story_3 first Story String\n", "", Version, "is gone", "upgrade_all"),
        // Keys of the primary.
        (
            "    row \"empid_{Id:06}\" 6",
            "    row \"emp_{Id:06}\" 6",
            Version,
            "the RowKey was",
            "within its partition",
        ),
        (
            "    row \"empid_{Id:06}\" 6",
            "    row \"empid_{Id:07}\" 7",
            Version,
            "the RowKey was",
            "`upgrade_from`",
        ),
        (
            "primary\n    partition \"{Department}\" -",
            "primary\n    partition \"{City}\" -",
            Migration,
            "the PartitionKey was",
            "table.transfer(",
        ),
        // Copies and lists.
        (
            "  list ByCity local\n    partition \"{Department}\" -\n    row \"city_{City}\" -\n",
            "",
            Rebuild,
            "local list `ByCity` is gone",
            "whose RowKey begins with `city_`",
        ),
        (
            "email_{Email:lower}",
            "mail_{Email:lower}",
            Rebuild,
            "keys of local index `ByEmail`",
            "table.rebuild(Employee::by_email())",
        ),
        (
            "{LastName}\" -\n",
            "name_{LastName}\" -\n",
            Rebuild,
            "keys of remote index `ByName`",
            "a worker `drain()`",
        ),
        (
            "index ByEmail local",
            "index ByMail local",
            Rebuild,
            "now called `ByMail`",
            "Employee#ByEmail",
        ),
        (
            "index ByName remote",
            "index ByLast remote",
            Migration,
            "now called `ByLast`",
            "no open work",
        ),
        ("list ByCity local", "list OfCity local", Nothing, "now called", "do not name it"),
        ("unique conditional", "conditional", Nothing, "no longer unique", "conflict"),
        ("unique conditional", "unique", Rebuild, "no condition any more", "rebuild"),
        ("ByName remote", "ByName remote unique", Rebuild, "now unique", "poison table"),
        (
            "ByName remote",
            "ByName remote conditional",
            Rebuild,
            "has a condition",
            "check().repair()",
        ),
        (
            "table StaffByName",
            "table Names",
            Migration,
            "in table `Names`",
            "delete table `StaffByName`",
        ),
        ("list ByCity local", "list ByCity remote", Rebuild, "now remote list", "drain"),
        ("without Email City", "without City", Rebuild, "hold other fields", "rebuild"),
        // The type.
        (
            "table Staff\n",
            "table People\n",
            Migration,
            "the table was `Staff`",
            "table_named(\"Staff\")",
        ),
        ("property EntityType", "row_key", Migration, "form of the RowKey", "recognised"),
        (
            "\"Employee\"",
            "\"Person\"",
            Migration,
            "now called `Person`",
            "entity_type = \"Employee\"",
        ),
        ("version 1", "version 2", Version, "version 2 is new", "implement `UpgradeFrom`"),
    ]
};

#[test]
fn each_change_says_what_it_needs_and_with_which_call() {
    for &(was, is, needs, what, how) in CHANGES {
        let change = change(was, is);
        assert_eq!(change.needs, needs, "{change}");
        assert!(change.what.contains(what), "{what}: {change}");
        assert!(change.how.contains(how), "{how}: {change}");
    }
}

#[test]
fn the_other_direction_is_told_apart() {
    let back = |was: &str, is: &str| {
        let old = TEXT.replace(was, is);
        let mut changes = TEXT.parse::<Layout>().unwrap().changes_since(&old.parse().unwrap());
        assert_eq!(changes.len(), 1, "{changes:#?}");
        changes.remove(0)
    };
    let required = back("  property Age Int32\n", "");
    assert_eq!(required.needs, RequiredWork::Version, "{required}");
    assert!(required.how.contains("#[table(default)]"), "{required}");
    let optional = back("  property Note String optional\n", "");
    assert_eq!(optional.needs, RequiredWork::Nothing, "{optional}");
    let hidden = back("  property Illness String optional encrypted pad 32 hide_none\n", "");
    assert_eq!(hidden.needs, RequiredWork::Migration, "{hidden}");
    let widened = back("Age Int32", "Age Int64");
    assert_eq!(widened.needs, RequiredWork::Version, "an Int64 is not read as an Int32: {widened}");
    let index =
        "  list ByCity local\n    partition \"{Department}\" -\n    row \"city_{City}\" -\n";
    let new = back(index, "");
    assert_eq!(new.needs, RequiredWork::Rebuild);
    assert!(new.how.contains("table.rebuild(Employee::by_city())"), "{new}");
    let later = back("version 1", "version 2");
    assert_eq!(later.needs, RequiredWork::Migration, "{later}");
}

/// An index in another partition may have open work that names it; a local one never has.
#[test]
fn dropping_a_remote_index_waits_for_its_open_work() {
    let start = TEXT.find("  index ByName").unwrap();
    let end = TEXT.find("  list ByCity").unwrap();
    let remote = change(&TEXT[start..end], "");
    assert_eq!(remote.needs, RequiredWork::Migration, "{remote}");
    assert!(remote.how.contains("open work that names it"), "{remote}");
    assert!(remote.how.contains("`client.outbox_status()`"), "{remote}");
    assert!(remote.how.contains("client.delete_table(\"StaffByName\")"), "{remote}");
    let start = TEXT.find("  index ByEmail").unwrap();
    let end = TEXT.find("  index ByName").unwrap();
    let local = change(&TEXT[start..end], "");
    assert_eq!(local.needs, RequiredWork::Rebuild, "{local}");
    assert!(!local.how.contains("open work"), "{local}");
}

/// Keys hold no names. Copies do, so a renamed field of the primary's keys is harmless only without them.
#[test]
fn a_renamed_field_of_keys_is_told_from_another_field() {
    let renamed = changes("Department", "Team");
    assert_eq!(renamed.len(), 1, "{renamed:#?}");
    assert_eq!(renamed[0].needs, RequiredWork::Version);
    assert!(renamed[0].how.contains("rename = \"Department\""), "{}", renamed[0]);
    let start = TEXT.find("  index ByEmail").unwrap();
    let end = TEXT.find("  list ByCity").unwrap();
    let alone = TEXT.replace(&TEXT[start..end], "");
    let team: Layout = alone.replace("Department", "Team").parse().unwrap();
    let changes = team.changes_since(&alone.parse().unwrap());
    assert_eq!(changes.len(), 1, "{changes:#?}");
    assert_eq!(changes[0].needs, RequiredWork::Nothing, "{}", changes[0]);
}

mod versions {
    use super::*;

    #[derive(Debug, Clone, PartialEq, TableEntity)]
    #[table(
        name = "Staff",
        partition_key = "{department}",
        row_key = "empid_{id:06}",
        entity_type = "Employee",
        index(ByAge, row_key = "age_{age:03}_{id:06}")
    )]
    pub struct First {
        pub department: String,
        pub id: u32,
        pub age: u8,
    }

    #[derive(Debug, Clone, PartialEq, TableEntity)]
    #[table(
        name = "Staff",
        partition_key = "{department}",
        row_key = "emp_{id:06}",
        entity_type = "Employee",
        version = 2,
        upgrade_from(First)
    )]
    pub struct Second {
        pub department: String,
        pub id: u32,
        pub years: u8,
    }

    impl From<First> for Second {
        fn from(First { department, id, age }: First) -> Self {
            Self { department, id, years: age }
        }
    }

    /// Everything changes at once, and the version carries it.
    #[tokio::test]
    async fn a_raised_version_is_compatible() -> Result<(), Error> {
        let (first, second) = (entable::layout![First], entable::layout![Second]);
        let changes = second.changes_since(&first);
        assert_eq!(changes.len(), 1, "{changes:#?}");
        assert_eq!(changes[0].needs, RequiredWork::Nothing);
        assert!(changes[0].how.contains("table.upgrade_all()"), "{}", changes[0]);
        assert_eq!(second.to_string().parse::<Layout>()?, second);
        let client = Client::memory();
        client.table::<First>().create().await?;
        client
            .table::<First>()
            .insert(&First { department: "Sales".into(), id: 1, age: 30 })
            .await?;
        client.table::<Second>().upgrade_all().await?;
        let rows = client.dynamic("Staff").query(Keys::partition("Sales")).collect().await?;
        assert_eq!(rows.len(), 1, "the copies of the dropped index are deleted");
        assert_eq!(rows[0].row_key(), "emp_000001");
        Ok(())
    }

    #[test]
    fn a_version_that_nobody_reads_any_more_is_told() {
        let second = entable::layout![Second];
        let text = second.to_string();
        let alone = &text[..text.find("entity \"Employee\" version 1").unwrap()];
        let changes = alone.parse::<Layout>().unwrap().changes_since(&second);
        assert_eq!(changes.len(), 1, "{changes:#?}");
        assert_eq!(changes[0].needs, RequiredWork::Migration);
        assert!(changes[0].what.contains("version 1 is no longer read"), "{}", changes[0]);
        // The struct of an earlier version describes rows that are stored.
        let edited = text.replace("property Age Int32", "property Age Int64");
        let changes = edited.parse::<Layout>().unwrap().changes_since(&second);
        assert_eq!(changes.len(), 1, "{changes:#?}");
    }
}

/// The stored rows of two programs that write one type.
mod steps {
    use super::*;

    #[derive(Debug, Clone, PartialEq, TableEntity)]
    #[table(
        name = "Staff",
        partition_key = "{department}",
        row_key = "empid_{id:06}",
        entity_type = "Employee",
        index(ByEmail, row_key = "email_{email:lower}"),
        index(ByDay, row_key = "day_{since:%Y%m%d}_{id:06}", only(email))
    )]
    pub struct Before {
        pub department: String,
        pub id: u32,
        pub email: String,
        pub since: Date,
    }

    #[derive(Debug, Clone, PartialEq, TableEntity)]
    #[table(
        name = "Staff",
        partition_key = "{department}",
        row_key = "empid_{id:06}",
        entity_type = "Employee",
        index(ByEmail, row_key = "mail_{email:lower}")
    )]
    pub struct After {
        pub department: String,
        pub id: u32,
        pub email: String,
        pub since: Date,
    }

    async fn stored() -> Result<Client, Error> {
        let client = Client::memory();
        let staff = client.table::<Before>();
        staff.create().await?;
        for id in 1..=3 {
            let email = format!("Jones{id}@contoso.com");
            let since = date!(2014 - 07 - 31);
            staff.insert(&Before { department: "Sales".into(), id, email, since }).await?;
        }
        Ok(client)
    }

    async fn row_keys(client: &Client) -> Result<Vec<String>, Error> {
        let rows = client.dynamic("Staff").query(Keys::partition("Sales")).collect().await?;
        Ok(rows.iter().map(|row| row.row_key().to_owned()).collect())
    }

    #[tokio::test]
    async fn the_steps_of_changed_and_dropped_indexes_leave_exact_rows() -> Result<(), Error> {
        let client = stored().await?;
        let changes = entable::layout![After].changes_since(&entable::layout![Before]);
        let [template, dropped] = &changes[..] else { panic!("{changes:#?}") };
        assert!(template.how.contains("table.rebuild(Employee::by_email())"), "{template}");
        assert!(template.how.contains("table.check().repair()"), "{template}");
        let table = client.table::<After>();
        table.rebuild(After::by_email()).await?;
        table.check().repair().await?;
        let call = "client.dynamic(\"Staff\").query(Filter::eq(\"EntityType\", \"Employee#ByDay\"))\
                    .allow_scan().delete_all()";
        assert!(dropped.how.contains(call), "{dropped}");
        let copies = client.dynamic("Staff").query(Filter::eq("EntityType", "Employee#ByDay"));
        assert_eq!(copies.allow_scan().delete_all().await?.done, 3);
        let mut wanted: Vec<String> = (1..=3).map(|id| format!("empid_{id:06}")).collect();
        wanted.extend((1..=3).map(|id| format!("mail_jones{id}@contoso.com")));
        assert_eq!(row_keys(&client).await?, wanted);
        assert!(table.check().await?.is_clean());
        Ok(())
    }

    /// Proves the reason of `RequiredWork::Version` for a shortened series: rows keep values that nobody reads.
    #[tokio::test]
    async fn a_shortened_series_would_lose_values() -> Result<(), Error> {
        #[derive(TableEntity)]
        #[table(name = "Days", partition_key = "{p}", row_key = "day", entity_type = "Day")]
        struct Long {
            p: String,
            #[table(series)]
            sent: [i32; 4],
        }
        #[derive(TableEntity)]
        #[table(name = "Days", partition_key = "{p}", row_key = "day", entity_type = "Day")]
        struct Short {
            p: String,
            #[table(series)]
            sent: [i32; 2],
        }
        let changes = entable::layout![Short].changes_since(&entable::layout![Long]);
        assert_eq!(changes.len(), 1, "{changes:#?}");
        assert_eq!(changes[0].needs, RequiredWork::Version);
        let client = Client::memory();
        client.table::<Long>().create().await?;
        client.table::<Long>().insert(&Long { p: "a".into(), sent: [1, 2, 3, 4] }).await?;
        let short = client.table::<Short>().get(Short::primary().p("a")).await?.unwrap();
        assert_eq!(short.sent, [1, 2]);
        Ok(())
    }
}

/// An index and a list that move between the primary's partition and others, within one table.
mod moves {
    use super::*;

    #[derive(Debug, Clone, PartialEq, TableEntity)]
    #[table(
        name = "Staff",
        partition_key = "{department}",
        row_key = "empid_{id:06}",
        entity_type = "Employee",
        index(ByCity, row_key = "city_{city}_{id:06}"),
        list(ByAge, row_key = "age_{age:03}")
    )]
    pub struct Local {
        pub department: String,
        pub id: u32,
        pub city: String,
        pub age: u8,
    }

    #[derive(Debug, Clone, PartialEq, TableEntity)]
    #[table(
        name = "Staff",
        partition_key = "{department}",
        row_key = "empid_{id:06}",
        entity_type = "Employee",
        index(ByCity, partition_key = "city_{city}", row_key = "city_{department}_{id:06}"),
        list(ByAge, partition_key = "{department}_ages", row_key = "age_{age:03}")
    )]
    pub struct Remote {
        pub department: String,
        pub id: u32,
        pub city: String,
        pub age: u8,
    }

    /// Returns the keys of all copies and lists in the table.
    async fn derived_keys(client: &Client) -> Result<Vec<(String, String)>, Error> {
        let rows = client.dynamic("Staff").query(Filter::all([])).allow_scan().collect().await?;
        let rows = rows.iter().filter(|row| row.row_key().starts_with(['a', 'c']));
        Ok(rows.map(|row| (row.partition_key().into(), row.row_key().into())).collect())
    }

    fn expected(
        lists: &[(&str, &str)],
        partition: &str,
        copies: &[String],
    ) -> Vec<(String, String)> {
        let lists = lists.iter().map(|(partition, row)| ((*partition).into(), (*row).into()));
        let copies = copies.iter().map(|row| (partition.into(), row.clone()));
        let mut keys: Vec<(String, String)> = lists.chain(copies).collect();
        keys.sort();
        keys
    }

    async fn delete_list(client: &Client) -> Result<(), Error> {
        let list = Filter::all([Filter::ge("RowKey", "age_"), Filter::lt("RowKey", "age`")]);
        let deleted = client.dynamic("Staff").query(list).allow_scan().delete_all().await?;
        assert_eq!(deleted.done, 1);
        Ok(())
    }

    const REPAIR: &str =
        "then delete the earlier rows with `table.check().repair()` and a worker's `drain()`";

    /// Compares what is to be done about the index and about the list.
    fn assert_steps(changes: &[LayoutChange], list: &str) {
        assert!(changes.len() == 2 && changes[0].how.ends_with(REPAIR), "{changes:#?}");
        assert!(changes[1].how.contains(list), "{changes:#?}");
    }

    /// Time is virtual: a check looks again at a copy that a write under way may have caused.
    #[tokio::test(start_paused = true)]
    async fn the_steps_away_from_the_partition_keep_the_new_rows() -> Result<(), Error> {
        let client = Client::memory();
        let (local, remote) = (client.table::<Local>(), client.table::<Remote>());
        local.create().await?;
        for id in 1..=3 {
            let (department, city) = ("Sales".to_owned(), "Oslo".to_owned());
            local.insert(&Local { department, id, city, age: 30 }).await?;
        }
        let changes = entable::layout![Remote].changes_since(&entable::layout![Local]);
        assert_steps(&changes, "whose RowKey begins with `age_`, then run");

        delete_list(&client).await?;
        remote.rebuild(Remote::by_city()).await?;
        remote.rebuild(Remote::by_age()).await?;
        let worker = client.worker().with::<Remote>();
        worker.drain().await?;
        remote.check().repair().await?;
        worker.drain().await?;
        let copies = [1, 2, 3].map(|id| format!("city_Sales_{id:06}"));
        let lists = [("Sales_ages", "age_030")];
        assert_eq!(derived_keys(&client).await?, expected(&lists, "city_Oslo", &copies));
        Ok(())
    }

    #[tokio::test(start_paused = true)]
    async fn the_steps_into_the_partition_keep_the_new_rows() -> Result<(), Error> {
        let client = Client::memory();
        let (local, remote) = (client.table::<Local>(), client.table::<Remote>());
        remote.create().await?;
        for id in 1..=3 {
            let (department, city) = ("Sales".to_owned(), "Oslo".to_owned());
            remote.insert(&Remote { department, id, city, age: 30 }).await?;
        }
        let changes = entable::layout![Local].changes_since(&entable::layout![Remote]);
        assert_steps(&changes, "delete its rows from table `Staff`, then run");

        client.worker().with::<Remote>().drain().await?;
        delete_list(&client).await?;
        local.rebuild(Local::by_city()).await?;
        local.rebuild(Local::by_age()).await?;
        local.check().repair().await?;
        client.worker().with::<Local>().drain().await?;
        let copies = [1, 2, 3].map(|id| format!("city_Oslo_{id:06}"));
        let lists = [("Sales", "age_030")];
        assert_eq!(derived_keys(&client).await?, expected(&lists, "Sales", &copies));
        Ok(())
    }
}

#[test]
fn a_file_is_compared_and_each_difference_explained() -> Result<(), Box<dyn std::error::Error>> {
    let folder = tempfile::tempdir()?;
    let path = folder.path().join("layout.lock");
    let layout = entable::layout![Employee];
    let missing = layout.check(&path).unwrap_err();
    assert!(missing.is_invalid(), "{missing}");
    assert!(missing.to_string().contains("ENTABLE_LAYOUT=write"), "{missing}");
    std::fs::write(&path, TEXT.replace('\n', "\r\n"))?;
    layout.check(&path)?;
    std::fs::write(&path, TEXT.replace("Age Int32", "Years Int32"))?;
    let differs = format!("{:?}", layout.check(&path).unwrap_err());
    for line in ["Employee: property `Years` is gone", "  needs a version: keep the stored name"] {
        assert!(differs.lines().any(|found| found.starts_with(line)), "{line}: {differs}");
    }
    let moved = TEXT.replace("  property Age Int32\n", "");
    std::fs::write(&path, moved.replace("  series", "  property Age Int32\n  series"))?;
    let order = layout.check(&path).unwrap_err().to_string();
    assert!(order.contains("another order: compatible"), "{order}");
    Ok(())
}

/// Runs in a process of its own, whose environment asks for the file.
#[test]
#[ignore = "the test below runs it"]
fn writes_the_file() {
    entable::layout![Employee].check(std::env::var("LAYOUT_FILE").unwrap()).unwrap();
}

#[test]
fn the_environment_makes_the_test_write_the_file() -> Result<(), Box<dyn std::error::Error>> {
    let folder = tempfile::tempdir()?;
    let path: &Path = &folder.path().join("layout.lock");
    let done = Command::new(std::env::current_exe()?)
        .args(["--ignored", "--exact", "layout::writes_the_file"])
        .env("ENTABLE_LAYOUT", "write")
        .env("LAYOUT_FILE", path)
        .output()?;
    assert!(done.status.success(), "{done:?}");
    assert_eq!(std::fs::read_to_string(path)?, TEXT);
    Ok(())
}

#[derive(Debug, Clone, PartialEq, TableEntity)]
#[table(name = "Staff", partition_key = "{department}", row_key = "badge_{id:06}")]
struct Badge {
    department: String,
    id: u32,
    #[table(blob)]
    photo: Option<Blob>,
    #[table(blob)]
    print: Blob,
}

const BLOBS: &str = r#"
entity "Badge" version 1
  table Staff
  discriminator property EntityType
  primary
    partition "{Department}" -
    row "badge_{Id:06}" 6
  key Department String
  key Id Int64 as u32
  blob Photo optional with PhotoLength PhotoHash PhotoType
  blob Print with PrintLength PrintHash PrintType
"#;

#[derive(Debug, Clone, PartialEq, TableEntity)]
#[table(name = "Logins{at:%Y%m%d}", partition_key = "{user}", row_key = "{at:desc}_{id:03}")]
struct Login {
    user: String,
    at: OffsetDateTime,
    id: u16,
    from: String,
}

const DATED: &str = r#"
entity "Login" version 1
  table Logins{at:%Y%m%d} by At
  discriminator property EntityType
  primary
    partition "{User}" -
    row "{At:desc}_{Id:03}" 19 3
  key User String
  key At DateTime
  key Id Int32 as u16
  property From String
"#;

/// Compares two texts of one entity, and returns their only change.
fn only_change(text: &str, was: &str, is: &str) -> LayoutChange {
    let text = format!("layout 1\n{text}");
    let new = text.replace(was, is);
    assert_ne!(text, new, "`{was}` is not in the text");
    let mut all = new.parse::<Layout>().unwrap().changes_since(&text.parse::<Layout>().unwrap());
    assert_eq!(all.len(), 1, "{was} -> {is}: {all:#?}");
    all.remove(0)
}

#[test]
fn changes_of_blobs_are_told_apart() {
    use RequiredWork::{Migration, Nothing, Version};

    let layout = entable::layout![Badge];
    assert!(layout.to_string().ends_with(BLOBS), "{layout}");
    assert_eq!(format!("layout 1\n{BLOBS}").parse::<Layout>().unwrap(), layout);
    let optional = "  blob Photo optional with PhotoLength PhotoHash PhotoType\n";
    for (was, is, needs, what, how) in [
        (optional, "", Migration, "blob `Photo` is gone", "table.sweep_blobs()"),
        (
            optional,
            "  property Photo Binary optional\n",
            Migration,
            "no longer a blob",
            "table.blob(..).bytes()",
        ),
        (
            "Photo",
            "Picture",
            Version,
            "blob `Photo` is gone and `Picture` is new",
            "rename = \"Photo\"",
        ),
        ("Photo optional", "Photo", Version, "no longer be absent", "cannot be read"),
        ("Print with", "Print optional with", Nothing, "`Print` may be absent", "all readers"),
        (
            "PrintType",
            "PrintType PrintKey",
            Migration,
            "`Print` is now encrypted",
            "table.reencrypt()",
        ),
        ("PrintHash", "Print_Hash", Version, "beside blob `Print`", "would not be found"),
    ] {
        let change = only_change(BLOBS, was, is);
        assert_eq!(change.needs, needs, "{change}");
        assert!(change.what.contains(what) && change.how.contains(how), "{change}");
    }
    let secret = BLOBS.replace("PrintType", "PrintType PrintKey");
    let change = only_change(&secret, " PrintKey", "");
    assert_eq!(change.needs, Migration, "{change}");
    assert!(change.what.contains("no longer encrypted"), "{change}");
    let plain = BLOBS.replace(optional, "");
    let required = "  blob Print with";
    for (text, line, needs, what, how) in [
        (&*plain, optional.to_owned(), Nothing, "blob `Photo` is new", ".blobs(..)"),
        (&*plain, optional.replace(" optional", ""), Version, "is new", "an `Option`"),
    ] {
        let change = only_change(text, required, &format!("{line}{required}"));
        assert_eq!(change.needs, needs, "{change}");
        assert!(change.what.contains(what) && change.how.contains(how), "{change}");
    }
    let change = only_change(
        &BLOBS.replace(optional, "  property Photo Binary\n"),
        "  property Photo Binary\n",
        optional,
    );
    assert_eq!(change.needs, Version, "{change}");
    assert!(change.what.contains("is now a blob") && change.how.contains("Blob::new"), "{change}");
}

/// A property that a blob or a series stores now, or stored before, is told of once.
#[test]
fn a_property_that_a_blob_or_a_series_takes_over_is_told_of_once() {
    use RequiredWork::{Nothing, Version};

    let blob = "  blob Photo optional with PhotoLength PhotoHash PhotoType\n";
    let plain = BLOBS.replace(blob, "");
    let changes = |was: &str, is: &str| {
        let layout = |text: &str| format!("layout 1\n{plain}{text}").parse::<Layout>().unwrap();
        let changes = layout(is).changes_since(&layout(was));
        changes.into_iter().map(|change| (change.needs, change.what)).collect::<Vec<_>>()
    };
    let length = "  property PhotoLength Int64\n";
    let described = "property `PhotoLength` of the row now describes blob `Photo`".to_owned();
    let new = "blob `Photo` is new".to_owned();
    let taken = [(Version, described.clone()), (Nothing, new.clone())];
    assert_eq!(changes(length, blob), taken);
    // Another property of its type is no new name of it.
    let size = (Version, "property `Size` (Int64) is new".to_owned());
    let taken = [size, (Version, described), (Nothing, new)];
    assert_eq!(changes(length, &format!("  property Size Int64\n{blob}")), taken);
    // The reverse. Rows without a photo have no length, so that its field cannot be read from them.
    let length_is_new = (Version, "property `PhotoLength` (Int64) is new".to_owned());
    let gone = (RequiredWork::Migration, "blob `Photo` is gone".to_owned());
    assert_eq!(changes(blob, length), [length_is_new, gone.clone()]);
    let optional = (Nothing, "property `PhotoLength` (Int64) is new".to_owned());
    assert_eq!(changes(blob, "  property PhotoLength Int64 optional\n"), [optional, gone]);
    let series = "  series sent 3 to Sent2 first Sent0 Int32 optional\n";
    let gone = "series `sent` is gone, 3 properties from `Sent0`".to_owned();
    assert_eq!(changes(series, "  property Sent2 Int32\n"), [(Version, gone)]);
}

#[test]
fn changes_of_dated_tables_are_told_apart() {
    use RequiredWork::{Migration, Nothing};

    let layout = entable::layout![Login];
    assert!(layout.to_string().ends_with(DATED), "{layout}");
    assert_eq!(format!("layout 1\n{DATED}").parse::<Layout>().unwrap(), layout);
    let dated = "Logins{at:%Y%m%d} by At";
    for (was, is, needs, what, how) in [
        (dated, "Logins", Migration, "no longer one table for each period", "drop_before"),
        (dated, "Logins{at:%Y%m} by At", Migration, "other names of tables", "periods `%Y%m%d`"),
        (dated, "Visits{at:%Y%m%d} by At", Migration, "other names of tables", "`Logins..`"),
        (dated, "Logins{till:%Y%m%d} by From", Migration, "named by `From`, not by `At`", "misses"),
        (dated, "Logins{time:%Y%m%d} by At", Nothing, "`Logins{time:%Y%m%d}`", "keep their names"),
    ] {
        let change = only_change(DATED, was, is);
        assert_eq!(change.needs, needs, "{change}");
        assert!(change.what.contains(what) && change.how.contains(how), "{change}");
    }
    let back =
        only_change(&DATED.replace(dated, "Logins"), "table Logins", &format!("table {dated}"));
    assert_eq!(back.needs, Migration, "{back}");
    assert!(back.what.ends_with("one table for each period"), "{back}");
    assert!(back.how.contains("no window reads the rows in `Logins`"), "{back}");
    // Encrypted values name the tables' template, which has the field's name in the code.
    // Seals of rows name it too.
    let encrypted = DATED.replace("From String", "From String encrypted");
    let sealed = DATED.replace("EntityType\n", "EntityType\n  sealed\n");
    assert_ne!(sealed, DATED);
    for text in [encrypted, sealed] {
        let field = only_change(&text, dated, "Logins{time:%Y%m%d} by At");
        assert_eq!(field.needs, Migration, "{field}");
        assert!(field.how.contains("open only under `Logins{at:%Y%m%d}`"), "{field}");
    }
}

/// A field of another name is read from the tables that it named before, in plain text.
#[tokio::test]
async fn a_renamed_field_of_dated_tables_reads_the_earlier_tables() -> Result<(), Error> {
    #[derive(Debug, Clone, PartialEq, TableEntity)]
    #[table(
        name = "Logins{time:%Y%m%d}",
        partition_key = "{user}",
        row_key = "{time:desc}_{id:03}",
        entity_type = "Login"
    )]
    struct Renamed {
        user: String,
        #[table(rename = "At")]
        time: OffsetDateTime,
        id: u16,
        from: String,
    }

    let changes = entable::layout![Renamed].changes_since(&entable::layout![Login]);
    assert_eq!(
        changes.iter().map(|change| change.needs).collect::<Vec<_>>(),
        [RequiredWork::Nothing]
    );
    let client = Client::memory();
    let at = datetime!(2014-07-31 18:00 UTC);
    let login = Login { user: "don".into(), at, id: 7, from: "home".into() };
    client.table::<Login>().insert(&login).await?;
    let renamed = client.table::<Renamed>();
    let found = renamed.get(Renamed::primary().user("don").time(at).id(7)).await?;
    assert_eq!(found.map(|login| login.from.clone()), Some("home".to_owned()));
    Ok(())
}
