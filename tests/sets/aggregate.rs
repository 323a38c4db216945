//! Tests aggregates: structs into which a partition is folded.

use entable::prelude::*;

use crate::fixture::*;

#[derive(Debug, EntitySet)]
struct DepartmentPage {
    #[table(one)]
    department: Stored<Department>,
    #[table(many)]
    employees: Vec<Employee>,
    #[table(many)]
    reviews: Vec<Stored<Review>>,
}

#[derive(Debug, EntitySet)]
struct Lenient {
    #[table(one)]
    department: Option<Department>,
    #[table(other)]
    rest: Vec<DynamicEntity>,
}

#[derive(Debug, EntitySet)]
struct OneReview {
    #[table(one)]
    review: Review,
    #[table(other)]
    rest: Vec<Stored<DynamicEntity>>,
}

#[tokio::test]
async fn one_query_fills_the_struct() -> Result<(), Error> {
    let (recorder, client) = staffed().await;
    let page = client.set::<DepartmentPage>("Staff").load(Keys::partition("Sales")).await?;
    assert_eq!(recorder.count(), 1);
    assert_eq!(*page.department, department());
    assert_eq!(page.employees, [employee(223)]);
    assert_eq!(page.reviews.iter().map(|review| review.year).collect::<Vec<_>>(), [2012, 2013]);
    let mut department = page.department;
    department.employee_count = 2;
    client.table::<Department>().replace(&department).await?;
    Ok(())
}

#[tokio::test]
async fn what_is_missing_or_too_much_is_an_error() -> Result<(), Error> {
    let (_, client) = staffed().await;
    let pages = client.set::<DepartmentPage>("Staff");
    let error = pages.load(Keys::partition("Marketing")).await.unwrap_err();
    assert!(error.is_not_found());
    assert_eq!(
        error.to_string(),
        "expected a `department` among the rows, found none (table `Staff`, PartitionKey `Marketing`, RowKey ``, code \
         `ResourceNotFound`)"
    );
    let empty = client.set::<Lenient>("Staff").load(Keys::partition("Marketing")).await?;
    assert_eq!((empty.department, empty.rest.len()), (None, 0));
    let two = client.set::<OneReview>("Staff").load(Keys::partition("Sales")).await.unwrap_err();
    assert!(two.is_decode());
    assert!(
        two.to_string().starts_with(
            "expected one `Review`, found a second in addition to `review_000223_2012`"
        ),
        "{two}"
    );
    let one = Keys::partition("Sales").rows("empid"..="review_000223_2012");
    let one = client.set::<OneReview>("Staff").load(one).await?;
    assert_eq!((one.review.year, one.rest.len()), (2012, 1));
    Ok(())
}

#[tokio::test]
async fn other_rows_are_kept_or_refused() -> Result<(), Error> {
    let (_, client) = staffed().await;
    let note = DynamicEntity::new("Sales", "note").with("EntityType", "Note");
    client.dynamic("Staff").insert(&note).await?;
    let error = client.set::<DepartmentPage>("Staff").load(Keys::partition("Sales")).await;
    let error = error.unwrap_err();
    assert!(error.is_unrecognized_entity());
    assert_eq!(error.entity_type(), Some("Note"));
    let page = client.set::<Lenient>("Staff").load(Keys::partition("Sales")).await?;
    assert_eq!(page.department, Some(department()));
    let rest: Vec<&str> = page.rest.iter().map(DynamicEntity::row_key).collect();
    assert_eq!(rest, ["empid_000223", "note", "review_000223_2012", "review_000223_2013"]);
    Ok(())
}
