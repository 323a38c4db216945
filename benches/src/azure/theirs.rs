//! `azure_data_tables` as it comes.

use azure_core_021::auth::Secret;
use azure_data_tables::{clients::TableServiceClientBuilder, operations::QueryEntityResponse};
use azure_storage::{CloudLocation, StorageCredentials};
use futures_util::StreamExt;
use serde::{Deserialize, Serialize};

use super::{EMAIL, NOTES, POINTS, QUERIED, QUERIES, TRANSACTION, TRANSACTIONS, key, measured};

#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(rename_all = "PascalCase")]
struct Employee {
    partition_key: String,
    row_key: String,
    first_name: String,
    last_name: String,
    age: i32,
    email: String,
    salary: f64,
    hired: String,
    #[serde(rename = "Hired@odata.type", default)]
    hired_type: String,
    notes: String,
}

fn employee(partition: &str, at: usize) -> Employee {
    Employee {
        partition_key: partition.to_owned(),
        row_key: key(at),
        first_name: "Don".to_owned(),
        last_name: "Hall".to_owned(),
        age: 34,
        email: EMAIL.to_owned(),
        salary: 55_000.5,
        hired: "2014-08-22T00:50:32Z".to_owned(),
        hired_type: "Edm.DateTime".to_owned(),
        notes: NOTES.to_owned(),
    }
}

pub(super) async fn run(connection: &str) {
    let setting = |name: &str| {
        let found = connection.split(';').find_map(|part| part.strip_prefix(name));
        found.unwrap().trim_end_matches('/').to_owned()
    };
    let account = setting("AccountName=");
    let uri = setting("TableEndpoint=");
    let credentials =
        StorageCredentials::access_key(account.clone(), Secret::new(setting("AccountKey=")));
    let service = TableServiceClientBuilder::with_location(
        CloudLocation::Custom { account, uri },
        credentials,
    )
    .build();
    let table = &service.table_client(format!("Bench{}", std::process::id()));
    table.create().await.unwrap();
    let one = |at| async move {
        let employee = employee("single", at);
        table.insert::<_, Employee>(&employee).unwrap().await.unwrap();
    };
    one(POINTS).await;
    measured("insert", POINTS, async {
        for at in 0..POINTS {
            one(at).await;
        }
    })
    .await;
    measured("get", POINTS, async {
        for at in 0..POINTS {
            let entity = table.partition_key_client("single").entity_client(key(at));
            assert_eq!(entity.get::<Employee>().await.unwrap().entity.age, 34);
        }
    })
    .await;
    let transact = |part: usize| async move {
        let mut transaction = table.partition_key_client("many").transaction();
        for at in 0..TRANSACTION {
            transaction = transaction.insert(employee("many", part * TRANSACTION + at)).unwrap();
        }
        let done = transaction.await.unwrap();
        assert_eq!(done.operation_responses.len(), TRANSACTION);
    };
    measured("transaction", TRANSACTIONS * TRANSACTION, async {
        for part in 0..TRANSACTIONS {
            transact(part).await;
        }
    })
    .await;
    measured("query", QUERIES * QUERIED, async {
        for _ in 0..QUERIES {
            let mut pages =
                table.query().filter("PartitionKey eq 'many'").into_stream::<Employee>();
            let mut count = 0;
            while let Some(page) = pages.next().await {
                let page: QueryEntityResponse<Employee> = page.unwrap();
                count += page.entities.len();
            }
            assert_eq!(count, QUERIED);
        }
    })
    .await;
    table.delete().await.unwrap();
}
