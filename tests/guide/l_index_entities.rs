//! L: index entities in the partition of the entities.

use entable::{
    ErrorKind, Verb,
    backend::layer::{InjectedFault, Request, RequestKind},
    prelude::*,
};

use crate::store::{Store, TestResult, on_both};

/// An employee with a list and nothing else.
#[derive(Debug, Clone, PartialEq, TableEntity)]
#[table(
    name = "Staff",
    partition_key = "{department}",
    row_key = "empid_{id:06}",
    list(ByLastName, row_key = "lastname_{last_name}")
)]
struct Clerk {
    department: String,
    id: u32,
    last_name: String,
    age: i32,
}

fn clerk(id: u32, last_name: &str) -> Clerk {
    Clerk { department: "Sales".into(), id, last_name: last_name.into(), age: 34 }
}

async fn ids(staff: &Table<Clerk>, last_name: &str) -> Result<Vec<String>, Error> {
    let list = Clerk::by_last_name().department("Sales").last_name(last_name);
    let points = staff.keys(list).await?;
    Ok(points.iter().map(|point| point.row_key().to_owned()).collect())
}

fn is_write(request: &Request) -> bool {
    request.is_apply()
}

#[tokio::test]
async fn l01_a_search_on_a_value_that_is_not_unique() -> TestResult {
    on_both(async |store| {
        let staff = store.table::<Clerk>().await;
        for (id, name) in [(152, "Jones"), (7, "Smith"), (30, "Jones")] {
            staff.insert(&clerk(id, name)).await?;
        }
        assert_eq!(ids(&staff, "Jones").await?, ["empid_000152", "empid_000030"]);
        assert_eq!(ids(&staff, "Nobody").await?, Vec::<String>::new());
        Ok(())
    })
    .await
}

#[tokio::test]
async fn l02_ids_alone_or_the_entities() -> TestResult {
    on_both(async |store| {
        let staff = store.table::<Clerk>().await;
        for id in [152, 7] {
            staff.insert(&clerk(id, "Jones")).await?;
        }
        let list = || Clerk::by_last_name().department("Sales").last_name("Jones");
        let points: Vec<Point<Clerk>> = staff.keys(list()).await?;
        let entities: Vec<Clerk> =
            staff.get_many(points).await?.into_iter().flatten().map(Stored::into_inner).collect();
        assert_eq!(entities, [clerk(152, "Jones"), clerk(7, "Jones")]);
        let found = staff.query(list()).collect().await?;
        assert_eq!(found.iter().map(|e| e.id).collect::<Vec<_>>(), [152, 7]);
        Ok(())
    })
    .await
}

