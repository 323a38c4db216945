//! Tests `#[derive(EdmEnum)]`: unit enums as text.

use entable::{edm::ValueRef, key::KeyPart, prelude::*};

#[derive(Debug, Clone, Copy, PartialEq, EdmEnum)]
#[table(rename_all = "SCREAMING_SNAKE_CASE")]
enum Status {
    New,
    InProgress,
    #[table(rename = "done")]
    Closed,
}

#[derive(Debug, Clone, PartialEq, TableEntity)]
#[table(name = "Tickets", partition_key = "{status}_x", row_key = "{id}")]
struct Ticket {
    status: Status,
    id: u64,
    before: Option<Status>,
}

#[test]
fn variants_are_stored_by_their_names() -> Result<(), Error> {
    let ticket = Ticket { status: Status::InProgress, id: 7, before: Some(Status::Closed) };
    let row = ticket.to_row()?;
    assert_eq!(row.partition_key(), "IN~5FPROGRESS_x");
    assert_eq!(row.row_key(), "00000000000000000007");
    assert_eq!(row.get("Before")?, Some(ValueRef::String("done")));
    assert_eq!(Ticket::from_row(&row)?, ticket);
    Ok(())
}

#[test]
fn an_unknown_text_lists_what_was_expected() {
    let error = Status::from_edm(ValueRef::String("Old")).unwrap_err();
    assert_eq!(error.to_string(), "expected `NEW`, `IN_PROGRESS` or `done`, found `Old`");
    let error = Status::from_edm(ValueRef::Int32(1)).unwrap_err();
    assert_eq!(error.to_string(), "expected Edm.String, found Edm.Int32");
    assert!(Status::decode("new").is_err());
}

#[test]
fn an_enum_is_given_and_compared_by_its_variants() -> Result<(), Error> {
    let point = Ticket::primary().status(Status::New).id(1_u64);
    assert_eq!(point.keys().as_point(), Some(("NEW_x", "00000000000000000001")));
    let filter = Ticket::BEFORE.eq(Status::New).into_filter()?;
    assert_eq!(filter.to_string(), "Before eq 'NEW'");
    Ok(())
}
