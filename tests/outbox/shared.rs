//! Tests lists that several types share.

use entable::prelude::*;

#[derive(Debug, Clone, TableEntity)]
#[table(
    name = "Staff",
    partition_key = "{department}",
    row_key = "clerk_{id:06}",
    list(ByCity, table = "ByCity", partition_key = "{city}", row_key = "all")
)]
struct Clerk {
    department: String,
    id: u32,
    city: String,
}

#[derive(Debug, Clone, TableEntity)]
#[table(
    name = "Staff",
    partition_key = "{department}",
    row_key = "guard_{id:06}",
    list(ByCity, table = "ByCity", partition_key = "{city}", row_key = "all")
)]
struct Guard {
    department: String,
    id: u32,
    city: String,
}

#[tokio::test(start_paused = true)]
async fn types_with_keys_of_their_own_may_share_a_list() {
    let client = Client::memory();
    let (clerks, guards) = (client.table::<Clerk>(), client.table::<Guard>());
    clerks.create().await.unwrap();
    let (department, city) = (String::new(), "Bern".to_owned());
    let clerk = Clerk { department: department.clone(), id: 1, city: city.clone() };
    clerks.insert(&clerk).await.unwrap().wait_for_copies().await.unwrap();
    let guard = Guard { department, id: 2, city };
    guards.insert(&guard).await.unwrap().wait_for_copies().await.unwrap();

    let of_clerks = clerks.keys(Clerk::by_city().city("Bern")).await.unwrap();
    let of_guards = guards.keys(Guard::by_city().city("Bern")).await.unwrap();
    assert_eq!(of_clerks.iter().map(|at| at.row_key()).collect::<Vec<_>>(), ["clerk_000001"]);
    assert_eq!(of_guards.iter().map(|at| at.row_key()).collect::<Vec<_>>(), ["guard_000002"]);
    assert_eq!(clerks.query(Clerk::by_city().city("Bern")).collect().await.unwrap().len(), 1);

    // Neither takes the other's entry for its own that is left over, and mends it away.
    let checked = [clerks.check().await.unwrap().findings, guards.check().await.unwrap().findings];
    assert!(checked.iter().all(Vec::is_empty), "{checked:?}");
}
