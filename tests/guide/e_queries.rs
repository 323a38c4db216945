//! E: classes of queries and their exact filters.

use entable::{
    Ticks,
    backend::layer::{Request, RequestKind},
    prelude::*,
};
use time::OffsetDateTime;
use tokio::time::Instant;
use uuid::Uuid;

use crate::{
    latency::{delay, latencies_since},
    model::{Employee, SampleEmployee, Worker, at, sample, worker},
    store::{TestResult, on_both, on_local},
};

#[derive(Debug, Clone, PartialEq, TableEntity)]
#[table(name = "Staff", partition_key = "{department}", row_key = "{id}")]
struct Plain {
    department: String,
    id: String,
    last_name: String,
}

fn class_of(filter: &str) -> CostClass {
    CostClass::of_filter(&Filter::parse(filter).unwrap())
}

#[tokio::test]
async fn e01_point_query() -> TestResult {
    on_both(async |store| {
        let staff = store.table::<Plain>().await;
        let point = || Plain::primary().department("Sales").id("2");
        let explain = staff.query(point()).explain();
        assert_eq!(explain.filter, "(PartitionKey eq 'Sales') and (RowKey eq '2')");
        assert_eq!(explain.class, CostClass::Point);
        let keys = Keys::point("Sales", "2").filter().to_string();
        assert_eq!(keys, "(PartitionKey eq 'Sales') and (RowKey eq '2')");
        staff.get(point()).await?;
        assert!(matches!(store.requests()[..], [Request::Read { .. }]), "addressed directly");
        Ok(())
    })
    .await
}

#[tokio::test]
async fn e02_range_query() -> TestResult {
    on_both(async |store| {
        assert_eq!(
            class_of("PartitionKey eq 'Sales' and RowKey ge 'S' and RowKey lt 'T'"),
            CostClass::Range
        );
        let staff = store.table::<Plain>().await;
        let explain = staff.query(Plain::primary().department("Sales").id_prefix("S")).explain();
        assert_eq!(explain.class, CostClass::Range);
        assert_eq!(
            explain.filter,
            "(PartitionKey eq 'Sales') and (RowKey ge 'S') and (RowKey lt 'T')"
        );
        Ok(())
    })
    .await
}

#[tokio::test]
async fn e03_partition_scan() -> TestResult {
    on_both(async |store| {
        let text = "PartitionKey eq 'Sales' and LastName eq 'Smith'";
        assert_eq!(class_of(text), CostClass::PartitionScan);
        let staff = store.table::<Plain>().await;
        let scan = staff.query(Plain::primary().department("Sales"));
        let explain = scan.filter(Plain::LAST_NAME.eq("Smith")).explain();
        assert_eq!(explain.class, CostClass::PartitionScan, "{explain}");
        Ok(())
    })
    .await
}

#[tokio::test]
async fn e04_a_table_scan_has_to_be_asked_for() -> TestResult {
    on_both(async |store| {
        sample(&store.client).await?;
        store.requests();
        for text in ["LastName eq 'Kwok'", "RowKey eq '00010'"] {
            assert_eq!(class_of(text), CostClass::TableScan);
            let query = store.client.dynamic("Sample").query(Filter::parse(text)?);
            let error = query.collect().await.unwrap_err();
            assert!(error.is_scan_refused(), "{error}");
            assert_eq!(store.count(), 0);
            assert_eq!(query.allow_scan().collect().await?.len(), 1);
            store.requests();
        }
        let employees = store.client.table::<SampleEmployee>();
        let scan: Scan<SampleEmployee> = SampleEmployee::scan();
        let scan = employees.query(scan).filter(SampleEmployee::LAST_NAME.eq("Kwok"));
        assert_eq!(scan.explain().class, CostClass::TableScan);
        assert_eq!(scan.collect().await?.len(), 1);
        Ok(())
    })
    .await
}

