//! Tests encrypted fields of every type, through the verbs.

use entable::{EdmType, Filter, prelude::*};

use crate::fixture::{Employee, all_stored, client, employee, point, put, stored, value, with};

const SEALED: [&str; 4] = ["Ssn", "Salary", "Bonus", "Notes"];

#[tokio::test]
async fn encrypted_fields_are_stored_as_binary_and_come_back() {
    let (client, recorder) = client().await;
    let staff = client.table::<Employee>();
    let inserted = staff.insert(&employee(223)).await.unwrap();
    assert_eq!(*inserted, employee(223));
    // A new list is read first; encryption asks for nothing.
    assert_eq!(recorder.count(), 2);

    let row = stored(&client, "Sales", "empid_000223").await;
    for name in SEALED {
        assert_eq!(value(&row, name).unwrap().edm_type(), EdmType::Binary, "{name}");
    }
    for row in all_stored(&client).await {
        let bytes = row.as_bytes();
        let tells = |text: &str| bytes.windows(text.len()).any(|at| at == text.as_bytes());
        assert!(!tells("123-45") && !tells("likes tea"), "{row:?}");
    }
    recorder.clear();
    let read = staff.get(point(223)).await.unwrap().unwrap();
    assert_eq!((&*read, recorder.count()), (&employee(223), 1));
}

#[tokio::test]
async fn each_copy_is_sealed_for_its_own_keys() {
    let (client, _) = client().await;
    client.table::<Employee>().insert(&employee(223)).await.unwrap();
    let primary = stored(&client, "Sales", "empid_000223").await;
    let copy = stored(&client, "Sales", "email_jonesj223@contoso.com").await;
    let partial = stored(&client, "Sales", "age_034_000223").await;
    for name in SEALED {
        assert_ne!(value(&primary, name), value(&copy, name), "{name}");
    }
    assert_ne!(value(&primary, "Ssn"), value(&partial, "Ssn"));
    // A copy that leaves a field out hides nothing of it.
    assert_eq!(value(&partial, "Bonus"), None);

    let staff = client.table::<Employee>();
    let by_email = Employee::by_email().department("Sales").email("jonesj223@contoso.com");
    assert_eq!(*staff.get(by_email).await.unwrap().unwrap(), employee(223));
    let jones = Employee::by_last_name().department("Sales").last_name("Jones");
    assert_eq!(staff.query(jones).collect().await.unwrap().len(), 1);
}

#[derive(Debug, PartialEq, Projection)]
#[table(of = Employee)]
struct Secret {
    ssn: String,
}

#[tokio::test]
async fn projections_select_what_is_encrypted() {
    let (client, recorder) = client().await;
    let staff = client.table::<Employee>();
    staff.insert(&employee(223)).await.unwrap();
    recorder.clear();
    let secret = staff.get_as::<Secret>(point(223)).await.unwrap().unwrap();
    assert_eq!(secret.ssn, "123-45-0223");
    let young = Employee::by_age().department("Sales").age(34);
    let secrets = staff.query(young).select::<Secret>().collect().await.unwrap();
    assert_eq!(secrets[0].ssn, "123-45-0223");
    assert_eq!(recorder.count(), 2);
}

#[tokio::test]
async fn changes_are_told_by_plain_values_so_that_kept_copies_are_not_sent() {
    let (client, recorder) = client().await;
    let staff = client.table::<Employee>();
    let mut jones = staff.insert(&employee(223)).await.unwrap();
    let before = stored(&client, "Sales", "email_jonesj223@contoso.com").await;
    recorder.clear();
    jones.bonus = Some(7);
    let mut jones = staff.replace(&jones).await.unwrap();
    // The primary and the full copy; the partial one holds nothing that changed.
    assert_eq!(recorder.requests().last().unwrap().operations(), 2);
    recorder.clear();
    jones.salary = Some(5000.5);
    staff.replace(&jones).await.unwrap();
    assert_eq!(recorder.requests().last().unwrap().operations(), 1);
    let after = stored(&client, "Sales", "email_jonesj223@contoso.com").await;
    assert_ne!(value(&before, "Bonus"), value(&after, "Bonus"));
}

