//! Encrypted fields of every kind, through the verbs.

use entable::{EdmType, prelude::*};

use crate::fixture::{Employee, client, jones, stored, value};

#[tokio::test]
async fn encrypted_fields_are_stored_as_binary_and_come_back() {
    let (client, recorder) = client().await;
    let staff = client.table::<Employee>();
    let inserted = staff.insert(&jones()).await.unwrap();
    assert_eq!(*inserted, jones());
    assert_eq!(recorder.count(), 1);

    let row = stored(&client, "Sales", "empid_000223").await;
    for name in ["Ssn", "Salary", "Bonus", "Notes"] {
        assert_eq!(value(&row, name).unwrap().edm_type(), EdmType::Binary, "{name}");
    }
    assert!(!row.as_bytes().windows(4).any(|bytes| bytes == b"6789" || bytes == b"tea\""));

    recorder.clear();
    let point = Employee::primary().department("Sales").id(223);
    let read = staff.get(point).await.unwrap().unwrap();
    assert_eq!((&*read, recorder.count()), (&jones(), 1));
}
