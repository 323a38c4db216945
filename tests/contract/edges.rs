//! Tests sentences of the contract that are easy to miss.

use entable::{Condition, backend::layer::Request, prelude::*};
use time::OffsetDateTime;

use crate::{
    declaring::{Contact, Customer, Employee, Grade, customer, employee},
    store::{TestResult, on_both},
};

#[derive(Debug, Clone, PartialEq, TableEntity)]
#[table(name = "Parts", partition_key = "p_{id:bucket(4)}", row_key = "{score}_{rank:desc}_{id}")]
struct Part {
    score: i16,
    rank: i32,
    id: u32,
}

#[derive(Debug, Clone, PartialEq, TableEntity)]
#[table(name = "Logs", partition_key = "{source}", row_key = "log_{at:%Y%m%d%H}_{number:04}")]
struct Log {
    source: String,
    at: OffsetDateTime,
    number: u16,
}

fn at(text: &str) -> OffsetDateTime {
    text.parse::<entable::Ticks>().unwrap().into()
}

#[tokio::test]
async fn bounds_of_every_kind_select_what_they_say() -> TestResult {
    on_both(async |store| {
        let parts = store.table::<Part>().await;
        let scores = [i16::MIN, -5, -1, 0, 1, 5, i16::MAX];
        let rows = scores
            .iter()
            .flat_map(|score| [-2, 0, 7].map(|rank| Part { score: *score, rank, id: 9 }));
        parts.bulk().insert_all(rows).await?.into_result()?;
        let path = || Part::primary().id(9);
        let scores_of = async |range: Range<Part>| {
            let found = parts.query(range).collect().await?;
            let mut scores: Vec<i16> = found.iter().map(|part| part.score).collect();
            scores.dedup();
            Ok::<_, Error>(scores)
        };
        assert_eq!(scores_of(path().score_range(-5..1)).await?, [-5, -1, 0]);
        assert_eq!(scores_of(path().score_range(-5..=1)).await?, [-5, -1, 0, 1]);
        assert_eq!(scores_of(path().score_range(1..)).await?, [1, 5, i16::MAX]);
        assert_eq!(scores_of(path().score_range(..=-5)).await?, [i16::MIN, -5]);
        assert_eq!(scores_of(path().score_range(..)).await?, scores);
        assert_eq!(scores_of(path().score_range(3..3)).await?, Vec::<i16>::new());
        assert_eq!(scores_of(path().score_range(5..=1)).await?, Vec::<i16>::new());
        let ranks = async |range: Range<Part>| {
            let found = parts.query(range).collect().await?;
            Ok::<_, Error>(found.iter().map(|part| part.rank).collect::<Vec<_>>())
        };
        let zero = || path().score(0);
        assert_eq!(ranks(zero().rank_range(-2..7)).await?, [0, -2]);
        assert_eq!(ranks(zero().rank_range(0..)).await?, [7, 0]);
        assert_eq!(ranks(zero().rank_range(..=0)).await?, [0, -2]);
        let exclusive = (std::ops::Bound::Excluded(-2), std::ops::Bound::Unbounded);
        assert_eq!(ranks(zero().rank_range(exclusive)).await?, [7, 0]);
        Ok(())
    })
    .await
}

#[tokio::test]
async fn a_coarser_part_gives_its_period_and_buckets_fan_out() -> TestResult {
    on_both(async |store| {
        let logs = store.table::<Log>().await;
        let log = |time: &str, number| Log { source: "web".into(), at: at(time), number };
        logs.insert(&log("2014-07-31T18:05:00.5Z", 1)).await?;
        logs.insert(&log("2014-07-31T18:59:59Z", 2)).await?;
        logs.insert(&log("2014-07-31T19:00:00Z", 3)).await?;
        let hour = Log::primary().source("web").at_period(at("2014-07-31T18:30:00Z"));
        let found = logs.query(hour).collect().await?;
        assert_eq!(found.iter().map(|log| log.number).collect::<Vec<_>>(), [1, 2]);
        assert_eq!(found[0].at, at("2014-07-31T18:05:00.5Z"), "the minutes are a property");
        let one = Log::primary().source("web").at(at("2014-07-31T19:00:00Z")).number(3_u16);
        assert_eq!(logs.get(one).await?.unwrap().number, 3);

        let parts = store.table::<Part>().await;
        let rows = (0..40).map(|id| Part { score: 1, rank: 1, id });
        parts.bulk().insert_all(rows).await?.into_result()?;
        let buckets = Part::primary().id_buckets();
        assert_eq!(buckets.len(), 4);
        let found = parts.query_many(buckets).concurrency(4).collect().await?;
        assert_eq!(found.len(), 40);
        Ok(())
    })
    .await
}