#[tokio::test]
async fn every_verb_writes_encrypted_values() {
    let (client, _) = client().await;
    let staff = client.table::<Employee>();
    staff.insert_or_replace(&employee(1)).await.unwrap();
    staff.insert_or_merge(&Employee { salary: None, ..employee(1) }).await.unwrap();
    let merged = staff.get(point(1)).await.unwrap().unwrap();
    assert_eq!(merged.salary, Some(5000.5));

    let patch = Employee::patch().ssn("987-65-4321").bonus(9_i64);
    staff.patch_at(point(1), patch).await.unwrap();
    staff.patch_at(point(1), Employee::patch().remove_salary().remove_bonus()).await.unwrap();
    staff
        .update(point(1), |e| {
            e.notes.push("tall".into());
            Ok(())
        })
        .await
        .unwrap();
    let read = staff.get(point(1)).await.unwrap().unwrap();
    assert_eq!((read.ssn.as_str(), read.salary, read.bonus), ("987-65-4321", None, None));
    assert_eq!(read.notes, ["likes tea", "tall"]);
    let row = stored(&client, "Sales", "empid_000001").await;
    assert_eq!(value(&row, "Salary"), None);
    assert_eq!(value(&row, "Bonus").unwrap().edm_type(), EdmType::Binary);

    let mut egt = client.transaction();
    egt.insert(&employee(2)).unwrap().patch_at(point(1), Employee::patch().ssn("1")).unwrap();
    egt.commit().await.unwrap();
    staff.replace_any(&Employee { ssn: "2".into(), ..employee(2) }).await.unwrap();
    let report = client.bulk().insert_all((10..40).map(employee)).await.unwrap();
    assert!(report.is_complete());
    let all = staff.query(Employee::primary().department("Sales")).collect().await.unwrap();
    assert_eq!(all.len(), 32);
    assert_eq!((all[0].ssn.as_str(), all[1].ssn.as_str()), ("1", "2"));
    assert!(staff.delete_at(point(2)).await.unwrap());
    staff.delete(&all[0]).await.unwrap();
    assert!(staff.check().await.unwrap().is_clean());
}

#[tokio::test]
async fn a_patch_is_one_merge_and_reads_first_if_it_sets_an_encrypted_field() {
    #[derive(Debug, TableEntity)]
    #[table(name = "Staff", partition_key = "p", row_key = "{id:03}")]
    struct Simple {
        id: u16,
        #[table(encrypt)]
        ssn: Option<String>,
        age: i32,
    }
    let (client, recorder) = client().await;
    let table = client.table::<Simple>();
    table.insert(&Simple { id: 1, ssn: Some("a".into()), age: 1 }).await.unwrap();
    let before = stored(&client, "p", "001").await;
    recorder.clear();
    table.patch_at(Simple::primary().id(1), Simple::patch().age(2)).await.unwrap();
    assert_eq!(recorder.count(), 1);
    let after = stored(&client, "p", "001").await;
    assert_eq!(value(&before, "Ssn"), value(&after, "Ssn"), "untouched values stay as they are");
    recorder.clear();
    table.patch_at(Simple::primary().id(1), Simple::patch().ssn("b")).await.unwrap();
    // A move that is under way was signed for the value before: the mark has to be looked for.
    assert_eq!(recorder.count(), 2);
    let mark = DynamicEntity::new("p", "001").with_framework_names().with("EntableMoving", "abc");
    let rows = Client::builder().backend(recorder.clone()).build().unwrap().dynamic("Staff");
    rows.insert_or_merge(&mark).await.unwrap();
    let moving = table.patch_at(Simple::primary().id(1), Simple::patch().ssn("c")).await;
    assert!(moving.unwrap_err().is_conflict());
    let read = table.get(Simple::primary().id(1)).await.unwrap().unwrap();
    assert_eq!((read.ssn.as_deref(), read.age), (Some("b"), 2));
}

