//! L15: an index entity in another partition, kept by messages and a worker.

use entable::{Context, prelude::*};
use serde::{Deserialize, Serialize};

use crate::store::{TestResult, on_both};

#[derive(Debug, Clone, PartialEq, TableEntity)]
#[table(name = "Staff", partition_key = "{department}", row_key = "empid_{id:06}")]
struct Clerk {
    department: String,
    id: u32,
    last_name: String,
}

/// The ids of everybody of one last name, whatever the department.
#[derive(Debug, Clone, PartialEq, TableEntity)]
#[table(name = "Names", partition_key = "{last_name}", row_key = "ids")]
struct Namesakes {
    last_name: String,
    #[table(json)]
    ids: Vec<u32>,
}

#[derive(Debug, Serialize, Deserialize, Message)]
#[table(name = "NameChanged", version = 1)]
struct NameChanged {
    department: String,
    id: u32,
    last_names: Vec<String>,
}

/// Makes each list what the clerk says now, so that it does no harm to be called again.
async fn follow(cx: Context, message: NameChanged) -> Result<(), BoxError> {
    let (staff, names) = (cx.client().table::<Clerk>(), cx.client().table::<Namesakes>());
    for last_name in message.last_names {
        let point = || Namesakes::primary().last_name(&*last_name);
        let list = names.get(point()).await?;
        let clerk = Clerk::primary().department(&*message.department).id(message.id);
        let belongs = staff.get(clerk).await?.is_some_and(|clerk| clerk.last_name == last_name);
        match list {
            None if belongs => {
                let ids = vec![message.id];
                names.insert(&Namesakes { last_name: last_name.clone(), ids }).await?;
            }
            None => {}
            Some(mut list) => {
                list.ids.retain(|id| *id != message.id);
                if belongs {
                    list.ids.push(message.id);
                }
                names.replace(&list).await?;
            }
        }
    }
    Ok(())
}

#[tokio::test]
async fn l15_a_list_in_another_partition_is_kept_by_a_queue() -> TestResult {
    on_both(async |store| {
        let (staff, names) = (store.client.table::<Clerk>(), store.client.table::<Namesakes>());
        staff.create_if_not_exists().await?;
        names.create_if_not_exists().await?;
        let ids = async |last_name: &str| -> Result<Option<Vec<u32>>, Error> {
            let list = names.get(Namesakes::primary().last_name(last_name)).await?;
            Ok(list.map(|list| list.ids.clone()))
        };
        for (department, id) in [("Sales", 1), ("Finance", 2)] {
            let clerk = Clerk { department: department.into(), id, last_name: "Jones".into() };
            let last_names = vec!["Jones".into()];
            let mut egt = staff.transaction();
            let changed = NameChanged { department: department.into(), id, last_names };
            egt.insert(&clerk)?.emit(&changed)?;
            egt.commit().await?;
        }
        assert_eq!(ids("Jones").await?, None, "nothing is kept before a worker comes by");
        let worker = store.client.worker().on(follow);
        worker.drain().await?;
        let mut both = ids("Jones").await?.unwrap_or_default();
        both.sort_unstable();
        assert_eq!(both, [1, 2]);

        let point = Clerk::primary().department("Sales").id(1);
        let mut jones = staff.get(point).await?.ok_or("she is there")?;
        jones.last_name = "Hall".into();
        let changed = NameChanged {
            department: "Sales".into(),
            id: 1,
            last_names: vec!["Jones".into(), "Hall".into()],
        };
        let mut egt = staff.transaction();
        egt.replace(&jones)?.emit(&changed)?;
        egt.commit().await?;
        worker.drain().await?;
        assert_eq!(ids("Jones").await?, Some(vec![2]));
        assert_eq!(ids("Hall").await?, Some(vec![1]));
        Ok(())
    })
    .await
}
