//! Writers at the same time.

use crate::setup::{Setup, bare, row, version};
use entable_core::{
    batch::{Condition, Operation, Written},
    error::Result,
};

const WRITERS: usize = 16;

/// Carries the operations out at the same time.
async fn at_once(s: &Setup, operations: impl Iterator<Item = Operation>) -> Vec<Result<Written>> {
    let tasks: Vec<_> = operations
        .map(|operation| {
            let s = s.clone();
            tokio::spawn(async move { s.one(operation).await })
        })
        .collect();
    let mut answers = Vec::new();
    for task in tasks {
        answers.push(task.await.expect("the task ends"));
    }
    answers
}

fn numbered(at: usize) -> entable_core::row::Row {
    row("p", "r", &[("N", i32::try_from(at).unwrap_or(0).into())])
}

/// 3: of writers under one ETag exactly one wins; the others see 412.
pub async fn one_winner_for_a_version(s: &Setup) {
    for _ in 0..10 {
        let write = Operation::insert_or_replace(bare("p", "r"));
        let own = s.one(write).await.expect("written").etag.expect("an ETag");
        let writes = (0..WRITERS).map(|at| Operation::replace(numbered(at), version(&own)));
        let answers = at_once(s, writes).await;
        assert_eq!(answers.iter().filter(|answer| answer.is_ok()).count(), 1);
        assert!(answers.iter().flat_map(|a| a.as_ref().err()).all(|e| e.is_precondition_failed()));
    }
}

/// 3: of writers that insert one entity exactly one wins; the others see 409.
pub async fn one_winner_for_an_insert(s: &Setup) {
    let answers = at_once(s, (0..WRITERS).map(|at| Operation::insert(numbered(at)))).await;
    let winner = answers.iter().position(Result::is_ok).expect("one wins");
    assert!(answers.iter().flat_map(|a| a.as_ref().err()).all(entable_core::Error::is_conflict));
    assert_eq!(answers.iter().filter(|answer| answer.is_ok()).count(), 1);
    s.finds(&format!("N eq {winner}"), &["r"]).await;
}

/// 3: merges of different properties at the same time all stay.
pub async fn merges_add_up(s: &Setup) {
    s.given("p", "r", &[]).await;
    let names: Vec<String> = (0..WRITERS).map(|at| format!("P{at}")).collect();
    let merges = names
        .iter()
        .map(|name| Operation::merge(row("p", "r", &[(name, 1.into())]), Condition::Any));
    assert!(at_once(s, merges).await.iter().all(Result::is_ok));
    assert_eq!(s.properties("p", "r").await.len(), WRITERS);
}

/// 3: a counter that is read and replaced under its ETag loses no increment.
pub async fn counter_loses_nothing(s: &Setup) {
    s.given("p", "r", &[("N", 0.into())]).await;
    let tasks: Vec<_> = (0..4).map(|_| tokio::spawn(count(s.clone(), 25))).collect();
    for task in tasks {
        task.await.expect("the task ends");
    }
    s.finds("N eq 100", &["r"]).await;
}

async fn count(s: Setup, mut times: usize) {
    while times > 0 {
        let current = s.get("p", "r").await.expect("the row is there");
        let n = current.get("N").ok().flatten().map(|value| value.to_value());
        let n = n.and_then(|value| value.as_i32()).expect("a count");
        let own = current.etag().expect("an ETag");
        let write = Operation::replace(row("p", "r", &[("N", (n + 1).into())]), version(&own));
        match s.one(write).await {
            Ok(_) => times -= 1,
            Err(error) => assert!(error.is_precondition_failed(), "{error}"),
        }
    }
}

/// 2.6: writes at the same time never share an ETag.
pub async fn versions_of_concurrent_writes(s: &Setup) {
    let writes = (0..WRITERS).map(|at| Operation::insert_or_replace(numbered(at)));
    let answers = at_once(s, writes).await;
    let versions: std::collections::HashSet<_> =
        answers.into_iter().map(|answer| answer.expect("written").etag).collect();
    assert_eq!(versions.len(), WRITERS);
}
