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
