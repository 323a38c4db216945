//! Tests lists that another program wrote, and rows that exceed limits.

use entable::{Condition, Value, maintain::FindingKind, prelude::*};

use crate::copies::{Member, assert_clean, at, club, member};

#[tokio::test]
async fn an_id_is_in_a_list_once() {
    let (_, table, _) = club().await;
    table.insert(&member(1)).await.unwrap();
    table.insert(&member(2)).await.unwrap();
    let rows = table.client().dynamic("Club");
    let mut list = rows.get("C", "t_Rome").await.unwrap().unwrap();
    list.set(
        "Ids00",
        r#"["m_0001","m_0002","m_0001","m_0007","m_0007","m_0008","m_0008","m_0008"]"#,
    );
    rows.replace(&list).await.unwrap();
    let report = table.check().await.unwrap();
    let seen: Vec<_> =
        report.findings.iter().map(|f| (f.kind, f.primary.as_deref().unwrap())).collect();
    assert_eq!(
        seen,
        [
            (FindingKind::Stale, "m_0001"),
            (FindingKind::Orphan, "m_0007"),
            (FindingKind::Orphan, "m_0008"),
        ]
    );
    report.repair().await.unwrap();
    assert_clean(&table).await;
    let rome = table.keys(Member::by_town().club("C").town("Rome")).await.unwrap();
    assert_eq!(rome.iter().map(Point::row_key).collect::<Vec<_>>(), ["m_0001", "m_0002"]);
}

#[tokio::test]
async fn a_list_that_cannot_be_read_is_told_and_left() {
    let (_, table, _) = club().await;
    table.insert(&member(1)).await.unwrap();
    let rows = table.client().dynamic("Club");
    let sound = rows.get("C", "t_Rome").await.unwrap().unwrap();
    for text in ["", "[", "{}", "[1,2]", r#"["m_0001"#, r#"["m_0001",]"#, "null", "[[]]"] {
        let mut list = rows.get("C", "t_Rome").await.unwrap().unwrap();
        list.set("Ids00", text);
        rows.replace(&list).await.unwrap();
        let path = || Member::by_town().club("C").town("Rome");
        let error = table.keys(path()).await.unwrap_err();
        assert!(error.is_decode(), "{text:?}: {error}");
        assert_eq!(error.keys(), Some(("C", "t_Rome")), "{text:?}");
        assert!(table.query(path()).collect().await.unwrap_err().is_decode());
        assert!(table.insert(&member(2)).await.unwrap_err().is_decode());
        assert!(table.get(at(2)).await.unwrap().is_none(), "nothing was written");
        // A check goes on behind the list: what it should contain is missing, and no repair writes to it.
        let report = table.check().await.unwrap();
        let seen: Vec<_> = report.findings.iter().map(|f| (f.kind, &*f.row_key)).collect();
        assert_eq!(seen, [(FindingKind::Missing, "t_Rome")], "{text:?}");
        report.repair().await.unwrap();
        let left = rows.get("C", "t_Rome").await.unwrap().unwrap();
        assert_eq!(left.str("Ids00").unwrap(), text);
    }
    // Without the list it is missing, and mended.
    rows.delete("C", "t_Rome", Condition::Any).await.unwrap();
    assert_eq!(table.check().repair().await.unwrap(), 1);
    let mended = rows.get("C", "t_Rome").await.unwrap().unwrap();
    assert_eq!(mended.str("Ids00").unwrap(), sound.str("Ids00").unwrap());
}

#[derive(Debug, Clone, PartialEq, TableEntity)]
#[table(
    name = "Bags",
    partition_key = "{bag}",
    row_key = "p_{id:04}",
    index(ByName, row_key = "n_{name:lower}"),
    list(ByKind, row_key = "k_{kind}")
)]
struct Bag {
    bag: String,
    id: u32,
    name: String,
    kind: String,
    #[table(extra)]
    more: std::collections::BTreeMap<String, Value>,
}

#[tokio::test]
async fn a_copy_that_does_not_fit_writes_nothing() {
    let table = Client::memory().table::<Bag>();
    table.create().await.unwrap();
    let bag = |count: usize, size: usize| Bag {
        bag: "B".into(),
        id: 1,
        name: "n".into(),
        kind: "k".into(),
        more: (0..count).map(|at| (format!("X{at}"), "x".repeat(size).into())).collect(),
    };
    // Name, Kind, EntityType and 249 more are 252; the copy has Id too.
    table.insert(&bag(248, 1)).await.unwrap();
    table.delete_at(Bag::primary().bag("B").id(1)).await.unwrap();
    for (count, size) in [(249, 1), (250, 1), (300, 1), (17, 32_000), (3, 32_769)] {
        let error = table.insert(&bag(count, size)).await.unwrap_err();
        assert!(error.is_too_large(), "{count} of {size}: {error}");
        let rows = table.client().dynamic("Bags").query(Keys::partition("B")).collect().await;
        assert!(rows.unwrap().is_empty(), "{count} of {size}");
    }
    // A copy that grows under the key that it has: the error names the holder.
    let mut stored = table.insert(&bag(248, 1)).await.unwrap();
    stored.more = bag(249, 1).more;
    assert!(table.replace(&stored).await.unwrap_err().is_too_large());
    let mut egt = table.transaction();
    egt.insert(&Bag { id: 2, name: "other".into(), ..bag(1, 1) }).unwrap();
    egt.replace(&stored).unwrap();
    let error = egt.commit().await.unwrap_err();
    assert!(error.is_too_large(), "{error}");
    assert_eq!(error.failed_index(), Some(1));
    let all = [Bag { id: 3, name: "third".into(), ..bag(1, 1) }, bag(249, 1)];
    let report = table.bulk().insert_or_replace_all(&all).await.unwrap();
    assert_eq!((report.done, report.failed.len()), (1, 1));
    assert_eq!(report.failed[0].index, 1);
    assert!(table.check().await.unwrap().is_clean());
    // Copied fields may not make the transaction too large either: it is refused, not cut.
    let mut egt = table.transaction();
    for id in 11..=15 {
        let wide = Bag { id, name: format!("n{id}"), ..bag(14, 32_000) };
        if let Err(error) = egt.insert(&wide) {
            assert!(error.is_too_large(), "{error}");
            return;
        }
    }
    assert!(egt.commit().await.unwrap_err().is_too_large());
}
