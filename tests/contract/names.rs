//! Tests that the prelude alone brings in every name of the public contract.

use entable::prelude::*;

use crate::declaring::Employee;

/// Each type that the contract names, as a program writes it.
#[allow(clippy::too_many_arguments, reason = "a list of names")]
fn names(
    _: (&Client, &Table<Employee>, &Query<Employee>, &Lookup<Employee>, &Keyring, &RetryPolicy),
    _: (&Point<Employee>, &Range<Employee>, &Partition<Employee>, &Scan<Employee>, &Keys),
    _: (&Column<Employee, i32>, &Filter, &Cursor, &Page<Employee>, &Explain, &CostClass),
    _: (&Stored<Employee>, &KeyRef<Employee>, &DynamicEntity, &Bag, &BulkReport, &Report),
    _: (&Blob, &BlobTarget, &BlobLog, &Flush, &LogRecord, &Dropped),
    _: (&Memory, &Embedded, &dyn Queue, &MessageQueue, &Transaction, &Bulk),
    _: (&Error, &BoxError),
) {
}

#[tokio::test]
async fn the_prelude_brings_in_every_name() -> Result<(), BoxError> {
    let _ = names;
    let client = Client::builder().backend(Memory::new()).build()?;
    let staff: Table<Employee> = client.table();
    staff.create_if_not_exists().await?;
    let query: Query<Employee> = staff.query(Employee::primary().department("Sales"));
    // A page has the items and the next position, and nothing else.
    let Page { items, next } = query.page(None).await?;
    assert!(items.is_empty() && next.is_none());
    let Dropped { dropped, kept } = Dropped::default();
    assert!(dropped.is_empty() && kept.is_empty());
    Ok(())
}

#[test]
fn a_filter_is_parsed_from_its_text() -> Result<(), BoxError> {
    let printed = (Filter::eq("LastName", "O'Brien") & !Filter::eq("Age", 30)).to_string();
    let filter: Filter = printed.parse()?;
    assert_eq!(filter, Filter::parse(&printed)?);
    assert_eq!(filter.to_string(), printed);
    assert!("LastName eq".parse::<Filter>().is_err_and(|error| error.is_invalid()));
    Ok(())
}