#[tokio::test]
async fn flattened_members_and_text_of_any_length_are_encrypted() {
    #[derive(Debug, PartialEq, Properties)]
    struct Account {
        bank: String,
        #[table(encrypt(hide_none))]
        iban: Option<String>,
    }
    #[derive(Debug, PartialEq, TableEntity)]
    #[table(name = "Staff", partition_key = "p", row_key = "{id:03}")]
    struct Payee {
        id: u16,
        #[table(flatten(prefix = "Account"))]
        account: Account,
        #[table(encrypt)]
        long: String,
    }
    let (client, recorder) = client().await;
    let table = client.table::<Payee>();
    let payee = |id, iban: Option<&str>, long: usize| Payee {
        id,
        account: Account { bank: "b".into(), iban: iban.map(Into::into) },
        long: "x".repeat(long),
    };
    // More than 32,768 characters, which no plain text may have.
    table.insert(&payee(1, Some("DE02"), 65_484)).await.unwrap();
    table.insert(&payee(2, None, 0)).await.unwrap();
    assert_eq!(
        *table.get(Payee::primary().id(1)).await.unwrap().unwrap(),
        payee(1, Some("DE02"), 65_484)
    );
    assert_eq!(*table.get(Payee::primary().id(2)).await.unwrap().unwrap(), payee(2, None, 0));
    let row = stored(&client, "p", "002").await;
    assert_eq!(value(&row, "AccountIban").unwrap().edm_type(), EdmType::Binary);
    recorder.clear();
    let error = table.insert(&payee(3, None, 65_485)).await.unwrap_err();
    assert_eq!((error.is_too_large(), error.property(), recorder.count()), (true, Some("Long"), 0));
    let mut egt = client.transaction();
    assert!(egt.insert(&payee(3, None, 65_485)).unwrap_err().is_too_large());
    // Sizes are those of what is sent: 4 MiB of sealed values are not put into one transaction.
    let report =
        client.bulk().insert_all((100..170).map(|id| payee(id, None, 65_000))).await.unwrap();
    assert_eq!((report.is_complete(), report.requests), (true, 2));
}

#[tokio::test]
async fn sets_aggregates_and_dynamic_entities_see_plain_values() {
    #[derive(Debug, EntitySet)]
    enum StaffRow {
        Employee(Employee),
        #[table(other)]
        Other(DynamicEntity),
    }
    #[derive(Debug, EntitySet)]
    struct Page {
        #[table(many)]
        employees: Vec<Employee>,
        #[table(other)]
        others: Vec<DynamicEntity>,
    }
    let (client, _) = client().await;
    client.table::<Employee>().insert(&employee(1)).await.unwrap();
    let dynamic = client.dynamic("Staff");
    let mut other = DynamicEntity::new("Sales", "other").with("Ssn", "777").with("Plain", 1);
    other.encrypt("Ssn");
    dynamic.insert(&other).await.unwrap();
    assert_eq!(
        value(&stored(&client, "Sales", "other").await, "Ssn").unwrap().edm_type(),
        EdmType::Binary
    );

    let set = client.set::<StaffRow>("Staff");
    let rows = set.query(Keys::partition("Sales")).collect().await.unwrap();
    assert_eq!(rows.len(), 2);
    for row in &rows {
        match &**row {
            StaffRow::Employee(e) => assert_eq!(e, &employee(1)),
            StaffRow::Other(other) => assert_eq!(other.str("Ssn").unwrap(), "777"),
        }
    }
    let page = client.set::<Page>("Staff").load(Keys::partition("Sales")).await.unwrap();
    assert_eq!((page.employees.len(), page.others.len()), (1, 1));
    let error = set.query(Filter::eq("PartitionKey", "Sales") & Filter::eq("Ssn", "777"));
    assert!(error.collect().await.unwrap_err().is_invalid());

    // A property that was encrypted when it was read is encrypted when it is written back.
    let mut read = dynamic.get("Sales", "other").await.unwrap().unwrap();
    assert_eq!(read.str("Ssn").unwrap(), "777");
    read.set("Plain", 2).set("Ssn", "888");
    let read = dynamic.patch(&read).await.unwrap();
    let read = dynamic.replace(&read).await.unwrap();
    assert_eq!(read.str("Ssn").unwrap(), "888");
    let row = stored(&client, "Sales", "other").await;
    assert_eq!(value(&row, "Ssn").unwrap().edm_type(), EdmType::Binary);
    let read = dynamic.get("Sales", "empid_000001").await.unwrap().unwrap();
    assert_eq!(read.str("Ssn").unwrap(), "123-45-0001");
    dynamic.replace(&read).await.unwrap();
    assert_eq!(*client.table::<Employee>().get(point(1)).await.unwrap().unwrap(), employee(1));
}

