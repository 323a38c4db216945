//! Patterns in the file of the layout: a change of a type is named together with each pattern that it hits.

use std::{path::Path, process::Command};

use entable::{layout::Layout, prelude::*};

/// The program of yesterday.
mod earlier {
    use entable::prelude::*;

    #[derive(Debug, Clone, PartialEq, TableEntity)]
    #[table(
        name = "Staff",
        partition_key = "{department}",
        row_key = "empid_{id:06}",
        index(ByLastName, row_key = "name_{last_name}_{id:06}"),
        index(ByCity, row_key = "city_{city}_{id:06}")
    )]
    pub(crate) struct Employee {
        pub(crate) department: String,
        pub(crate) id: u32,
        pub(crate) last_name: String,
        pub(crate) email: String,
        pub(crate) city: String,
    }

    #[derive(Debug, Clone, PartialEq, Projection)]
    #[table(of = Employee)]
    pub(crate) struct Brief {
        pub(crate) id: u32,
    }

    entable::access_patterns! {
        pub(crate) STAFF;
        "by number" point get(Employee::primary().department("Sales").id(1)) at 5/s;
        "mail of the Joneses" range query(Employee::by_last_name().department("Sales").last_name("Jones"))
            .select::<Brief>().filter(Employee::EMAIL.eq("a@contoso.com")) rows 40;
        "people of Kiel" range query(Employee::by_city().department("Sales").city("Kiel")) rows 20;
        "hire" write insert::<Employee>() requests 1;
        "two hires" write transaction().insert::<Employee>().times(2);
    }
}

/// The program of today: the index by name lacks the address, and the one by city is elsewhere, under another key.
mod later {
    use entable::prelude::*;

    #[derive(Debug, Clone, PartialEq, TableEntity)]
    #[table(
        name = "Staff",
        partition_key = "{department}",
        row_key = "empid_{id:06}",
        index(ByLastName, row_key = "name_{last_name}_{id:06}", except(email)),
        index(ByCity, partition_key = "all_{department}", row_key = "{id:06}")
    )]
    pub(crate) struct Employee {
        pub(crate) department: String,
        pub(crate) id: u32,
        pub(crate) last_name: String,
        pub(crate) email: String,
        pub(crate) city: String,
    }

    #[derive(Debug, Clone, PartialEq, Projection)]
    #[table(of = Employee)]
    pub(crate) struct Brief {
        pub(crate) id: u32,
    }

    entable::access_patterns! {
        pub(crate) STAFF;
        "by number" point get(Employee::primary().department("Sales").id(1)) at 5/s;
        "mail of the Joneses" range query(Employee::by_last_name().department("Sales").last_name("Jones"))
            .select::<Brief>().filter(Employee::EMAIL.eq("a@contoso.com")) rows 40;
        "people of Kiel" range query(Employee::by_city().department("Sales"))
            .filter(Employee::CITY.eq("Kiel")) rows 20;
        "hire" write insert::<Employee>() requests 1;
        "two hires" write transaction().insert::<Employee>().times(2);
    }
}

const PATTERNS: &str = r#"
patterns "STAFF"
  pattern "by number" claims Point
    call get "Employee" Primary
    plan Point requests 1 round_trips 1
  pattern "mail of the Joneses" claims Range rows 40
    call query "Employee" ByLastName
    compares Email
    plan Range requests 1 round_trips 1
  pattern "people of Kiel" claims Range rows 20
    call query "Employee" ByCity
    plan Range requests 1 round_trips 1
  pattern "hire" claims Write at_most 1
    call insert "Employee"
    plan Write requests 1 round_trips 1 operations 3
  pattern "two hires" claims Write
    call insert "Employee" times 2
    plan Write requests 1 round_trips 1 operations 6
"#;

fn locked() -> Layout {
    entable::layout![earlier::Employee].with_patterns(earlier::STAFF)
}

