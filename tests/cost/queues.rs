//! Counts the requests of queues in tables, for their section of `docs/costs.md`.

use std::time::Duration;

use entable::{
    Client, Queue,
    backend::{
        Memory,
        layer::{Recorder, Request},
    },
};

const MINUTE: Duration = Duration::from_secs(60);

/// Requests that read, requests that write, operations in the latter.
fn cost(requests: &[Request]) -> (usize, usize, usize) {
    let writes = requests.iter().filter(|request| request.is_apply()).count();
    let operations = requests.iter().map(Request::operations).sum();
    (requests.len() - writes, writes, operations)
}

/// Returns the requests of each step, after asserting that they are the least.
pub(crate) async fn section() -> String {
    let recorder = Recorder::around(Memory::new());
    let client = Client::builder().backend(recorder.clone()).build().unwrap();
    let queue = client.table_queue("letters");
    queue.send("first", Duration::ZERO).await.unwrap();
    let first = queue.receive(1, MINUTE).await.unwrap();
    queue.delete(&first[0]).await.unwrap();
    recorder.clear();
    let mut text = String::from(
        "\n## Queues in tables\n\n\
         Requests for one [shard](glossary.md#shard). Each client also reads the store's time once, with one more read. On\n\
         Azure Storage queues each step is one request, except that putting a message aside or back takes three.\n\n\
         | step | reads | writes | operations |\n|---|---|---|---|\n",
    );
    let mut record = |step: &str, least: (usize, usize, usize)| {
        let taken = cost(&recorder.take());
        assert_eq!(taken, least, "{step}");
        text.push_str(&format!("| {step} | {} | {} | {} |\n", taken.0, taken.1, taken.2));
    };
    for _ in 0..33 {
        queue.send("a", Duration::ZERO).await.unwrap();
    }
    record("send, 33 messages", (0, 33, 33));
    let all = queue.receive(32, MINUTE).await.unwrap();
    record("receive 32", (1, 1, 64));
    let mut received = queue.receive(32, MINUTE).await.unwrap();
    record("receive 1", (1, 1, 2));
    assert!(queue.receive(32, MINUTE).await.unwrap().is_empty());
    record("receive where all are hidden", (1, 0, 0));
    queue.extend(&mut received[0], MINUTE, None).await.unwrap();
    record("extend", (0, 1, 2));
    queue.delete(&received[0]).await.unwrap();
    record("delete", (0, 1, 1));
    queue.poison(&all[0], "why").await.unwrap();
    record("put aside", (0, 1, 2));
    let poison = queue.poisoned(10).await.unwrap();
    record("list what was put aside", (1, 0, 0));
    queue.requeue(&poison[0]).await.unwrap();
    record("put back", (0, 1, 2));
    text
}
