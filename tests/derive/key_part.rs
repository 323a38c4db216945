//! Tests `#[derive(KeyPart)]`: ids with types of their own, and enums, in keys and properties.

use std::{borrow::Cow, sync::Arc};

use entable::{ValueRef, key::KeyPart, prelude::*};
use time::{OffsetDateTime, macros::datetime};

use crate::{filter, keys};

#[derive(Debug, Clone, PartialEq, KeyPart)]
struct OrderId(u32);

#[derive(Debug, Clone, PartialEq, KeyPart)]
struct Email {
    text: String,
}

#[derive(Debug, Clone, PartialEq, KeyPart)]
struct SentAt(OffsetDateTime);

#[derive(Debug, Clone, Copy, PartialEq, KeyPart)]
#[table(rename_all = "lowercase")]
enum Region {
    North,
    #[table(rename = "mid")]
    Middle,
}

#[derive(Debug, Clone, PartialEq, TableEntity)]
#[table(
    name = "Orders",
    partition_key = "{region}",
    row_key = "o_{id:08}",
    index(ByEmail, row_key = "e_{email:lower}_{id}"),
    index(ByDay, row_key = "d_{sent:%Y%m%d}_{id:desc}", only(region))
)]
struct Order {
    region: Region,
    id: OrderId,
    email: Email,
    sent: SentAt,
    follows: Option<OrderId>,
}

const AT: OffsetDateTime = datetime!(2014-08-22 00:50:32 UTC);

fn order(id: u32) -> Order {
    Order {
        region: Region::Middle,
        id: OrderId(id),
        email: Email { text: "Don@Contoso.com".into() },
        sent: SentAt(AT),
        follows: Some(OrderId(6)),
    }
}

#[test]
fn a_newtype_has_every_form_of_its_field() {
    let rows = order(7).rows().unwrap();
    assert_eq!(keys(&rows.primary), ("mid", "o_00000007"));
    let copies: Vec<(&str, &str)> = rows.local_copies.iter().map(|copy| keys(&copy.row)).collect();
    assert_eq!(copies, [("mid", "e_don@contoso.com_0000000007"), ("mid", "d_20140822_4294967288")]);
    assert_eq!(Order::from_row(&rows.primary).unwrap(), order(7));
}

#[test]
fn a_newtype_is_a_property_as_its_field_is() {
    let row = order(7).to_row().unwrap();
    assert_eq!(row.get("Follows").unwrap(), Some(ValueRef::Int64(6)));
    assert_eq!(OrderId::WIDTH, u32::WIDTH);
    let error = OrderId::decode("x").unwrap_err();
    assert_eq!(error.to_string(), u32::decode("x").unwrap_err().to_string());
}

#[test]
fn a_newtype_is_asked_for_ranges_and_prefixes() {
    let range = Order::primary().region(Region::North).id_range(OrderId(1)..OrderId(3));
    assert_eq!(
        filter(range.keys()),
        "(PartitionKey eq 'north') and (RowKey ge 'o_00000001') and (RowKey lt 'o_00000003')"
    );
    let range = Order::by_email().region(Region::North).email_prefix("Do");
    assert_eq!(
        filter(range.keys()),
        "(PartitionKey eq 'north') and (RowKey ge 'e_do') and (RowKey lt 'e_dp')"
    );
}

#[derive(Debug, Clone, PartialEq, TableEntity)]
#[table(
    name = "Staff",
    partition_key = "{department}",
    row_key = "p_{name}",
    index(ByNick, row_key = "n_{nick}_{name}")
)]
struct Employee {
    department: String,
    name: String,
    nick: String,
}