#[test]
fn the_file_holds_each_pattern_with_its_plan() {
    let text = locked().to_string();
    assert!(text.ends_with(PATTERNS), "{text}");
    assert_eq!(text.parse::<Layout>().unwrap(), locked());
    assert!(locked().pattern_changes_since(&text.parse().unwrap()).is_empty());
    for (was, is) in [
        ("plan Range requests", "plan Range"),
        ("round_trips 1\n", "round_trips 1 more\n"),
        ("rows 40", "rows x"),
        ("claims Range", "Range"),
        ("call insert \"Employee\"", "call insert \"Employee"),
        ("times 2", "times"),
        ("    compares", "    compare"),
        ("patterns \"STAFF\"", "patterns STAFF"),
    ] {
        let other = text.replacen(was, is, 1);
        assert_ne!(other, text, "{was}");
        assert!(other.parse::<Layout>().is_err_and(|error| error.is_invalid()), "{is}");
    }
}

#[test]
fn one_message_names_the_change_and_each_pattern_that_it_hits() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("layout.lock");
    std::fs::write(&path, locked().to_string()).unwrap();
    locked().check(&path).unwrap();

    let layout = entable::layout![later::Employee].with_patterns(later::STAFF);
    let message = layout.check(&path).unwrap_err().message().to_owned();
    for part in [
        // The changes of the layout.
        "\nEmployee: copies of local index `ByLastName` hold other fields\n  needs a rebuild: ",
        "\nEmployee: local index `ByCity` is now remote index `ByCity`\n  needs a rebuild: ",
        // The patterns.
        "\npattern \"mail of the Joneses\" of STAFF\n  because index `ByLastName` no longer holds `Email`, in `Employee`\n  does not hold: the call is refused: ",
        "\npattern \"people of Kiel\" of STAFF: was a Range of 1 request in 1 round trip, and is a PartitionScan of 1 request in 1 round trip; now compares `City` in each row\n",
        "\n  because `City` is no longer part of the RowKey of index `ByCity`, in `Employee`\n",
        "\n  does not hold: query of `Staff` claims to be a Range and is a PartitionScan: $filter=",
        "\npattern \"hire\" of STAFF: was a Write of 1 request in 1 round trip, 3 operations, and is a Write of 3 requests in 1 round trip, 4 operations\n  because index `ByCity` is now in another partition, in `Employee`\n  does not hold: insert of `Staff` claims at most 1 requests and sends 3",
        "\npattern \"two hires\" of STAFF: was a Write of 1 request in 1 round trip, 6 operations, and is a Write of 5 requests in 1 round trip, 7 operations\n  because index `ByCity` is now in another partition, in `Employee`\n",
        "\n\nENTABLE_LAYOUT=write writes the file once each pattern holds",
    ] {
        assert!(message.contains(part), "{part}\n\nin\n\n{message}");
    }
    assert!(!message.contains("by number"), "{message}");
}

/// Text of the file, with a change that the program then undoes.
fn changes(was: &str, is: &str) -> Vec<String> {
    let text = locked().to_string();
    let other = text.replacen(was, is, 1);
    assert_ne!(text, other, "{was}");
    let changes = locked().pattern_changes_since(&other.parse().unwrap());
    changes.iter().map(ToString::to_string).collect()
}

#[test]
fn each_other_difference_is_named() {
    assert_eq!(
        changes("claims Point\n", "claims Point at_most 2\n"),
        ["pattern \"by number\" of STAFF: claimed `Point at_most 2`, and claims `Point`"]
    );
    assert_eq!(
        changes("call get \"Employee\" Primary", "call get \"Employee\" ByCity"),
        [
            "pattern \"by number\" of STAFF: called `get \"Employee\" ByCity`, and calls `get \"Employee\" Primary`"
        ]
    );
    assert_eq!(
        changes("  pattern \"people of Kiel\"", "  pattern \"people of Bonn\""),
        [
            "pattern \"people of Kiel\" of STAFF: is new, a Range of 1 request in 1 round trip",
            "pattern \"people of Bonn\" of STAFF: is gone"
        ]
    );
    assert_eq!(
        changes("    compares Email\n", ""),
        [
            "pattern \"mail of the Joneses\" of STAFF: now compares `Email` in each row\n  because the call, its example values or entable changed: no layout of a type did"
        ]
    );
}