#[tokio::test]
async fn conditions_on_fields_that_are_only_in_keys() -> TestResult {
    on_both(async |store| {
        let staff = store.table::<Employee>().await;
        staff.bulk().insert_all((1..=9).map(|id| employee(id, "Jones"))).await?.into_result()?;
        let scan = |condition| staff.query(Employee::scan()).filter(condition);
        assert_eq!(scan(Employee::DEPARTMENT.eq("Sales")).collect().await?.len(), 9);
        assert_eq!(scan(Employee::DEPARTMENT.eq("HR")).collect().await?.len(), 0);
        assert_eq!(scan(Employee::DEPARTMENT.ne("HR")).collect().await?.len(), 9);
        assert_eq!(scan(!Employee::ID.eq(3)).collect().await?.len(), 8);
        assert_eq!(scan(Employee::ID.le(3) | Employee::ID.eq(9)).collect().await?.len(), 4);
        let sales = staff.query(Employee::primary().department("Sales"));
        assert_eq!(
            sales.clone().filter(Employee::DEPARTMENT.eq("Sales")).collect().await?.len(),
            9
        );
        assert_eq!(sales.clone().filter(Employee::DEPARTMENT.eq("HR")).collect().await?.len(), 0);
        let copies = staff.query(Employee::by_email().department("Sales"));
        assert_eq!(copies.filter(Employee::ID.lt(4)).collect().await?.len(), 3);

        let customers = store.table::<Customer>().await;
        let named = customers.query(Customer::by_name().country("DE"));
        let refused = named.filter(Customer::VISITS.gt(1_i64)).select::<NameAndGrade>();
        store.requests();
        let error = refused.collect().await.unwrap_err();
        assert!(error.is_invalid());
        assert_eq!(error.property(), Some("visits"));
        assert!(error.to_string().contains("ByName"), "{error}");
        assert_eq!(store.count(), 0);
        Ok(())
    })
    .await
}

#[tokio::test]
async fn a_partial_copy_gives_back_what_it_is_found_by() -> TestResult {
    on_both(async |store| {
        let customers = store.table::<Customer>().await;
        customers.insert(&customer()).await?;
        let point = Customer::by_name().country("DE").name("ANN").id(7_u64);
        let found = customers.get_as::<NameAndGrade>(point).await?.unwrap();
        assert_eq!(*found, NameAndGrade { name: "Ann".into(), grade: Grade::Senior });
        let all = customers.query(Customer::by_name().country("DE").name_prefix("a"));
        let all = all.filter(Customer::NAME.eq("Ann")).select::<NameAndGrade>();
        assert_eq!(all.collect().await?.len(), 1);
        Ok(())
    })
    .await
}

#[tokio::test]
async fn a_bulk_insert_or_replace_reads_every_entity_once() -> TestResult {
    on_both(async |store| {
        let staff = store.table::<Employee>().await;
        let rows = |age| (1..=120).map(move |id| Employee { age, ..employee(id, "Jones") });
        staff.bulk().insert_all(rows(30)).await?.into_result()?;
        store.requests();
        staff.bulk().insert_or_replace_all(rows(31)).await?.into_result()?;
        let requests = store.requests();
        let reads = requests.iter().filter(|request| request.is_read()).count();
        assert_eq!(reads, 120, "the list does not change and is not read");
        assert_eq!(requests.len() - reads, 4, "33 entities of three rows in each transaction");
        Ok(())
    })
    .await
}

#[derive(Debug, PartialEq, Projection)]
#[table(of = Customer)]
struct NameAndGrade {
    name: String,
    grade: Grade,
}

#[tokio::test]
async fn limits_of_take_and_pages() -> TestResult {
    on_both(async |store| {
        let staff = store.table::<Employee>().await;
        staff.bulk().insert_all((1..=9).map(|id| employee(id, "Jones"))).await?.into_result()?;
        let sales = staff.query(Employee::primary().department("Sales"));
        store.requests();
        assert!(sales.clone().take(0).collect().await?.is_empty());
        assert!(sales.clone().take(0).first().await?.is_none());
        assert_eq!(store.count(), 0);
        assert_eq!(sales.clone().take(3).first().await?.unwrap().id, 1);
        assert_eq!(sales.clone().take(3).page_size(2).collect().await?.len(), 3);
        let page = sales.clone().take(5).page_size(4).page(None).await?;
        let page = sales.clone().take(5).page_size(4).page(page.next).await?;
        assert_eq!((page.items.len(), page.next.is_none()), (1, true));
        let page = sales.clone().take(5).page_size(4).page(None).await?;
        let resized = sales.clone().take(5).page_size(2).page(page.next.clone()).await?;
        assert_eq!(resized.items[0].id, 5, "the size of a page is not part of the query");
        let other = sales.clone().filter(Employee::AGE.gt(1)).take(5).page(page.next).await;
        assert!(other.unwrap_err().is_invalid_cursor());
        let list = staff.query(Employee::by_last_name().department("Sales").last_name("Jones"));
        assert_eq!(list.clone().take(4).collect().await?.len(), 4);
        let contacts = list.filter(Employee::ID.gt(5)).select::<Contact>().collect().await?;
        assert_eq!(contacts.len(), 4);
        Ok(())
    })
    .await
}

