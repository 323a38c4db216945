//! Tests lost answers and crashes at single requests.

use entable::{
    Error, ErrorKind, OutboxOptions,
    backend::layer::{InjectedFault, RequestKind},
};

use crate::fixture::{World, employee};

fn lost() -> Error {
    Error::new(ErrorKind::Backend, "connection lost")
}

#[tokio::test]
async fn a_registration_whose_answer_was_lost_is_made_again() {
    for request in 0..5 {
        for carried_out in [false, true] {
            let world = World::new().await;
            let trouble = if carried_out {
                InjectedFault::After(lost())
            } else {
                InjectedFault::Before(lost())
            };
            world.fault.inject(RequestKind::Any, request, trouble);
            let inserted = world.staff.insert(&employee(1)).await;
            world.client.wait_for_copies().await;
            let worker = world.client.worker();
            worker.drain().await.unwrap();
            let is_there = world.rows("Staff", "Sales").await.contains(&"empid_000001".to_owned());
            assert!(is_there || inserted.is_err());
            let copies = world.rows("Staff", "email_jones1@contoso.com").await.len();
            assert_eq!(copies, usize::from(is_there), "request {request}, {carried_out}");
            world.later(OutboxOptions::WRITE_DEADLINE);
            worker.drain().await.unwrap();
            worker.drain().await.unwrap();
            assert!(world.open().await.is_empty());
            assert_eq!(world.markers().await, 0);
        }
    }
}

#[tokio::test]
async fn a_closed_registration_is_no_error() {
    let world = World::new().await;
    let other = world.other_client();
    world.staff.insert(&employee(1)).await.unwrap().wait_for_copies().await.unwrap();
    world.later(OutboxOptions::CLOSE_IDLE_AFTER);
    other.worker().drain().await.unwrap();
    assert_eq!(world.markers().await, 0);
    world.staff.insert(&employee(2)).await.unwrap().wait_for_copies().await.unwrap();
    assert_eq!(world.markers().await, 1);
}
