//! N: compound keys.

use entable::prelude::*;

use crate::{
    model::{Employee, Review, employee, review},
    store::{TestResult, on_both},
};

#[tokio::test]
async fn n01_related_data_is_one_point_read() -> TestResult {
    on_both(async |store| {
        let reviews = store.table::<Review>().await;
        reviews.insert(&review(123, 2012)).await?;
        store.requests();
        let found = reviews.get(Review::primary().department("Sales").id(123).year(2012)).await?;
        assert_eq!(*found.unwrap(), review(123, 2012));
        assert_eq!(store.count(), 1);
        Ok(())
    })
    .await
}

#[tokio::test]
async fn n03_a_second_type_lives_in_the_table_and_partition_of_the_first() -> TestResult {
    on_both(async |store| {
        let staff = store.table::<Employee>().await;
        let reviews = store.client.table::<Review>();
        assert_eq!(staff.name(), reviews.name());
        staff.insert(&employee(123, "Jones")).await?;
        reviews.insert(&review(123, 2012)).await?;
        store.requests();
        let point = Review::primary().department("Sales").id(123).year(2012);
        assert_eq!(reviews.query(point.clone()).explain().class, CostClass::Point);
        let found = reviews.get(point).await?.unwrap();
        assert_eq!(found.partition_key(), "Sales");
        assert_eq!(store.count(), 1);
        Ok(())
    })
    .await
}

#[derive(Debug, PartialEq, Projection)]
#[table(of = Review)]
struct Ratings {
    manager_rating: i32,
    peer_rating: i32,
    comments: String,
}

#[tokio::test]
async fn n04_all_reviews_of_an_employee() -> TestResult {
    on_both(async |store| {
        let staff = store.table::<Employee>().await;
        let reviews = store.client.table::<Review>();
        staff.insert(&employee(123, "Jones")).await?;
        staff.insert(&employee(124, "Smith")).await?;
        for (id, year) in [(123, 2013), (123, 2012), (124, 2012)] {
            reviews.insert(&review(id, year)).await?;
        }
        let filter = "(PartitionKey eq 'Sales') and (RowKey ge 'empid_000123') and (RowKey lt 'empid_000124')";
        let keys = Keys::partition("Sales").prefix("empid_000123");
        assert_eq!(keys.filter().to_string(), filter);
        let rows = store.client.dynamic("Staff").query(keys).collect().await?;
        let keys: Vec<&str> = rows.iter().map(Stored::row_key).collect();
        assert_eq!(keys, ["empid_000123", "empid_000123_2012", "empid_000123_2013"]);

        let typed = reviews.query(Review::primary().department("Sales").id(123)).select::<Ratings>();
        let explain = typed.explain();
        assert_eq!(explain.filter, filter);
        assert_eq!(explain.class, CostClass::Range);
        let select = explain.select.join(",");
        assert!(select.contains("RowKey") && select.contains("EntityType"), "{select}");
        assert!(select.ends_with("ManagerRating,PeerRating,Comments"), "{select}");
        let found = typed.collect().await?;
        let comments: Vec<&str> = found.iter().map(|r| r.comments.as_str()).collect();
        assert_eq!(comments, ["2012 was fine", "2013 was fine"], "without the employee itself");
        Ok(())
    })
    .await
}

#[test]
fn n05_the_parts_are_read_back() -> Result<(), Error> {
    let row = review(123, 2012).to_row()?;
    assert_eq!(row.row_key(), "empid_000123_2012");
    let read = Review::from_row(&row)?;
    assert_eq!((read.id, read.year), (123, 2012));
    Ok(())
}

#[derive(Debug, Clone, PartialEq, TableEntity)]
#[table(
    name = "Staff",
    partition_key = "{region}-{branch}",
    row_key = "{first}_{second}_{year:04}"
)]
struct Compound {
    region: String,
    branch: String,
    first: String,
    second: String,
    year: u16,
}

fn compound(first: &str, second: &str) -> Compound {
    Compound {
        region: "north-west".into(),
        branch: "a/b".into(),
        first: first.into(),
        second: second.into(),
        year: 2012,
    }
}

#[tokio::test]
async fn n06_a_separator_inside_a_part_does_not_break_it() -> TestResult {
    on_both(async |store| {
        let table = store.table::<Compound>().await;
        let parts = [
            ("a_b", "c"),
            ("a", "b_c"),
            ("a_", "b_c"),
            ("", "a_b_c"),
            ("~", "/\\#?"),
            ("\u{e9}", "\u{1f600}"),
        ];
        for (first, second) in parts {
            table.insert(&compound(first, second)).await?;
        }
        let path = || Compound::primary().region("north-west").branch("a/b");
        for (first, second) in parts {
            let found = table.get(path().first(first).second(second).year(2012_u16)).await?;
            assert_eq!(*found.unwrap(), compound(first, second));
            let by_first = table.query(path().first(first)).collect().await?;
            assert!(by_first.iter().all(|row| row.first == first), "{first}");
        }
        let a = table.query(path().first("a")).collect().await?;
        assert_eq!(a.len(), 1, "not those that begin with `a_`");
        assert_eq!(table.query(path()).collect().await?.len(), parts.len());
        Ok(())
    })
    .await
}

#[tokio::test]
async fn n07_employee_and_review_in_one_transaction() -> TestResult {
    on_both(async |store| {
        let staff = store.table::<Employee>().await;
        let reviews = store.client.table::<Review>();
        let mut egt = store.client.transaction();
        egt.insert(&employee(123, "Jones"))?.insert(&review(123, 2012))?;
        egt.commit().await?;
        let mut egt = store.client.transaction();
        egt.insert(&employee(124, "Smith"))?.insert(&review(123, 2012))?;
        assert_eq!(egt.commit().await.unwrap_err().failed_index(), Some(1));
        assert!(staff.get(Employee::primary().department("Sales").id(124)).await?.is_none());
        assert_eq!(reviews.query(Review::primary().department("Sales")).collect().await?.len(), 1);
        Ok(())
    })
    .await
}

#[test]
fn n10_both_keys_may_be_compounds() -> Result<(), Error> {
    let row = compound("x", "y").to_row()?;
    assert_eq!(row.row_key(), "x_y_2012");
    assert!(row.partition_key().starts_with("north") && row.partition_key().contains("west-"));
    assert_eq!(Compound::from_row(&row)?, compound("x", "y"));
    Ok(())
}
