//! Tests a bulk write of a wide entity where another writer changed a part other than the first.

use std::sync::Arc;

use entable::{Operation, ServiceCode, Verb, backend::Memory, prelude::*};

use crate::hooked::Hooked;

#[derive(Debug, Clone, PartialEq, TableEntity)]
#[table(name = "Carts", partition_key = "{user}", row_key = "w_{id:06}", wide)]
struct Cart {
    user: String,
    id: u32,
    seat: u32,
    #[table(part = 2)]
    note: String,
}

fn don() -> impl Path<Entity = Cart, View: FullView> + Clone {
    Cart::primary().user("don")
}

#[tokio::test]
async fn an_update_that_lost_a_race_for_part_2_reads_the_entity_again() {
    let memory = Arc::new(Memory::new());
    let carts = Client::builder().backend(memory.clone()).build().unwrap().table::<Cart>();
    carts.create().await.unwrap();
    carts.insert(&Cart { user: "don".into(), id: 1, seat: 1, note: "a".into() }).await.unwrap();
    let is_replace = |one: &Operation| one.verb() == Verb::Replace;
    let code = ServiceCode::UpdateConditionNotSatisfied;
    // The second operation of the transaction is that on part 2.
    let failure = Error::service(code, "another writer was faster").at_operation(1);
    let store = Hooked::before(memory, is_replace, async {}).failing(failure);
    let carts = Client::builder().backend(store).build().unwrap().table::<Cart>();
    let change = |cart: &mut Cart| {
        cart.note = "b".into();
        Ok(())
    };
    let report = carts.bulk().update_all(carts.query(don()), change).await.unwrap();
    assert_eq!((report.done, report.failed.len()), (1, 0), "{report:?}");
    assert_eq!(carts.query(don()).collect().await.unwrap()[0].note, "b");
}

/// An entity is not gone as long as its first part is there.
#[tokio::test]
async fn a_deletion_that_misses_part_2_is_not_done() {
    for (lost, done) in [("w_000001_02", 1), ("w_000001_01", 2)] {
        let memory = Arc::new(Memory::new());
        let client = Client::builder().backend(memory.clone()).build().unwrap();
        let carts = client.table::<Cart>();
        carts.create().await.unwrap();
        for id in 1..3 {
            carts
                .insert(&Cart { user: "don".into(), id, seat: 1, note: "a".into() })
                .await
                .unwrap();
        }
        // Another program deletes a part after the query has read it.
        let rows = client.dynamic("Carts");
        let is_deletion = |one: &Operation| one.verb() == Verb::Delete;
        let store = Hooked::before(memory, is_deletion, async move {
            assert!(rows.delete_at("don", lost).await.unwrap());
        });
        let hooked = Client::builder().backend(store).build().unwrap().table::<Cart>();
        let report = hooked.query(don()).delete_all().await.unwrap();
        assert_eq!((report.done, report.failed.len() as u64), (done, 2 - done), "{report:?}");
        let names_part = |error: &Error| error.to_string().contains(lost);
        assert!(
            report.failed.iter().all(|failure| failure.index == 0 && names_part(&failure.error))
        );
        let rows = client.dynamic("Carts").query(Keys::partition("don")).collect().await.unwrap();
        assert_eq!(rows.len(), 1, "the other part of the first entity");
    }
}