#[tokio::test]
async fn l04_the_index_entity_is_in_the_departments_partition() -> TestResult {
    on_both(async |store| {
        let staff = store.table::<Clerk>().await;
        staff.insert(&clerk(152, "Jones")).await?;
        staff.insert(&clerk(30, "Jones")).await?;
        assert_eq!(
            store.row_keys("Staff", "Sales").await,
            ["empid_000030", "empid_000152", "lastname_Jones"]
        );
        let list = store.client.dynamic("Staff").get("Sales", "lastname_Jones").await?.unwrap();
        let texts: Vec<&str> = list
            .properties()
            .iter()
            .filter(|(name, _)| *name != "EntityType")
            .filter_map(|(_, value)| value.as_str())
            .collect();
        assert_eq!(texts, [r#"["empid_000152","empid_000030"]"#]);
        Ok(())
    })
    .await
}

#[tokio::test]
async fn l05_adding_starts_again_when_another_writer_was_first() -> TestResult {
    on_both(async |store| {
        let staff = store.table::<Clerk>().await;
        staff.insert(&clerk(1, "Jones")).await?;
        store.requests();
        staff.insert(&clerk(2, "Jones")).await?;
        let requests = store.requests();
        assert_eq!(requests[0].to_string(), "read Staff (Sales, lastname_Jones)");
        assert_eq!(requests[1].verbs(), [Verb::Insert, Verb::Replace]);
        assert_eq!(requests.len(), 2);

        let other = store.other.table::<Clerk>();
        store.before_next_write(async move {
            other.insert(&clerk(153, "Jones")).await.unwrap();
        });
        staff.insert(&clerk(152, "Jones")).await?;
        let shape: Vec<bool> = store.requests().iter().map(is_write).collect();
        assert_eq!(shape, [false, true, false, true], "read, 412, read, written");
        let jones = ids(&staff, "Jones").await?;
        assert_eq!(jones, ["empid_000001", "empid_000002", "empid_000153", "empid_000152"]);
        Ok(())
    })
    .await
}

#[tokio::test]
async fn l06_the_first_of_a_name_inserts_the_index_entity() -> TestResult {
    on_both(async |store| {
        let staff = store.table::<Clerk>().await;
        staff.insert(&clerk(1, "Jones")).await?;
        let requests = store.requests();
        assert_eq!(requests[1].verbs(), [Verb::Insert, Verb::Insert]);
        let other = store.other.table::<Clerk>();
        store.before_next_write(async move {
            other.insert(&clerk(3, "Smith")).await.unwrap();
        });
        staff.insert(&clerk(2, "Smith")).await?;
        let shape: Vec<bool> = store.requests().iter().map(is_write).collect();
        assert_eq!(shape, [false, true, false, true], "the race is lost once");
        assert_eq!(ids(&staff, "Smith").await?, ["empid_000003", "empid_000002"]);
        Ok(())
    })
    .await
}

#[tokio::test]
async fn l07_deleting_takes_the_id_out_and_the_empty_list_away() -> TestResult {
    on_both(async |store| {
        let staff = store.table::<Clerk>().await;
        let one = staff.insert(&clerk(1, "Jones")).await?;
        let two = staff.insert(&clerk(2, "Jones")).await?;
        store.requests();
        staff.delete(&one).await?;
        let requests = store.requests();
        assert_eq!(requests[1].verbs(), [Verb::Delete, Verb::Replace]);
        assert_eq!(ids(&staff, "Jones").await?, ["empid_000002"]);
        let other = store.other.table::<Clerk>();
        store.before_next_write(async move {
            other.insert(&clerk(3, "Jones")).await.unwrap();
        });
        staff.delete(&two).await?;
        assert_eq!(ids(&staff, "Jones").await?, ["empid_000003"], "nothing is lost in between");
        staff.delete_at(Clerk::primary().department("Sales").id(3)).await?;
        assert!(store.rows("Staff", "Sales").await.is_empty());
        Ok(())
    })
    .await
}

async fn state(store: &Store) -> Vec<(String, String)> {
    let rows = store.rows("Staff", "Sales").await;
    rows.iter().map(|row| (Stored::row_key(row).to_owned(), row.etag().to_string())).collect()
}

#[tokio::test]
async fn l08_a_changed_name_is_three_operations_under_three_versions() -> TestResult {
    on_both(async |store| {
        let staff = store.table::<Clerk>().await;
        staff.insert(&clerk(1, "Jones")).await?;
        staff.insert(&clerk(2, "Jones")).await?;
        staff.insert(&clerk(3, "Smith")).await?;
        let read = async |id: u32| {
            let point = Clerk::primary().department("Sales").id(id);
            Ok::<_, Error>(staff.get(point).await?.unwrap())
        };
        let mut one = read(1).await?;
        one.last_name = "Smith".into();
        store.requests();
        staff.replace(&one).await?;
        let requests = store.requests();
        let (reads, writes): (Vec<_>, Vec<_>) = requests.iter().partition(|r| r.is_read());
        assert_eq!((reads.len(), writes.len()), (2, 1), "{requests:?}");
        assert_eq!(writes[0].verbs(), [Verb::Replace; 3]);
        assert_eq!(ids(&staff, "Jones").await?, ["empid_000002"]);
        assert_eq!(ids(&staff, "Smith").await?, ["empid_000003", "empid_000001"]);

        // A change of either list in between is seen, and nothing of it lost.
        for (other_id, other_name) in [(4, "Jones"), (5, "Smith")] {
            let mut two = read(2).await?;
            two.last_name = if two.last_name == "Jones" { "Smith" } else { "Jones" }.into();
            let other = store.other.table::<Clerk>();
            store.before_next_write(async move {
                other.insert(&clerk(other_id, other_name)).await.unwrap();
            });
            staff.replace(&two).await?;
        }
        let sorted = async |name| {
            let mut ids = ids(&staff, name).await?;
            ids.sort();
            Ok::<_, Error>(ids)
        };
        assert_eq!(sorted("Jones").await?, ["empid_000002", "empid_000004"]);
        assert_eq!(sorted("Smith").await?, ["empid_000001", "empid_000003", "empid_000005"]);

        // A change of the employee in between is the caller's to know.
        let mut stale = read(2).await?;
        stale.last_name = "Smith".into();
        let other = store.other.table::<Clerk>();
        let point = Clerk::primary().department("Sales").id(2);
        store.before_next_write(async move {
            other.patch_at(point, Clerk::patch().age(99)).await.unwrap();
        });
        assert!(staff.replace(&stale).await.unwrap_err().is_precondition_failed());
        let before = state(&store).await;
        let mut failing = read(2).await?;
        failing.last_name = "Smith".into();
        let lost = Error::new(ErrorKind::Backend, "connection lost");
        store.fault.inject(RequestKind::Apply, 0, InjectedFault::Before(lost));
        assert!(staff.replace(&failing).await.is_err());
        assert_eq!(state(&store).await, before);
        Ok(())
    })
    .await
}

#[tokio::test]
async fn l09_one_read_of_the_list_and_one_for_each_entity() -> TestResult {
    on_both(async |store| {
        let staff = store.table::<Clerk>().await;
        for id in 1..=5 {
            staff.insert(&clerk(id, "Jones")).await?;
        }
        store.requests();
        let list = || Clerk::by_last_name().department("Sales").last_name("Jones");
        assert_eq!(staff.keys(list()).await?.len(), 5);
        assert_eq!(store.count(), 1);
        let query = staff.query(list());
        assert_eq!(query.collect().await?.len(), 5);
        let requests = store.requests();
        assert_eq!(requests.len(), 6);
        assert!(requests.iter().all(Request::is_read), "point reads, never an `or`: {requests:?}");
        Ok(())
    })
    .await
}

#[tokio::test]
async fn l11_a_lookup_of_entities_is_at_least_two_requests() -> TestResult {
    on_both(async |store| {
        let staff = store.table::<Clerk>().await;
        staff.insert(&clerk(1, "Jones")).await?;
        store.requests();
        let query = staff.query(Clerk::by_last_name().department("Sales").last_name("Jones"));
        assert_eq!(query.collect().await?.len(), 1);
        assert_eq!(store.count(), 2);
        Ok(())
    })
    .await
}

/// Long keys fill a list soon.
#[derive(Debug, Clone, PartialEq, TableEntity)]
#[table(
    name = "Pages",
    partition_key = "{site}",
    row_key = "page_{path}",
    list(ByTag, row_key = "tag_{tag}")
)]
struct WebPage {
    site: String,
    path: String,
    tag: String,
}