#[test]
fn a_text_part_takes_every_kind_of_text() {
    let departments = ["Sales", "IT"];
    let filters: Vec<String> = departments
        .iter()
        .map(|name| filter(Employee::primary().department(name).keys()))
        .collect();
    assert_eq!(filters[1], filter(Employee::primary().department("IT").keys()));
    let point = Employee::primary().department("IT").name("Don").keys();
    let (boxed, shared): (Box<str>, Arc<str>) = ("IT".into(), "Don".into());
    assert_eq!(Employee::primary().department(boxed).name(shared).keys(), point);
    let (borrowed, owned) = (Cow::Borrowed("IT"), Cow::<str>::Owned("Don".into()));
    assert_eq!(Employee::primary().department(borrowed).name(owned).keys(), point);
    let prefix = Employee::primary().department("IT").name_prefix("D").keys();
    let shared: Arc<str> = "D".into();
    assert_eq!(Employee::primary().department("IT").name_prefix(shared).keys(), prefix);
    assert_eq!(Employee::primary().department("IT").name_prefix(Cow::from("D")).keys(), prefix);
    let _ = Employee::patch().nick(Cow::from("Donny"));
}

/// Reads whatever a path leads to.
async fn read(
    table: &Table<Employee>,
    path: impl Path<Entity = Employee, View: FullView>,
) -> Result<Vec<Employee>, Error> {
    Ok(table.query(path).collect().await?.into_iter().map(Stored::into_inner).collect())
}

fn either(nick: Option<&str>) -> AnyPath<Employee> {
    match nick {
        Some(nick) => Employee::by_nick().department("IT").nick(nick).any(),
        None => Employee::primary().department("IT").any(),
    }
}

#[tokio::test]
async fn a_helper_takes_any_path_and_any_path_has_one_type() {
    let client = Client::memory();
    let table = client.table::<Employee>();
    table.create().await.unwrap();
    let employee = |name: &str, nick: &str| Employee {
        department: "IT".into(),
        name: name.into(),
        nick: nick.into(),
    };
    let (don, jun) = (employee("Don", "D"), employee("Jun", "J"));
    table.insert(&don).await.unwrap();
    table.insert(&jun).await.unwrap();
    assert_eq!(read(&table, either(None)).await.unwrap(), [don.clone(), jun.clone()]);
    assert_eq!(read(&table, either(Some("J"))).await.unwrap(), std::slice::from_ref(&jun));
    let nicks = Employee::by_nick().department("IT");
    assert_eq!(read(&table, nicks).await.unwrap(), [don.clone(), jun]);
    let point = Employee::primary().department("IT").name("Don");
    assert_eq!(read(&table, point).await.unwrap(), [don]);
    let paths = vec![either(None), either(Some("D"))];
    assert_eq!(table.query_many(paths).collect().await.unwrap().len(), 3);
}

#[derive(Debug, Clone, PartialEq, TableEntity)]
#[table(
    name = "Staff",
    partition_key = "{department}",
    row_key = "p_{id:06}",
    index(ByName, row_key = "n_{last:lower}_{first:lower}")
)]
struct Named {
    department: String,
    id: u32,
    last: String,
    first: String,
}

/// A copy that holds both fields is compared with both parts of its key.
#[tokio::test]
async fn a_copy_with_two_lower_parts_is_checked_by_both() -> Result<(), Error> {
    let table = Client::memory().table::<Named>();
    table.create().await?;
    let named = |id, first: &str| Named {
        department: "Sales".into(),
        id,
        last: "Jones".into(),
        first: first.into(),
    };
    let stored = [named(1, "Hanna"), named(2, "Élise")];
    for one in &stored {
        table.insert(one).await?;
    }
    let path = || Named::by_name().department("Sales").last("JONES");
    let found = table.query(path()).collect().await?;
    assert_eq!(found.into_iter().map(Stored::into_inner).collect::<Vec<_>>(), stored);
    let rows = table.client().dynamic("Staff");
    for (property, value) in [("Last", "Jones"), ("First", "Hanna")] {
        for (changed, is_refused) in [("Other", true), (value, false)] {
            let mut copy = rows.get("Sales", "n_jones_hanna").await?.unwrap();
            copy.set(property, changed);
            rows.replace(&copy).await?;
            let read = table.query(path()).collect().await;
            assert_eq!(read.is_err_and(|error| error.is_decode()), is_refused, "{property}");
        }
    }
    Ok(())
}