#[tokio::test]
async fn a_copy_that_is_behind_is_not_written() -> TestResult {
    on_both(async |store| {
        let staff = store.table::<Employee>().await;
        staff.insert(&employee(1, "Jones")).await?;
        let path = || Employee::by_email().department("Sales").email("jones1@contoso.com");
        let mut stale = staff.get(path()).await?.unwrap();
        assert_eq!(stale.index(), Some("ByEmail"));
        let point = Employee::primary().department("Sales").id(1);
        staff.patch_at(point.clone(), Employee::patch().age(50)).await?;
        stale.first_name = "Dan".into();
        let error = staff.replace(&stale).await.unwrap_err();
        assert!(error.is_precondition_failed());
        assert_eq!(error.status(), Some(412));
        assert!(staff.delete(&stale).await.unwrap_err().is_precondition_failed());
        let mut egt = staff.transaction();
        egt.delete(&stale)?;
        let error = egt.commit().await.unwrap_err();
        assert!(error.is_precondition_failed() && error.failed_index() == Some(0));
        let fresh = staff.get(path()).await?.unwrap();
        store.requests();
        staff.delete(&fresh).await?;
        let requests = store.requests();
        assert!(requests[0].is_read() && requests.last().is_some_and(Request::is_apply));
        assert!(store.rows("Staff", "Sales").await.is_empty());
        Ok(())
    })
    .await
}

#[tokio::test]
async fn verbs_that_read_first_repeat_when_another_writer_was_first() -> TestResult {
    on_both(async |store| {
        let staff = store.table::<Employee>().await;
        let point = || Employee::primary().department("Sales").id(1);
        staff.insert(&employee(1, "Jones")).await?;
        let race = |age| {
            let other = store.other.table::<Employee>();
            store.before_next_write(async move {
                other
                    .update(point(), |e| {
                        e.age = age;
                        Ok(())
                    })
                    .await
                    .unwrap();
            });
        };
        race(50);
        staff.patch_at(point(), Employee::patch().email("new@x")).await?;
        let read = staff.get(point()).await?.unwrap();
        assert_eq!((read.age, read.email.as_str()), (50, "new@x"), "nothing is lost");
        race(51);
        staff
            .update(point(), |e| {
                e.last_name = "Smith".into();
                Ok(())
            })
            .await?;
        let read = staff.get(point()).await?.unwrap();
        assert_eq!((read.age, read.last_name.as_str()), (51, "Smith"));
        race(52);
        staff.insert_or_replace(&employee(1, "Jones")).await?;
        race(53);
        staff.insert_or_merge(&Employee { salary: None, ..employee(1, "Jones") }).await?;
        race(54);
        staff.replace_any(&employee(1, "Jones")).await?;
        race(55);
        assert!(staff.delete_at(point()).await?);
        assert!(store.rows("Staff", "Sales").await.is_empty());
        Ok(())
    })
    .await
}

#[tokio::test]
async fn unknown_properties_are_kept_where_there_is_a_place_for_them() -> TestResult {
    on_both(async |store| {
        let customers = store.table::<Customer>().await;
        let raw = store.client.dynamic("Customers");
        let entity = DynamicEntity::new("DE", "customer_00000000000000000007")
            .with("EntityType", "Client")
            .with("name", "Ann")
            .with("grade", "Junior")
            .with("homeCity", "Berlin")
            .with("tags", "[]")
            .with("badge", "gold");
        raw.insert(&entity).await?;
        let mut ann = customers.get(Customer::primary().country("DE").id(7_u64)).await?.unwrap();
        assert_eq!(ann.visits, 0, "a default");
        assert_eq!(ann.rest.get("badge"), Some(&Value::from("gold")));
        ann.visits = 1;
        customers.replace(&ann).await?;
        let kept = raw.get("DE", "customer_00000000000000000007").await?.unwrap();
        assert_eq!(kept.str("badge")?, "gold");
        Ok(())
    })
    .await
}

