//! C: numbers.

use entable::{backend::layer::Request, prelude::*};

use crate::{
    model::{Employee, Worker, employee, worker},
    store::{Store, TestResult, on_both},
};

#[tokio::test]
async fn c02_tables_and_partitions_have_no_limit_of_ours() -> TestResult {
    on_both(async |store| {
        for number in 0..60 {
            store.client.create_table(&format!("Table{number}")).await?;
        }
        assert_eq!(store.client.tables().await?.len(), 60);
        let staff = store.table::<Worker>().await;
        let rows = (0..500).map(|number| Worker { department: format!("D{number}"), ..worker(1) });
        staff.bulk().insert_all(rows).await?.into_result()?;
        let found = staff.query(Worker::scan()).collect().await?;
        assert_eq!(found.len(), 500);
        Ok(())
    })
    .await
}

#[tokio::test]
async fn c03_an_entity_above_a_mebibyte_is_refused_and_the_way_out_named() -> TestResult {
    on_both(async |store| {
        store.client.create_table("Staff").await?;
        store.requests();
        let mut large = DynamicEntity::new("Sales", "large");
        for number in 0..17 {
            large.set(format!("Part{number}"), vec![1_u8; 64 * 1024]);
        }
        let error = store.client.dynamic("Staff").insert(&large).await.unwrap_err();
        assert!(error.is_too_large());
        assert_eq!(error.code(), Some("EntityTooLarge"));
        assert!(error.to_string().contains("blob"), "{error}");
        assert_eq!(store.count(), 0);
        let mut fits = DynamicEntity::new("Sales", "fits");
        for number in 0..15 {
            fits.set(format!("Part{number}"), vec![1_u8; 64 * 1024]);
        }
        store.client.dynamic("Staff").insert(&fits).await?;
        let mut property = DynamicEntity::new("Sales", "property");
        property.set("Photo", vec![1_u8; 64 * 1024 + 1]);
        let error = store.client.dynamic("Staff").insert(&property).await.unwrap_err();
        assert_eq!(error.code(), Some("PropertyValueTooLarge"));
        assert_eq!(error.property(), Some("Photo"));
        Ok(())
    })
    .await
}

fn with_properties(count: usize) -> DynamicEntity {
    let mut entity = DynamicEntity::new("Sales", format!("of{count}"));
    for number in 0..count {
        entity.set(format!("P{number}"), 1);
    }
    entity
}

#[tokio::test]
async fn c04_a_bag_of_255_properties_in_all_and_no_more() -> TestResult {
    on_both(async |store| {
        store.client.create_table("Staff").await?;
        let staff = store.client.dynamic("Staff");
        staff.insert(&with_properties(252)).await?;
        let read = staff.get("Sales", "of252").await?.unwrap();
        assert_eq!(read.properties().len(), 252);
        store.requests();
        let error = staff.insert(&with_properties(253)).await.unwrap_err();
        assert_eq!(error.code(), Some("TooManyProperties"));
        assert_eq!(store.count(), 0);
        Ok(())
    })
    .await
}

macro_rules! full {
    ($($field:ident)*) => {
        /// As many properties as an entity can have: the row's type is in its key.
        #[derive(Debug, Clone, PartialEq, TableEntity)]
        #[table(
            name = "Staff",
            partition_key = "full",
            row_key = "full_{id:06}",
            discriminator = row_key
        )]
        struct Full {
            id: u32,
            $($field: i32,)*
        }

        fn full(id: u32) -> Full {
            Full { id, $($field: 1,)* }
        }
    };
}

