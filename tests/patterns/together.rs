//! What patterns predict for transactions of several writes and for bulk loads.

use entable::{
    patterns::{self, Pattern},
    prelude::*,
};
use serde::{Deserialize, Serialize};

use crate::store::Store;

#[derive(Debug, Serialize, Deserialize, Message)]
struct Welcome {
    id: u32,
}

macro_rules! compare_transactions {
    ($name:ident; $(@$part:literal)? $($setting:meta),*) => { Box::pin(async {
        #[derive(Debug, Clone, PartialEq, TableEntity)]
        #[table(name = "Staff", partition_key = "dep_{department}", row_key = "empid_{id:06}" $(, $setting)*)]
        struct $name {
            department: String,
            id: u32,
            last_name: String,
            city: String,
            email: String,
            $(#[table(part = $part)])?
            age: i32,
        }

        // Each has lists of its own, which somebody else is in already.
        let new = |id: u32, name: &str| $name {
            department: "Sales".into(),
            id,
            last_name: name.into(),
            city: format!("{name}{}", id % 100),
            email: format!("{name}{id}@contoso.com"),
            age: 30,
        };
        let at = |id: u32| $name::primary().department("Sales").id(id);
        let mut store = Store::new(|builder| builder);
        let staff = store.client.table::<$name>();
        staff.create().await.unwrap();
        for id in 1..=16 {
            staff.insert(&new(id + 100, "Jones")).await.unwrap();
            staff.insert(&new(id + 200, "Smith")).await.unwrap();
        }
        for id in 1..=12 {
            staff.insert(&new(id, "Jones")).await.unwrap();
        }
        // Registers the partition.
        let mut first = staff.transaction();
        first.in_partition("dep_Sales").unwrap().emit(&Welcome { id: 0 }).unwrap();
        first.commit().await.unwrap();

        store.begin().await;
        let mut both = staff.transaction();
        both.insert(&new(13, "Jones")).unwrap().insert(&new(14, "Jones")).unwrap();
        both.commit().await.unwrap();
        let question = patterns::transaction().insert::<$name>().times(2);
        store.compare("two inserts", question, 1).await;

        let mut stored = Vec::new();
        for id in 1..=8 {
            stored.push(staff.get(at(id)).await.unwrap().unwrap());
        }
        store.begin().await;
        let mut both = staff.transaction();
        for one in &mut stored[0..2] {
            one.age += 1;
            both.replace(one).unwrap();
        }
        both.commit().await.unwrap();
        let question = patterns::transaction().replace::<$name>().times(2);
        store.compare("two replaced", question, 1).await;

        let mut both = staff.transaction();
        for one in &mut stored[2..4] {
            let id = one.id;
            **one = $name { age: one.age, ..new(id, "Smith") };
            both.replace(one).unwrap();
        }
        both.commit().await.unwrap();
        let question = patterns::transaction().replace_keys::<$name>().times(2);
        store.compare("two with other keys", question, 1).await;

        let mut both = staff.transaction();
        both.patch_at(at(5), $name::patch().age(50)).unwrap();
        both.patch_at(at(6), $name::patch().age(50)).unwrap();
        both.commit().await.unwrap();
        let question = patterns::transaction().patch_at::<$name>().patch_at::<$name>();
        store.compare("two patches", question, 1).await;

        let mut mixed = staff.transaction();
        mixed.insert(&new(15, "Jones")).unwrap().delete(&stored[6]).unwrap();
        mixed.insert_or_replace(&$name { age: 31, ..new(8, "Jones") }).unwrap();
        mixed.insert_or_merge(&$name { age: 31, ..new(9, "Jones") }).unwrap();
        mixed.delete_at(at(10)).unwrap().emit(&Welcome { id: 1 }).unwrap();
        mixed.commit().await.unwrap();
        let question = patterns::transaction()
            .insert::<$name>()
            .delete::<$name>()
            .insert_or_replace::<$name>()
            .insert_or_merge::<$name>()
            .delete_at::<$name>()
            .emit::<Welcome>();
        store.compare("of everything", question, 1).await;
        store.wrong.iter().map(|wrong| format!("{} {wrong}", stringify!($name))).collect::<Vec<_>>()
    }).await };
}

#[tokio::test(start_paused = true)]
async fn transactions_send_what_their_patterns_predict() {
    let wrong = [
        compare_transactions!(Alone;),
        compare_transactions!(LocalIndex; index(ByEmail, row_key = "email_{email:lower}", unique)),
        compare_transactions!(LocalList; list(ByCity, row_key = "city_{city}")),
        compare_transactions!(
            RemoteIndex;
            index(ByName, partition_key = "name_{last_name}", row_key = "{department}_{id:06}")
        ),
        compare_transactions!(
            UniqueElsewhere;
            index(ByEmail, partition_key = "email_{email:lower}", row_key = "account", unique)
        ),
        compare_transactions!(
            RemoteList; list(ByCity, partition_key = "city_{city}", row_key = "ids")
        ),
        compare_transactions!(Parts; @2 wide),
        compare_transactions!(
            OfAllKinds;
            index(ByName, row_key = "name_{last_name}_{id:06}"),
            list(ByCity, row_key = "city_{city}"),
            index(ByEmail, partition_key = "email_{email:lower}", row_key = "account", unique),
            list(ByTown, partition_key = "town_{city}", row_key = "ids")
        ),
    ]
    .concat();
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

macro_rules! compare_loads {
    ($name:ident; $(@$part:literal)? $($setting:meta),*) => { Box::pin(async {
        #[derive(Debug, Clone, PartialEq, TableEntity)]
        #[table(name = "Staff", partition_key = "dep_{department}", row_key = "empid_{id:06}" $(, $setting)*)]
        struct $name {
            department: String,
            id: u32,
            city: String,
            $(#[table(part = $part)])?
            age: i32,
        }

        let new = |department: u32, id: u32| $name {
            department: format!("d{department}"),
            id,
            city: format!("{department}_{id}"),
            age: 30,
        };
        let mut wrong = Vec::new();
        for (entities, partitions) in [(1, 1), (40, 1), (151, 1), (403, 3), (1_000, 7), (30, 30)] {
            let mut store = Store::new(|builder| builder);
            let staff = store.client.table::<$name>();
            staff.create().await.unwrap();
            let department = |at: u32| {
                // Some have one more than the others.
                let (less, more) = (entities / partitions, entities % partitions);
                let first = more * (less + 1);
                if at < first { at / (less + 1) } else { more + (at - first) / less }
            };
            for department in 0..partitions {
                staff.insert(&new(department, 999_999)).await.unwrap();
            }
            let all: Vec<$name> = (0..entities).map(|at| new(department(at), at)).collect();
            store.begin().await;
            staff.bulk().insert_all(&all).await.unwrap().into_result().unwrap();
            let what = format!("{} {entities} in {partitions}", stringify!($name));
            let question = patterns::insert_all::<$name>();
            let pattern = Pattern::write(&what, question).rows(entities.into()).over(partitions.into());
            store.compare_pattern(pattern).await;
            wrong.extend(store.wrong);
        }
        wrong
    }).await };
}

#[tokio::test(start_paused = true)]
async fn bulk_loads_send_what_their_patterns_predict() {
    let wrong = [
        compare_loads!(Alone;),
        compare_loads!(Indexed; index(ByCity, row_key = "city_{city}_{id:06}")),
        compare_loads!(Listed; list(ByCity, row_key = "city_{city}")),
        compare_loads!(Elsewhere; index(ByCity, partition_key = "city_{city}", row_key = "{department}_{id:06}")),
        compare_loads!(Unique; index(ByCity, partition_key = "city_{city}", row_key = "one", unique)),
        compare_loads!(ListedElsewhere; list(ByCity, partition_key = "city_{city}", row_key = "ids")),
        compare_loads!(Parts; @2 wide),
    ]
    .concat();
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

#[derive(Debug, Clone, PartialEq, TableEntity)]
#[table(
    name = "Orders",
    partition_key = "{customer}",
    row_key = "order_{number:08}",
    index(ByArticle, row_key = "article_{article}_{number:08}")
)]
struct Order {
    customer: String,
    number: u32,
    article: String,
}

#[derive(Debug, Clone, PartialEq, TableEntity)]
#[table(name = "Customers", partition_key = "{customer}", row_key = "customer")]
struct Customer {
    customer: String,
    orders: u32,
}

entable::access_patterns! {
    ORDERS;
    "order" write transaction().insert::<Order>().times(50).emit::<Welcome>();
    "two tables" write transaction().insert::<Order>().replace::<Customer>();
    "nothing" write transaction();
    "reads" point transaction().insert::<Order>();
    "import" write insert_all::<Order>() rows 1_000 over 4 requests 19;
}

#[test]
fn refused_transactions_and_dear_loads_are_named() {
    let error = ORDERS.check().unwrap_err();
    let lines: Vec<&str> = error.message().lines().skip(1).collect();
    let expected = [
        "- \"order\": the call is refused: an entity group transaction has at most 100 operations",
        "- \"two tables\": the call is refused: a transaction writes to one table, and this one to `Orders` and `Customers`",
        "- \"nothing\": the call is refused: the transaction writes nothing",
        "- \"reads\": transaction of `Orders` claims to be a Point and writes",
        "- \"import\": bulk insert_all of `Orders` claims at most 19 requests and sends 20",
    ];
    assert_eq!(lines.len(), expected.len(), "{}", error.message());
    for (line, expected) in lines.iter().zip(expected) {
        assert!(line.contains(expected), "{line}\n{expected}");
    }
}

#[derive(Debug, Clone, PartialEq, TableEntity)]
#[table(
    name = "Staff",
    partition_key = "{department}",
    row_key = "empid_{id:06}",
    index(
        ByName,
        table = "StaffByName",
        partition_key = "{last_name}",
        row_key = "{department}_{id:06}"
    )
)]
struct Employee {
    department: String,
    id: u32,
    last_name: String,
}

entable::access_patterns! {
    LOADS;
    "import" write insert_all::<Employee>() rows 5_000 at 1/s;
}

#[test]
fn a_load_counts_each_row_elsewhere() {
    let hot = LOADS.plan().hot_partitions();
    let tables: Vec<&str> = hot.iter().map(|hot| hot.table.as_str()).collect();
    assert_eq!(tables, ["Staff", "StaffByName"]);
    assert_eq!(hot[1].entities_per_second, 5_000.0);
}