#[tokio::test]
async fn transactions_of_nothing_and_of_copies_that_meet() -> TestResult {
    on_both(async |store| {
        let staff = store.table::<Employee>().await;
        assert!(staff.transaction().commit().await?.is_empty());
        assert_eq!(store.count(), 0);
        let mut egt = staff.transaction();
        egt.insert(&employee(1, "Jones"))?.insert(&employee(2, "Jones"))?;
        let done = egt.commit().await?;
        assert_eq!(done.len(), 2);
        let mut one = staff.get(Employee::primary().department("Sales").id(1)).await?.unwrap();
        let mut two = staff.get(Employee::primary().department("Sales").id(2)).await?.unwrap();
        std::mem::swap(&mut one.email, &mut two.email);
        let mut egt = staff.transaction();
        egt.replace(&one)?.replace(&two)?;
        egt.commit().await?;
        let swapped = Employee::by_email().department("Sales").email("jones1@contoso.com");
        assert_eq!(staff.get(swapped).await?.unwrap().id, 2);
        let same = Employee { email: one.email.clone(), ..employee(3, "Jones") };
        let mut egt = staff.transaction();
        egt.insert(&employee(4, "Jones"))?.insert(&same)?;
        let error = egt.commit().await.unwrap_err();
        assert!(error.is_unique_violation() && error.failed_index() == Some(1), "{error}");
        let report = staff
            .bulk()
            .insert_all([
                employee(5, "Abel"),
                same.clone(),
                employee(6, "Abel"),
                employee(5, "Abel"),
            ])
            .await?;
        let failed: Vec<usize> = report.failed.iter().map(|failure| failure.index).collect();
        assert_eq!((report.done, failed), (2, vec![1, 3]), "{report:?}");
        assert!(report.failed[0].error.is_unique_violation());
        assert!(report.failed[1].error.is_conflict());
        Ok(())
    })
    .await
}

#[tokio::test]
async fn text_in_keys_with_any_characters() -> TestResult {
    on_both(async |store| {
        let staff = store.table::<Employee>().await;
        let names = [
            "O'Brien",
            "a/b\\c#d?e",
            "~",
            "%41",
            "\u{7f}\u{80}",
            "\u{1f600}",
            "",
            " ",
            "a_b",
            "M\u{fc}ller",
        ];
        for (id, name) in (1..).zip(names) {
            let email = format!("{name}@X.com");
            staff.insert(&Employee { last_name: name.into(), email, ..employee(id, "x") }).await?;
        }
        for (id, name) in (1..).zip(names) {
            let email = Employee::by_email().department("Sales").email(format!("{name}@x.COM"));
            let found = staff.get(email).await?.unwrap_or_else(|| panic!("{name}"));
            assert_eq!((found.id, found.last_name.as_str()), (id, name));
            let list = Employee::by_last_name().department("Sales").last_name(name);
            assert_eq!(staff.keys(list).await?.len(), 1, "{name}");
            let prefix = Employee::by_email().department("Sales").email_prefix(name);
            let found = staff.query(prefix).collect().await?;
            assert!(found.iter().any(|e| e.id == id), "{name}");
            assert!(found.iter().all(|e| e.email.to_lowercase().starts_with(&name.to_lowercase())));
        }
        Ok(())
    })
    .await
}

#[tokio::test]
async fn dynamic_rows_are_written_under_conditions() -> TestResult {
    on_both(async |store| {
        store.client.create_table("Any").await?;
        let any = store.client.dynamic("Any");
        let mut row = any.insert(&DynamicEntity::new("p", "r").with("Count", 153)).await?;
        assert!([201, 204].contains(&row.status()));
        let stale = row.clone();
        let next = row.i32("Count")? + 1;
        row.set("Count", next);
        let row = any.patch(&row).await?;
        assert_eq!(any.get("p", "r").await?.unwrap().i32("Count")?, 154);
        let mut late = stale.clone();
        late.set("Count", 0);
        assert!(any.patch(&late).await.unwrap_err().is_precondition_failed());
        assert!(any.delete("p", "r", Condition::Match(stale.etag())).await.is_err());
        any.delete("p", "r", Condition::Match(row.etag())).await?;
        Ok(())
    })
    .await
}

#[test]
fn dates_are_parts_of_keys() {
    let point = Log::primary().source("web").at(at("2014-07-31T18:05:00Z")).number(1_u16);
    assert_eq!(point.row_key(), "log_2014073118_0001");
}
