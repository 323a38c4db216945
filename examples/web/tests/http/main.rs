//! Sends requests to the service on a free port, over a store with injected faults.
#![allow(
    missing_docs,
    clippy::unwrap_used,
    clippy::indexing_slicing,
    reason = "a test that stops has found something"
)]

mod client;

use std::time::Duration;

use client::{Service, body, path, send};
use entable::{
    Client, Error, ErrorKind, ServiceCode,
    backend::{
        Memory,
        layer::{FaultInjector, InjectedFault, RequestKind},
    },
};
use entable_example_web::serve::serve;
use tokio::{net::TcpListener, sync::oneshot};

#[tokio::test]
async fn an_employee_is_added_read_changed_and_deleted() {
    let service = Service::start().await;
    assert_eq!(service.send(&format!("GET {}", path(1)), &[], "").await.status, 404);
    let first = service.add(1).await;
    assert!(first.starts_with('"'), "a strong ETag: {first}");
    let read = service.send(&format!("GET {}", path(1)), &[], "").await;
    assert_eq!((read.status, read.etag()), (200, &*first));
    assert_eq!(read.body["email"], "e1@contoso.com");
    let known = service.send(&format!("GET {}", path(1)), &[("if-none-match", &first)], "").await;
    assert_eq!((known.status, known.etag()), (304, &*first));

    let put = format!("PUT {}", path(1));
    let changed = service.send(&put, &[("if-match", &first)], &body("don@contoso.com")).await;
    assert_eq!((changed.status, &changed.body["email"]), (200, &"don@contoso.com".into()));
    assert_ne!(changed.etag(), first);
    let known = service.send(&format!("GET {}", path(1)), &[("if-none-match", &first)], "").await;
    assert_eq!(known.status, 200);

    let delete = format!("DELETE {}", path(1));
    assert_eq!(service.send(&delete, &[("if-match", &first)], "").await.status, 412);
    let gone = service.send(&delete, &[("if-match", changed.etag())], "").await;
    assert_eq!(gone.status, 204);
    assert_eq!(service.send(&delete, &[("if-match", changed.etag())], "").await.status, 404);
}

#[tokio::test]
async fn a_write_under_an_old_version_is_refused() {
    let service = Service::start().await;
    let first = service.add(1).await;
    let put = format!("PUT {}", path(1));
    let text = body("don@contoso.com");
    assert_eq!(service.send(&put, &[("if-match", &first)], &text).await.status, 200);
    let refused = service.send(&put, &[("if-match", &first)], &body("late@contoso.com")).await;
    assert_eq!(refused.status, 412);
    let read = service.send(&format!("GET {}", path(1)), &[], "").await;
    assert_eq!(read.body["email"], "don@contoso.com");
    // A proxy may have made the ETag weak.
    let weak = format!("W/{}", read.etag());
    assert_eq!(service.send(&put, &[("if-match", &weak)], &text).await.status, 200);
    for headers in [[("if-match", "x")], [("if-match", "\"a\", \"b\"")], [("if-match", "*")]] {
        assert_eq!(service.send(&put, &headers, &text).await.status, 400, "{headers:?}");
    }
    assert_eq!(service.send(&put, &[], &text).await.status, 428, "no condition");
}

#[tokio::test]
async fn what_exists_is_a_conflict() {
    let service = Service::start().await;
    service.add(1).await;
    let new = [("if-none-match", "*")];
    let twice = service.send(&format!("PUT {}", path(1)), &new, &body("x@contoso.com")).await;
    assert_eq!((twice.status, &twice.body["error"]), (409, &"the employee exists".into()));
    let taken = service.send(&format!("PUT {}", path(2)), &new, &body("E1@contoso.com")).await;
    assert_eq!((taken.status, &taken.body["error"]), (409, &"the e-mail is taken".into()));
    assert_eq!(service.send(&format!("GET {}", path(2)), &[], "").await.status, 404);
}

#[tokio::test]
async fn a_list_comes_page_by_page() {
    let service = Service::start().await;
    for id in 0..5 {
        service.add(id).await;
    }
    let list = "/departments/Sales/employees?size=2";
    let (mut seen, mut next) = (Vec::new(), String::new());
    let mut pages = 0;
    loop {
        let page = service.send(&format!("GET {list}{next}"), &[], "").await;
        assert_eq!(page.status, 200, "{page:?}");
        let employees = page.body["employees"].as_array().unwrap();
        seen.extend(employees.iter().map(|one| one["id"].as_u64().unwrap()));
        pages += 1;
        let Some(cursor) = page.body["next"].as_str() else { break };
        next = format!("&after={cursor}");
    }
    assert_eq!((seen, pages), (vec![0, 1, 2, 3, 4], 3));
    let wrong = service.send(&format!("GET {list}&after=nonsense"), &[], "").await;
    assert_eq!(wrong.status, 400);
    let other = format!("GET /departments/Other/employees?size=2{next}");
    assert_eq!(service.send(&other, &[], "").await.status, 400, "a cursor belongs to its list");
}

#[tokio::test]
async fn faults_of_the_store_have_their_statuses() {
    let service = Service::start().await;
    service.add(1).await;
    let busy = Error::service(ServiceCode::ServerBusy, "busy");
    let lost = Error::new(ErrorKind::Backend, "the key of table Staff is wrong");
    for (fault, status, wait) in [
        (busy.clone().with_retry_after(Duration::from_millis(2_300)), 429, Some("3")),
        (busy, 429, Some("1")),
        (lost, 500, None),
    ] {
        service.fault.inject(RequestKind::Read, 0, InjectedFault::Before(fault));
        let answer = service.send(&format!("GET {}", path(1)), &[], "").await;
        assert_eq!((answer.status, answer.header("retry-after")), (status, wait));
        assert!(!answer.body.to_string().contains("Staff"), "{answer:?}");
    }
    assert_eq!(service.fault.pending(), 0);
}

/// Time is paused: the request in flight would take an hour.
#[tokio::test(start_paused = true)]
async fn a_stop_waits_for_requests_in_flight() {
    let fault = FaultInjector::around(Memory::new());
    let client = Client::builder().backend(fault.clone()).build().unwrap();
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    let (stop, stopped) = oneshot::channel::<()>();
    let serving = tokio::spawn(serve(listener, client, async { drop(stopped.await) }));
    let new = [("if-none-match", "*")];
    let added = send(address, &format!("PUT {}", path(1)), &new, &body("a@contoso.com")).await;
    assert_eq!(added.status, 201);

    let hour = Duration::from_secs(3_600);
    fault.inject(RequestKind::Read, 0, InjectedFault::Delay(hour));
    let asking =
        tokio::spawn(async move { send(address, &format!("GET {}", path(1)), &[], "").await });
    while fault.pending() > 0 {
        tokio::task::yield_now().await;
    }
    stop.send(()).unwrap();
    let begun = tokio::time::Instant::now();
    serving.await.unwrap().unwrap();
    assert!(begun.elapsed() >= hour, "the server ended before its last request");
    assert_eq!(asking.await.unwrap().status, 200);
    assert!(tokio::net::TcpStream::connect(address).await.is_err(), "nobody listens");
}
