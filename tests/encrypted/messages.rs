//! Tests effects of messages on rows whose keys are tokens.

use std::sync::{
    Arc,
    atomic::{AtomicBool, Ordering},
};

use entable::prelude::*;
use serde::{Deserialize, Serialize};

use crate::fixture::client;

#[derive(Debug, Clone, PartialEq, TableEntity)]
#[table(name = "Staff", partition_key = "u_{email:hmac}", row_key = "user")]
struct User {
    #[table(encrypt)]
    email: String,
    visits: i32,
}

#[derive(Debug, Serialize, Deserialize, Message)]
#[table(name = "Welcome", version = 1)]
struct Welcome {
    number: u32,
}

/// The partition of the effect is known when its token is made, and its receipt is there.
#[tokio::test]
async fn an_effect_under_a_token_takes_place_once() {
    let (client, _) = client().await;
    let queue = client.queue("letters");
    queue.send(&Welcome { number: 1 }).await.unwrap();
    let failed = Arc::new(AtomicBool::new(false));
    let worker = client.worker().queue(&queue).on(move |cx, _: Welcome| {
        let failed = failed.clone();
        async move {
            let mut egt = cx.client().table::<User>().transaction();
            egt.insert(&User { email: "a@b".into(), visits: 1 })?;
            let is_first = cx.once(egt).await?;
            assert_ne!(is_first, failed.load(Ordering::SeqCst));
            if failed.swap(true, Ordering::SeqCst) { Ok(()) } else { Err("the worker died".into()) }
        }
    });
    let stats = worker.drain().await.unwrap();
    assert_eq!((stats.applied, stats.retried, stats.poisoned), (1, 1, 0), "{stats:?}");
    let user = client.table::<User>().get(User::primary().email("a@b")).await.unwrap().unwrap();
    assert_eq!(user.visits, 1);
    // The message stays until its receipt can go: it knows where that is.
    let rows = client.dynamic("EntableQueues").query(Keys::partition("letters_00"));
    let rows = rows.collect().await.unwrap();
    assert!(rows[0].str("Body").unwrap().contains("\"Staff\",\"u_"), "{rows:?}");
}