#[tokio::test(start_paused = true)]
async fn e05_an_or_of_row_keys_is_a_scan_and_points_are_better() -> TestResult {
    on_local(async |store| {
        let text = "PartitionKey eq 'Sales' and (RowKey eq '121' or RowKey eq '322')";
        assert_eq!(class_of(text), CostClass::PartitionScan);
        let staff = store.table::<Plain>().await;
        for id in ["121", "200", "322"] {
            let plain = Plain { department: "Sales".into(), id: id.into(), last_name: "J".into() };
            staff.insert(&plain).await?;
        }
        store.requests();
        let point = |id: &str| Plain::primary().department("Sales").id(id);
        delay(&store, RequestKind::Read, 3);
        let begun = Instant::now();
        let found = staff.get_many(["322", "999", "121"].map(point)).await?;
        assert_eq!(latencies_since(begun), 1, "three points take as long as one");
        let ids: Vec<Option<&str>> =
            found.iter().map(|found| found.as_ref().map(|plain| plain.id.as_str())).collect();
        assert_eq!(ids, [Some("322"), None, Some("121")], "in the order of the points");
        let requests = store.requests();
        assert!(requests.len() == 3 && requests.iter().all(Request::is_read));
        Ok(())
    })
    .await
}

#[tokio::test]
async fn e06_rows_come_in_ordinal_order_of_their_keys() -> TestResult {
    on_both(async |store| {
        store.client.create_table("Staff").await?;
        let staff = store.client.dynamic("Staff");
        let partitions = ["sales", "Sales", "S", ""];
        let rows =
            ["b", "B", "a", "A", "10", "9", "_", "\u{e9}", "\u{ffff}", "\u{10000}", "ab", ""];
        for partition_key in partitions {
            for row_key in rows {
                staff.insert(&DynamicEntity::new(partition_key, row_key)).await?;
            }
        }
        let all = staff.query(Filter::Constant(true)).allow_scan().page_size(7).collect().await?;
        let found: Vec<(Vec<u16>, Vec<u16>)> = all
            .iter()
            .map(|row| {
                let units = |text: &str| text.encode_utf16().collect::<Vec<u16>>();
                (units(Stored::partition_key(row)), units(Stored::row_key(row)))
            })
            .collect();
        let mut sorted = found.clone();
        sorted.sort();
        assert_eq!(found.len(), 48);
        assert_eq!(found, sorted);
        Ok(())
    })
    .await
}

#[derive(Debug, Clone, PartialEq, TableEntity)]
#[table(name = "Typed", partition_key = "typed", row_key = "row_{id:03}")]
struct Typed {
    id: u16,
    text: String,
    small: i32,
    large: i64,
    double: f64,
    flag: bool,
    time: OffsetDateTime,
    guid: Uuid,
    binary: Vec<u8>,
}

fn typed(id: u16, flag: bool) -> Typed {
    Typed {
        id,
        text: format!("t{id}"),
        small: i32::from(id) - 2,
        large: i64::from(id) - 2,
        double: f64::from(id) - 2.0,
        flag,
        time: at(&format!("2014-08-2{id}T00:50:32Z")),
        guid: Uuid::from_u128(u128::from(id)),
        binary: vec![u8::try_from(id).unwrap()],
    }
}

