//! Keeps sessions that are over after an hour: hidden at once, renewed by use, swept by a worker, with a
//! token that comes free for others.
#![allow(clippy::print_stdout, reason = "an example prints what it shows")]

use std::{sync::Arc, time::Duration};

use entable::{
    Clock, SteppedClock, Ticks,
    backend::{Memory, layer::Recorder},
    prelude::*,
};
use time::OffsetDateTime;

/// A session of a user, until some time. Its token is unique across users.
#[derive(Debug, Clone, PartialEq, TableEntity)]
#[table(
    name = "Sessions",
    partition_key = "{user}",
    row_key = "session_{id:06}",
    expires = until,
    index(ByToken, partition_key = "token_{token}", row_key = "token", unique)
)]
struct Session {
    user: String,
    id: u32,
    token: String,
    until: OffsetDateTime,
}

const HOUR: Duration = Duration::from_secs(3600);

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), Error> {
    // A clock that is stepped by hand: hours pass at once.
    let clock = Arc::new(SteppedClock::new(Ticks::UNIX_EPOCH));
    let recorder = Recorder::around(Memory::with_clock(clock.clone()));
    let client = Client::builder().backend(recorder.clone()).clock(clock.clone()).build()?;
    let requests = || recorder.take().len();
    let now = || OffsetDateTime::from(clock.now());
    let session = |user: &str, id, token: &str| Session {
        user: user.into(),
        id,
        token: token.into(),
        until: now() + HOUR,
    };

    let sessions: Table<Session> = client.table();
    sessions.create().await?;
    for id in 0..100 {
        sessions.insert(&session("don", id, &format!("t{id}"))).await?;
    }
    client.wait_for_copies().await;

    // Half an hour later one session is used, which renews it.
    clock.advance(HOUR / 2);
    let renew = |session: &mut Session| {
        session.until = now() + 2 * HOUR;
        Ok(())
    };
    sessions.update(Session::primary().user("don").id(7), renew).await?;

    // After the hour the others are over, although their rows are there.
    clock.advance(HOUR / 2);
    let alive = sessions.query(Session::primary().user("don")).collect().await?;
    assert_eq!(alive.iter().map(|session| session.id).collect::<Vec<_>>(), [7]);
    println!("one of 100 sessions is alive");

    // Another user may have the token of one that is over, and its id is free too.
    sessions.insert(&session("ann", 1, "t1")).await?;
    sessions.insert(&session("don", 2, "t2")).await?;
    let taken = sessions.insert(&session("ann", 2, "t7")).await;
    let is_taken = taken.is_err_and(|error| error.is_unique_violation());
    assert!(is_taken, "the renewed session keeps its token");
    let by_token = sessions.get(Session::by_token().token("t1")).await?;
    assert_eq!(by_token.map(|session| session.user.clone()).as_deref(), Some("ann"));

    // A worker sweeps the hours gone by, where the markers lead.
    client.wait_for_copies().await;
    clock.advance(HOUR + HOUR / 4);
    requests();
    let swept = client.worker().with::<Session>().drain().await?.expired;
    println!("the worker deleted {swept} sessions with their tokens in {} requests", requests());
    // 97 of the first hundred, and the one that took the place of the second.
    assert_eq!(swept, 98);
    assert_eq!(sessions.query(Session::primary().user("don")).count().await?, 1);
    Ok(())
}