/// Runs in a process of its own, whose environment asks for the file.
#[test]
#[ignore = "the test below runs it"]
fn writes_the_file() {
    let path = std::env::var("LAYOUT_FILE").unwrap();
    let layout = match std::env::var_os("BROKEN") {
        Some(_) => entable::layout![later::Employee].with_patterns(later::STAFF),
        None => locked(),
    };
    layout.check(path).unwrap();
}

#[test]
fn one_command_accepts_layout_and_patterns_and_refuses_claims_that_do_not_hold() {
    let folder = tempfile::tempdir().unwrap();
    let path: &Path = &folder.path().join("layout.lock");
    let run = |broken: bool| {
        let mut command = Command::new(std::env::current_exe().unwrap());
        command.args(["--ignored", "--exact", "locked::writes_the_file"]);
        command.env("ENTABLE_LAYOUT", "write").env("LAYOUT_FILE", path);
        if broken {
            command.env("BROKEN", "1");
        }
        command.output().unwrap()
    };
    let refused = run(true);
    assert!(!refused.status.success() && !path.exists(), "{refused:?}");
    let shown = String::from_utf8_lossy(&refused.stdout).into_owned()
        + &String::from_utf8_lossy(&refused.stderr);
    assert!(shown.contains("claims at most 1 requests and sends 3"), "{shown}");
    assert!(run(false).status.success());
    assert!(std::fs::read_to_string(path).unwrap().ends_with(PATTERNS));
}

#[derive(Debug, Clone, PartialEq, TableEntity)]
#[table(
    name = "Staff",
    partition_key = "{department}",
    row_key = "empid_{id:06}",
    index(ByName, row_key = "name_{last_name}_{id:06}"),
    index(ByEmail, row_key = "email_{email}", unique),
    list(ByTeam, row_key = "team_{team}")
)]
struct Colleague {
    department: String,
    id: u32,
    last_name: String,
    email: String,
    team: String,
}

#[derive(Debug, Clone, PartialEq, TableEntity)]
#[table(
    name = "Staff",
    partition_key = "{department}",
    row_key = "guest_{id:06}",
    index(OfName, row_key = "guestname_{last_name}_{id:06}"),
    allow(unread_index)
)]
struct Guest {
    department: String,
    id: u32,
    last_name: String,
}

entable::access_patterns! {
    WRITERS;
    "hire" write insert::<Colleague>();
    "invite" write insert::<Guest>();
}

entable::access_patterns! {
    READERS;
    "by name" range query(Colleague::by_name().department("Sales").last_name("Jones"));
}

#[test]
fn an_index_that_nobody_reads_is_noted_unless_the_type_allows_it() {
    let texts = |patterns: entable::patterns::AccessPatterns| -> Vec<String> {
        patterns.notes().iter().map(ToString::to_string).collect()
    };
    let notes = texts(WRITERS);
    // `ByEmail` is unique: it has a use without readers.
    assert_eq!(notes.len(), 2, "{notes:#?}");
    assert!(notes[0].starts_with("Colleague: no pattern reads index `ByName`, "), "{notes:#?}");
    assert!(notes[1].starts_with("Colleague: no pattern reads list `ByTeam`, "), "{notes:#?}");
    assert_eq!(texts(READERS).len(), 1);

    // The file holds them as comments, which fail no check.
    let layout = || entable::layout![Colleague, Guest].with_patterns(WRITERS);
    let text = layout().to_string();
    assert_eq!(text.matches("\n# Note: Colleague: no pattern reads ").count(), 2, "{text}");
    assert_eq!(text.parse::<Layout>().unwrap(), layout());
    // An index that other patterns read is not noted.
    let both = layout().with_patterns(READERS).to_string();
    assert_eq!(both.matches("\n# Note: ").count(), 1, "{both}");
    assert!(both.contains("reads list `ByTeam`"), "{both}");
}