full! {
    f000 f001 f002 f003 f004 f005 f006 f007 f008 f009 f010 f011 f012 f013
    f014 f015 f016 f017 f018 f019 f020 f021 f022 f023 f024 f025 f026 f027
    f028 f029 f030 f031 f032 f033 f034 f035 f036 f037 f038 f039 f040 f041
    f042 f043 f044 f045 f046 f047 f048 f049 f050 f051 f052 f053 f054 f055
    f056 f057 f058 f059 f060 f061 f062 f063 f064 f065 f066 f067 f068 f069
    f070 f071 f072 f073 f074 f075 f076 f077 f078 f079 f080 f081 f082 f083
    f084 f085 f086 f087 f088 f089 f090 f091 f092 f093 f094 f095 f096 f097
    f098 f099 f100 f101 f102 f103 f104 f105 f106 f107 f108 f109 f110 f111
    f112 f113 f114 f115 f116 f117 f118 f119 f120 f121 f122 f123 f124 f125
    f126 f127 f128 f129 f130 f131 f132 f133 f134 f135 f136 f137 f138 f139
    f140 f141 f142 f143 f144 f145 f146 f147 f148 f149 f150 f151 f152 f153
    f154 f155 f156 f157 f158 f159 f160 f161 f162 f163 f164 f165 f166 f167
    f168 f169 f170 f171 f172 f173 f174 f175 f176 f177 f178 f179 f180 f181
    f182 f183 f184 f185 f186 f187 f188 f189 f190 f191 f192 f193 f194 f195
    f196 f197 f198 f199 f200 f201 f202 f203 f204 f205 f206 f207 f208 f209
    f210 f211 f212 f213 f214 f215 f216 f217 f218 f219 f220 f221 f222 f223
    f224 f225 f226 f227 f228 f229 f230 f231 f232 f233 f234 f235 f236 f237
    f238 f239 f240 f241 f242 f243 f244 f245 f246 f247 f248 f249 f250 f251
}

#[tokio::test]
async fn c05_a_struct_of_252_properties() -> TestResult {
    on_both(async |store| {
        let staff = store.table::<Full>().await;
        staff.insert(&full(1)).await?;
        assert_eq!(*staff.get(Full::primary().id(1)).await?.unwrap(), full(1));
        let row = full(1).to_row()?;
        assert_eq!(row.property_count()?, 252, "the type is not one of them");
        Ok(())
    })
    .await
}

#[derive(Debug, Clone, PartialEq, TableEntity)]
#[table(
    name = "Staff",
    partition_key = "{department}",
    row_key = "doc_{title}",
    index(ByAuthor, row_key = "author_{author}_{title}")
)]
struct Document {
    department: String,
    title: String,
    author: String,
}

#[tokio::test]
async fn c06_keys_over_the_limit_are_refused_those_of_copies_too() -> TestResult {
    on_both(async |store| {
        let staff = store.table::<Document>().await;
        let document = |department: usize, title: usize, author: usize| Document {
            department: "d".repeat(department),
            title: "t".repeat(title),
            author: "a".repeat(author),
        };
        staff.insert(&document(512, 500, 4)).await?;
        store.requests();
        for refused in [document(513, 1, 1), document(1, 509, 1), document(1, 400, 105)] {
            let error = staff.insert(&refused).await.unwrap_err();
            assert_eq!(error.code(), Some("KeyValueTooLarge"), "{error}");
            assert!(error.to_string().contains("513") && error.to_string().contains("512"));
        }
        let point = Document::primary().department("d").title("t".repeat(600));
        assert!(staff.get(point).await.unwrap_err().is_too_large());
        assert_eq!(store.count(), 0);
        Ok(())
    })
    .await
}

#[tokio::test]
async fn c08_a_page_is_never_taken_for_the_whole() -> TestResult {
    on_both(async |store| {
        let staff = store.table::<Worker>().await;
        staff.bulk().concurrency(4).insert_all((0..2_100).map(worker)).await?.into_result()?;
        let sales = staff.query(Worker::primary().department("Sales"));
        store.requests();
        let all = sales.collect().await?;
        assert_eq!((all.len(), store.count()), (2_100, 3));
        let page = sales.page(None).await?;
        assert_eq!((page.items.len(), page.next.is_some()), (1_000, true));
        // A page that the service ended early, after five seconds.
        store.shorten_pages(300);
        let all = sales.collect().await?;
        assert!(all.iter().map(|worker| worker.id).eq(0..2_100));
        assert_eq!(sales.clone().take(700).collect().await?.len(), 700);
        assert_eq!(sales.count().await?, 2_100);
        assert_eq!(sales.clone().page_size(1_000).page(None).await?.items.len(), 300);
        store.requests();
        for size in [0, 1_001] {
            assert!(sales.clone().page_size(size).collect().await.unwrap_err().is_invalid());
        }
        assert_eq!(store.count(), 0);
        Ok(())
    })
    .await
}

async fn ids(store: &Store) -> Result<Vec<u32>, Error> {
    let staff = store.client.table::<Worker>();
    let found = staff.query(Worker::scan()).collect().await?;
    Ok(found.iter().map(|worker| worker.id).collect())
}