#[tokio::test]
async fn e08_six_comparisons_for_every_type() -> TestResult {
    on_both(async |store| {
        let table = store.table::<Typed>().await;
        for id in 1..=3 {
            table.insert(&typed(id, id > 1)).await?;
        }
        let ids = async |condition: Predicate<Typed>| {
            let found = table.query(Typed::primary()).filter(condition).collect().await?;
            Ok::<_, Error>(found.iter().map(|typed| typed.id).collect::<Vec<u16>>())
        };
        macro_rules! six {
            ($($column:ident $value:expr;)*) => {$(
                assert_eq!(ids(Typed::$column.eq($value)).await?, [2], stringify!($column));
                assert_eq!(ids(Typed::$column.ne($value)).await?, [1, 3], stringify!($column));
                assert_eq!(ids(Typed::$column.gt($value)).await?, [3], stringify!($column));
                assert_eq!(ids(Typed::$column.ge($value)).await?, [2, 3], stringify!($column));
                assert_eq!(ids(Typed::$column.lt($value)).await?, [1], stringify!($column));
                assert_eq!(ids(Typed::$column.le($value)).await?, [1, 2], stringify!($column));
            )*};
        }
        let two = typed(2, true);
        six! {
            TEXT &two.text;
            SMALL two.small;
            LARGE two.large;
            DOUBLE two.double;
            TIME two.time;
            GUID two.guid;
            BINARY two.binary.clone();
            ID 2_u16;
        }
        assert_eq!(ids(Typed::FLAG.eq(true)).await?, [2, 3]);
        assert_eq!(ids(Typed::FLAG.ne(true)).await?, [1]);
        assert_eq!(ids(Typed::FLAG.lt(true)).await?, [1]);
        assert_eq!(ids(Typed::FLAG.ge(false)).await?, [1, 2, 3]);
        for text in ["contains(LastName, 'o')", "startswith(LastName, 'J')", "LastName like 'J'"] {
            let error = Filter::parse(text).unwrap_err();
            assert!(error.is_unsupported() || error.is_invalid(), "{error}");
        }
        let prefix = Employee::by_email().department("Sales").email_prefix("jo").keys().filter();
        assert!(prefix.to_string().ends_with("(RowKey ge 'email_jo') and (RowKey lt 'email_jp')"));
        Ok(())
    })
    .await
}

#[test]
fn e09_filters_are_odata() -> Result<(), Error> {
    let guid = Uuid::from_u128(0xc9da_6455_213d_42c9_9a79_3e91_49a5_7833);
    let time: Ticks = "2014-08-22T00:50:32.25Z".parse().unwrap();
    let filter =
        (Filter::eq("Name", "O'Brien") & Filter::ge("Small", 5) & Filter::lt("Large", 5_i64))
            | !(Filter::gt("Double", 5.0) & Filter::ne("Flag", true))
            | Filter::le("Time", time)
            | Filter::eq("Guid", guid)
            | Filter::eq("Binary", vec![0x01_u8, 0xff]);
    let text = "((Name eq 'O''Brien') and (Small ge 5) and (Large lt 5L)) \
                or (not ((Double gt 5.0) and (Flag ne true))) \
                or (Time le datetime'2014-08-22T00:50:32.25Z') \
                or (Guid eq guid'c9da6455-213d-42c9-9a79-3e9149a57833') \
                or (Binary eq X'01ff')";
    assert_eq!(filter.to_string(), text);
    assert_eq!(Filter::parse(text)?, filter);
    Ok(())
}

#[tokio::test]
async fn e10_parentheses_round_comparisons_change_nothing() -> TestResult {
    on_both(async |store| {
        let staff = store.table::<Worker>().await;
        staff.bulk().insert_all((0..5).map(worker)).await?.into_result()?;
        let styles = [
            "PartitionKey eq 'Sales' and RowKey ge 'empid_000001' and RowKey lt 'empid_000003'",
            "(PartitionKey eq 'Sales') and (RowKey ge 'empid_000001') and (RowKey lt 'empid_000003')",
            "((PartitionKey eq 'Sales') and (RowKey ge 'empid_000001')) and (RowKey lt 'empid_000003')",
        ];
        let mut printed = Vec::new();
        for style in styles {
            let filter = Filter::parse(style)?;
            assert_eq!(CostClass::of_filter(&filter), CostClass::Range);
            printed.push(filter.to_string());
            let found = store.client.dynamic("Staff").query(filter).collect().await?;
            assert_eq!(found.len(), 2);
        }
        assert_eq!(printed[0], printed[1]);
        Ok(())
    })
    .await
}
