//! Tests the predicates of errors that callers act on.

use entable::{ErrorKind, prelude::*};

use crate::{
    declaring::{Employee, employee},
    store::{TestResult, on_both},
};

#[tokio::test]
async fn an_error_names_its_place_and_the_services_code() -> TestResult {
    on_both(async |store| {
        let staff = store.table::<Employee>().await;
        let don = staff.insert(&employee(1, "Hall")).await?;
        let conflict = staff.insert(&don).await.unwrap_err();
        assert!(conflict.is_conflict());
        assert_eq!((conflict.code(), conflict.status()), (Some("EntityAlreadyExists"), Some(409)));
        assert_eq!(conflict.table(), Some("Staff"));
        assert_eq!(conflict.keys(), Some(("Sales", "empid_000001")));
        assert_eq!(conflict.failed_index(), None);
        let text = conflict.to_string();
        for part in ["Staff", "Sales", "empid_000001"] {
            assert!(text.contains(part), "{text}");
        }

        let mut same_email = employee(2, "Hall");
        same_email.email = don.email.clone();
        let taken = staff.insert(&same_email).await.unwrap_err();
        assert!(taken.is_unique_violation());
        assert_eq!(taken.index(), Some("ByEmail"));

        let long = Employee { first_name: "x".repeat(40_000), ..employee(3, "Hall") };
        let long = staff.insert(&long).await.unwrap_err();
        assert!(long.is_too_large());
        assert_eq!(long.property(), Some("FirstName"));
        assert_eq!(long.code(), Some("PropertyValueTooLarge"));

        let missing = Employee::primary().department("Sales").id(9);
        let missing = staff.patch_at(missing, Employee::patch().age(1)).await.unwrap_err();
        assert!(missing.is_not_found());
        assert_eq!((missing.code(), missing.status()), (Some("ResourceNotFound"), Some(404)));
        let nowhere = store.client.table_named::<Employee>("Nowhere");
        let nowhere = nowhere.insert(&employee(1, "Hall")).await.unwrap_err();
        assert_eq!(nowhere.code(), Some("TableNotFound"));
        Ok(())
    })
    .await
}

#[test]
fn every_kind_has_its_predicate() {
    let error = |kind| Error::new(kind, "text");
    assert!(error(ErrorKind::NotFound).is_not_found());
    assert!(error(ErrorKind::Throttled).is_throttled());
    assert!(error(ErrorKind::Decrypt).is_decrypt());
    assert!(error(ErrorKind::Ambiguous).is_ambiguous());
    assert!(error(ErrorKind::UnrecognizedEntity).is_unrecognized_entity());
    assert!(error(ErrorKind::PreconditionFailed).is_precondition_failed());
}