#[tokio::test]
async fn an_insert_or_merge_hides_absent_values() {
    #[derive(Debug, Clone, PartialEq, TableEntity)]
    #[table(name = "Staff", partition_key = "p", row_key = "{id:03}")]
    struct Hiding {
        id: u16,
        #[table(encrypt(hide_none))]
        bonus: Option<i64>,
        age: i32,
    }
    let (client, recorder) = client().await;
    let hiding = client.table::<Hiding>();
    let with = |id, bonus, age| Hiding { id, bonus, age };
    hiding.insert_or_merge(&with(1, None, 1)).await.unwrap();
    hiding.insert(&with(2, Some(7), 1)).await.unwrap();
    hiding.insert_or_merge(&with(2, None, 2)).await.unwrap();
    let mut egt = client.transaction();
    egt.insert_or_merge(&with(3, None, 3)).unwrap();
    egt.commit().await.unwrap();
    let all = hiding.query(Hiding::primary()).collect().await.unwrap();
    let all: Vec<_> = all.into_iter().map(Stored::into_inner).collect();
    assert_eq!(all, [with(1, None, 1), with(2, Some(7), 2), with(3, None, 3)]);
    // Where nothing is absent, only a move that is under way has to be known.
    recorder.clear();
    hiding.insert_or_merge(&with(1, Some(1), 1)).await.unwrap();
    assert_eq!(recorder.count(), 2);
}

#[tokio::test]
async fn a_patch_of_a_struct_removes_ciphertexts_and_tokens_of_absent_fields() {
    #[derive(Debug, Clone, PartialEq, Properties)]
    struct Account {
        bank: String,
        #[table(encrypt, blind)]
        iban: Option<String>,
    }
    #[derive(Debug, PartialEq, TableEntity)]
    #[table(name = "Staff", partition_key = "p", row_key = "{id:03}")]
    struct Payee {
        id: u16,
        #[table(flatten)]
        account: Account,
        #[table(flatten)]
        second: Option<Account>,
    }
    let (client, _) = client().await;
    let table = client.table::<Payee>();
    let full = Account { bank: "b".into(), iban: Some("DE02".into()) };
    table.insert(&Payee { id: 1, account: full.clone(), second: Some(full) }).await.unwrap();
    let at = || Payee::primary().id(1);
    let has_iban = || Payee::ACCOUNT.at(Account::IBAN).eq("DE02");
    let before = stored(&client, "p", "001").await;
    let names = ["AccountIban", "AccountIbanBlind", "SecondIban", "SecondIbanBlind", "SecondBank"];
    assert!(names.iter().all(|name| value(&before, name).is_some()));
    assert_eq!(table.query(Payee::primary()).filter(has_iban()).collect().await.unwrap().len(), 1);

    let spare = Account { bank: "c".into(), iban: None };
    let patch = Payee::patch().account(spare.clone()).second(None);
    table.patch_at(at(), patch).await.unwrap();
    let after = stored(&client, "p", "001").await;
    for name in names {
        assert_eq!(value(&after, name), None, "{name}");
    }
    let read = table.get(at()).await.unwrap().unwrap();
    assert_eq!(*read, Payee { id: 1, account: spare, second: None });
    assert!(table.query(Payee::primary()).filter(has_iban()).collect().await.unwrap().is_empty());
}

#[tokio::test]
async fn a_list_with_an_entity_that_does_not_open_has_the_others() {
    let (client, _) = client().await;
    let staff = client.table::<Employee>();
    for id in 1..=3 {
        staff.insert(&employee(id)).await.unwrap();
    }
    // An encrypted value does not open under the keys of another entity.
    let first = stored(&client, "Sales", "empid_000001").await;
    let second = stored(&client, "Sales", "empid_000002").await;
    put(&client, with(&second, "Ssn", value(&first, "Ssn"))).await;
    let jones = Employee::by_last_name().department("Sales").last_name("Jones");
    let rows = staff.query(jones).results().collect().await.unwrap();
    let ids: Vec<_> = rows.iter().map(|row| row.as_ref().ok().map(|row| row.id)).collect();
    assert_eq!(ids, [Some(1), None, Some(3)]);
    let error = rows[1].as_ref().unwrap_err();
    assert_eq!((error.is_decrypt(), error.table()), (true, Some("Staff")));
}