#[tokio::test]
async fn c09_pages_end_for_any_reason() -> TestResult {
    on_both(async |store| {
        let staff = store.table::<Worker>().await;
        let rows =
            (0..1_200).map(|id| Worker { department: format!("D{}", id / 300), ..worker(id) });
        staff.bulk().insert_all(rows).await?.into_result()?;
        let expected: Vec<u32> = (0..1_200).collect();
        assert_eq!(ids(&store).await?, expected, "the page is full");
        store.fault.shorten_pages(Some(77));
        assert_eq!(ids(&store).await?, expected, "time is up");
        store.fault.empty_pages(true);
        assert_eq!(ids(&store).await?, expected, "a page without rows");
        Ok(())
    })
    .await
}

fn tops(requests: &[Request]) -> Vec<Option<u32>> {
    requests
        .iter()
        .map(|request| match request {
            Request::Scan { top, .. } => *top,
            other => panic!("not a query: {other}"),
        })
        .collect()
}

#[tokio::test]
async fn c13_the_first_ten_are_top_ten() -> TestResult {
    on_both(async |store| {
        let staff = store.table::<Worker>().await;
        staff.bulk().insert_all((0..25).map(worker)).await?.into_result()?;
        store.requests();
        let ten = staff.query(Worker::primary().department("Sales")).take(10);
        assert_eq!(ten.explain().top, Some(10));
        assert_eq!(ten.collect().await?.len(), 10);
        assert_eq!(tops(&store.requests()), [Some(10)]);
        Ok(())
    })
    .await
}

#[tokio::test]
async fn c15_a_page_size_of_fifty_is_top_fifty() -> TestResult {
    on_both(async |store| {
        let staff = store.table::<Employee>().await;
        staff.bulk().insert_all((0..120).map(|id| employee(id, "Jones"))).await?.into_result()?;
        store.requests();
        let pages = staff.query(Employee::primary().department("Sales")).page_size(50);
        assert_eq!(pages.collect().await?.len(), 120);
        assert_eq!(tops(&store.requests()), [Some(50); 3]);
        Ok(())
    })
    .await
}

#[derive(Debug, Clone, PartialEq, TableEntity)]
#[table(name = "Seen{at:%Y%m%d}", partition_key = "{user}", row_key = "{at:desc}_{id:04}")]
struct Seen {
    user: String,
    at: time::OffsetDateTime,
    id: u16,
}

#[derive(Debug, Clone, PartialEq, TableEntity)]
#[table(name = "Kept", partition_key = "{user}", row_key = "{id:04}", expires = until)]
struct Kept {
    user: String,
    id: u16,
    until: time::OffsetDateTime,
}

#[tokio::test]
async fn c12_log_ins_older_than_sixty_days_go_by_a_count_of_days() -> TestResult {
    let _alone = crate::p_mass_delete::ONE_AT_A_TIME.lock().await;
    on_both(async |store| {
        // An earlier run left its floor in a store that outlives the test.
        store.client.delete_table_if_exists("EntableTables").await?;
        let now = time::OffsetDateTime::now_utc();
        let day = time::Duration::DAY;
        let seen: Table<Seen> = store.client.table();
        for (id, days) in [(1, 1), (2, 59), (3, 61), (4, 130)] {
            seen.insert(&Seen { user: "don".into(), at: now - day * days, id }).await?;
        }
        let older = [130, 61].map(|days| format!("Seen{}", day_of(now - day * days)));
        assert_eq!(seen.retain(60).await?.dropped, older);
        let window = Seen::primary().at_between(now - day * 200..now).user("don");
        let left = seen.query(window).collect().await?;
        assert_eq!(left.iter().map(|seen| seen.id).collect::<Vec<_>>(), [1, 2]);

        // Each with its own time: hidden at once, deleted by a worker.
        let kept = store.table::<Kept>().await;
        for (id, days) in [(1, 59), (2, 61)] {
            let until = now - day * days + day * 60;
            kept.insert(&Kept { user: "don".into(), id, until }).await?;
        }
        let left = kept.query(Kept::primary().user("don")).collect().await?;
        assert_eq!(left.iter().map(|kept| kept.id).collect::<Vec<_>>(), [1]);
        for days in [1, 59] {
            store
                .client
                .delete_table_if_exists(&format!("Seen{}", day_of(now - day * days)))
                .await?;
        }
        Ok(())
    })
    .await
}

fn day_of(at: time::OffsetDateTime) -> String {
    format!("{:04}{:02}{:02}", at.year(), u8::from(at.month()), at.day())
}