#[tokio::test]
async fn l12_a_list_beyond_a_mebibyte_goes_on_in_further_rows() -> TestResult {
    on_both(async |store| {
        let pages = store.table::<WebPage>().await;
        let page = |number: usize| WebPage {
            site: "x".into(),
            path: format!("{number:04}{}", "p".repeat(490)),
            tag: "all".into(),
        };
        let count = 1_200;
        pages.bulk().insert_all((0..count).map(page)).await?.into_result()?;
        let list = || WebPage::by_tag().site("x").tag("all");
        let points = pages.keys(list()).await?;
        assert_eq!(points.len(), count);
        let rows = store.row_keys("Pages", "x").await;
        let lists = rows.iter().filter(|key| key.starts_with("tag_")).count();
        assert!(lists > 1, "1,200 x 502 characters are more than a row holds");
        let found = pages.query(list()).take(3).collect().await?;
        assert_eq!(found.len(), 3);
        pages.bulk().delete_all(points).await?.into_result()?;
        assert!(store.rows("Pages", "x").await.is_empty());
        Ok(())
    })
    .await
}

/// Whether a value is a path: the method of the trait is found only where it is not.
struct Probe<T>(T);

trait NotAPath {
    fn is_path(&self) -> bool {
        false
    }
}

impl<T> NotAPath for Probe<T> {}

impl<T: Path> Probe<T> {
    fn is_path(&self) -> bool {
        true
    }
}

#[test]
fn l14_a_list_is_looked_up_within_its_department_alone() {
    let anywhere = Probe(Clerk::by_last_name());
    assert!(!anywhere.is_path(), "the department comes first");
    let department = Probe(Clerk::by_last_name().department("Sales"));
    assert!(department.is_path());
    let keys = Clerk::by_last_name().department("Sales").last_name("Jones").keys();
    assert_eq!(keys.as_point(), Some(("Sales", "lastname_Jones")));
}
