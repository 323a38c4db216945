//! Tests `{field:hmac}`: tokens of secret values in keys.

use entable::{KeyScope, Lookup, ServiceCode, prelude::*, seal::token_version};

use crate::fixture::{all_stored, client, ring, root, stored, value};

#[derive(Debug, Clone, PartialEq, TableEntity)]
#[table(
    name = "Staff",
    partition_key = "{department}",
    row_key = "e_{id:04}",
    index(BySsn, row_key = "ssn_{ssn:hmac}"),
    index(ByPin, row_key = "pin_{pin:hmac}_{id:04}", only(name)),
    list(ByName, row_key = "name_{name:hmac}")
)]
struct Person {
    department: String,
    id: u32,
    #[table(encrypt)]
    ssn: String,
    #[table(encrypt)]
    pin: i32,
    #[table(encrypt)]
    name: String,
    age: i32,
}

fn person(id: u32) -> Person {
    Person {
        department: "Sales".into(),
        id,
        ssn: format!("123-45-{id:04}"),
        pin: 7,
        name: "Jones".into(),
        age: 30,
    }
}

fn by_ssn(ssn: &str) -> Point<Person, entable::entity::FullCopy> {
    Person::by_ssn().department("Sales").ssn(ssn)
}

#[tokio::test]
async fn rows_are_found_by_the_token_of_a_secret_value() {
    let (client, recorder) = client().await;
    let people = client.table::<Person>();
    for id in 1..4 {
        people.insert(&person(id)).await.unwrap();
    }
    for row in all_stored(&client).await {
        let text = format!("{row:?}{}", String::from_utf8_lossy(&row.as_bytes()));
        assert!(!text.contains("123-45") && !text.contains("Jones"), "{text}");
        // No place is left where a token was to be; random bytes may look like one.
        let bag = row.to_bag().unwrap();
        let values = bag.iter().filter_map(|(_, value)| match value {
            Value::String(text) => Some(text.as_str()),
            _ => None,
        });
        let mut texts = values.chain([row.partition_key(), row.row_key()]);
        assert!(texts.all(|text| !text.contains("~~")), "{row:?}");
    }
    recorder.clear();
    assert_eq!(*people.get(by_ssn("123-45-0002")).await.unwrap().unwrap(), person(2));
    assert_eq!(recorder.count(), 1);
    assert!(people.get(by_ssn("123-45-9999")).await.unwrap().is_none());
    let copy = people.get(by_ssn("123-45-0002")).await.unwrap().unwrap();
    let token = copy.row_key().strip_prefix("ssn_").unwrap();
    assert_eq!((token.len(), token_version(token)), (26, Some(1)));

    #[derive(Debug, Projection)]
    #[table(of = Person)]
    struct Name {
        name: String,
        pin: i32,
    }
    let path = Person::by_pin().department("Sales").pin(7);
    let names = people.query(path.clone()).select::<Name>().collect().await.unwrap();
    assert_eq!(names.iter().filter(|n| n.name == "Jones" && n.pin == 7).count(), 3);
    let one = people.get_as::<Name>(path.id(2)).await.unwrap().unwrap();
    assert_eq!(one.row_key().len(), "pin_".len() + 26 + 5);
    let jones = Person::by_name().department("Sales").name("Jones");
    assert_eq!(people.query(jones.clone()).collect().await.unwrap().len(), 3);
    assert_eq!(people.keys(jones).await.unwrap().len(), 3);
}

#[tokio::test]
async fn a_changed_value_moves_the_copy_and_a_taken_one_is_a_unique_violation() {
    let (client, _) = client().await;
    let people = client.table::<Person>();
    let mut one = people.insert(&person(1)).await.unwrap();
    people.insert(&person(2)).await.unwrap();
    one.ssn = "new".into();
    let one = people.replace(&one).await.unwrap();
    assert!(people.get(by_ssn("123-45-0001")).await.unwrap().is_none());
    let mut copy = people.get(by_ssn("new")).await.unwrap().unwrap();
    // An entity that was read through the copy is written through the primary.
    copy.age = 31;
    people.replace(&copy).await.unwrap();
    let point = Person::primary().department("Sales").id(1);
    people.patch_at(point.clone(), Person::patch().ssn("newer").name("Smith")).await.unwrap();
    assert_eq!(people.get(by_ssn("newer")).await.unwrap().unwrap().age, 31);
    let error = people.patch_at(point, Person::patch().ssn("123-45-0002")).await.unwrap_err();
    assert_eq!((error.is_unique_violation(), error.index()), (true, Some("BySsn")));
    assert!(!format!("{error:?} {error}").contains("123-45"), "{error}");
    let smith = Person::by_name().department("Sales").name("Smith");
    assert_eq!(people.keys(smith).await.unwrap().len(), 1);
    let report = client.bulk().insert_all((10..60).map(person)).await.unwrap();
    assert!(report.is_complete());
    assert!(people.check().await.unwrap().is_clean());
    let _ = one;
}

#[tokio::test]
async fn a_copy_with_a_token_of_another_value_is_refused_and_mended() {
    let (client, _) = client().await;
    let people = client.table::<Person>();
    people.insert(&person(1)).await.unwrap();
    let mut read = people.get(by_ssn("123-45-0001")).await.unwrap().unwrap();
    let copy_key = read.row_key().to_owned();
    read.ssn = "moved".into();
    people.replace(&read).await.unwrap();
    // Somebody with the keys writes what does not belong there: as an older program would.
    let raw = client.dynamic("Staff");
    let mut stray = DynamicEntity::new("Sales", copy_key.as_str());
    let there = raw.query(Keys::partition("Sales").prefix("ssn_")).first().await.unwrap().unwrap();
    for (name, value) in there.properties().iter() {
        stray.set(name, value.clone());
    }
    for name in ["Ssn", "Pin", "Name"] {
        stray.encrypt(name);
    }
    raw.insert(&stray).await.unwrap();
    let error = people.get(by_ssn("123-45-0001")).await.unwrap_err();
    assert!(error.is_decode(), "{error}");
    assert!(!format!("{error:?}").contains("moved"));
    let report = people.check().await.unwrap();
    assert_eq!((report.findings.len(), report.repair().await.unwrap()), (1, 1));
    assert!(people.get(by_ssn("123-45-0001")).await.unwrap().is_none());
}

#[derive(Debug, Clone, PartialEq, TableEntity)]
#[table(name = "Staff", partition_key = "u_{email:hmac}", row_key = "user")]
struct User {
    #[table(encrypt)]
    email: String,
    visits: i32,
}

#[tokio::test]
async fn a_primary_key_may_be_a_token() {
    let (client, recorder) = client().await;
    let users = client.table::<User>();
    let user = |email: &str| User { email: email.into(), visits: 1 };
    let at = |email: &str| User::primary().email(email);
    users.insert(&user("a@b")).await.unwrap();
    assert!(users.insert(&user("a@b")).await.unwrap_err().is_conflict());
    assert_eq!(recorder.count(), 2);
    users
        .update(at("a@b"), |user| {
            user.visits += 1;
            Ok(())
        })
        .await
        .unwrap();
    users.patch_at(at("a@b"), User::patch().visits(5)).await.unwrap();
    users.insert_or_merge(&User { visits: 6, ..user("a@b") }).await.unwrap();
    let mut read = users.get(at("a@b")).await.unwrap().unwrap();
    read.visits = 7;
    let read = users.replace(&read).await.unwrap();
    assert_eq!(read.partition_key().len(), 28);
    let all = users.query(at("a@b")).collect().await.unwrap();
    assert_eq!(all[0].visits, 7);
    let many = users.get_many([at("x"), at("a@b")]).await.unwrap();
    assert!(many[0].is_none() && many[1].is_some());
    let mut egt = client.transaction();
    egt.insert(&user("new")).unwrap().insert(&user("other")).unwrap();
    let error = egt.commit().await.unwrap_err();
    assert_eq!((error.is_invalid(), error.failed_index()), (true, Some(1)));
    let mut egt = client.transaction();
    egt.insert(&user("new")).unwrap();
    egt.commit().await.unwrap();
    let report =
        client.bulk().insert_or_replace_all((0..20).map(|n| user(&n.to_string()))).await.unwrap();
    assert!(report.is_complete());
    assert_eq!(client.bulk().delete_all([at("3"), at("none")]).await.unwrap().done, 2);
    let mut changed = users.get(at("4")).await.unwrap().unwrap();
    changed.email = "elsewhere".into();
    assert!(users.replace(&changed).await.unwrap_err().is_invalid());
    let set = client.dynamic("Staff").query(at("5")).collect().await.unwrap();
    assert_eq!(set[0].str("Email").unwrap(), "5");
    assert!(users.delete_at(at("a@b")).await.unwrap());
    let lookup = Lookup::new(users.query(at("6")), std::time::Duration::from_secs(9));
    assert!(lookup.get(&at("6")).await.unwrap().is_some());
}

#[derive(Debug, Clone, PartialEq, TableEntity)]
#[table(name = "Staff", partition_key = "v_{id}", row_key = "visit")]
struct Visit {
    id: i32,
    #[table(flatten)]
    user: KeyRef<User>,
}

#[tokio::test]
async fn a_reference_needs_the_tokens_of_a_stored_entity() {
    let (client, recorder) = client().await;
    let visits = client.table::<Visit>();
    let user = User { email: "secret@b".into(), visits: 1 };
    let stored = client.table::<User>().insert(&user).await.unwrap();
    let before = recorder.count();

    let error = KeyRef::to(&user).unwrap_err();
    assert!(error.is_invalid() && error.to_string().contains("KeyRef::from(&stored)"), "{error}");
    let by_path = KeyRef::from(User::primary().email("secret@b"));
    let visit = Visit { id: 1, user: by_path.clone() };
    for error in [
        visits.insert(&visit).await.unwrap_err(),
        visits.insert_or_merge(&visit).await.unwrap_err(),
        visits.patch_at(Visit::primary().id(1), Visit::patch().user(by_path)).await.unwrap_err(),
    ] {
        assert!(error.is_invalid(), "{error}");
        assert!(!format!("{error:?}").contains("secret"), "{error:?}");
    }
    assert_eq!(recorder.count(), before, "a write was sent");

    let visit = Visit { id: 1, user: KeyRef::from(&stored) };
    let written = visits.insert(&visit).await.unwrap();
    let found = client.table::<User>().get(written.user.point()).await.unwrap().unwrap();
    assert_eq!(*found, user);
}

/// The token of its e-mail is a part of the primary's keys; the copy does not hold it.
#[derive(Debug, Clone, PartialEq, TableEntity)]
#[table(
    name = "Staff",
    partition_key = "m_{email:hmac}",
    row_key = "member",
    index(ByNumber, partition_key = "n_{number}", row_key = "member", unique)
)]
struct Member {
    number: i32,
    #[table(encrypt)]
    email: String,
    visits: i32,
}

#[tokio::test]
async fn the_path_of_an_entity_read_through_an_index_gets_its_tokens_from_the_verb() {
    let (client, recorder) = client().await;
    let members = client.table::<Member>();
    let member = Member { number: 1, email: "secret@b".into(), visits: 1 };
    let stored = members.insert(&member).await.unwrap();
    client.wait_for_copies().await;
    let copy = members.get(Member::by_number().number(1)).await.unwrap().unwrap();
    assert!(!format!("{:?}", copy.point()).contains("secret"));
    let primary = members.get(copy.point()).await.unwrap().unwrap();
    assert_eq!(primary.row().keys(), stored.row().keys());

    // A reference is stored as keys, and no verb makes tokens for it.
    let visits = client.table::<Call>();
    let before = recorder.count();
    let call = Call { id: 1, member: KeyRef::from(&copy) };
    let error = visits.insert(&call).await.unwrap_err();
    assert!(error.is_invalid() && error.to_string().contains("primary path"), "{error}");
    assert_eq!(recorder.count(), before, "a write was sent");
    let call = Call { id: 1, member: KeyRef::from(&primary) };
    let written = visits.insert(&call).await.unwrap();
    assert_eq!(*members.get(written.member.point()).await.unwrap().unwrap(), member);
}

#[derive(Debug, Clone, PartialEq, TableEntity)]
#[table(name = "Staff", partition_key = "c_{id}", row_key = "call")]
struct Call {
    id: i32,
    #[table(flatten)]
    member: KeyRef<Member>,
}

#[tokio::test]
async fn paths_tell_no_value() {
    let (client, _) = client().await;
    let people = client.table::<Person>();
    let path = Person::by_ssn().department("Sales");
    let point = path.ssn("123-45-6789");
    let query = people.query(Person::by_pin().department("Sales").pin(424_242)).select::<Pin>();
    let printed = format!("{point:?} {:?} {query:?} {}", point.keys(), query.explain());
    assert!(!printed.contains("6789") && !printed.contains("424242"), "{printed}");
    assert!(query.explain().filter.contains("pin_<token>"), "{printed}");
}

#[tokio::test]
async fn without_a_blind_token_key_no_token_is_made() {
    let scope = KeyScope::default_scope();
    let keys = Keyring::builder().primary(&scope, &root(1)).build().unwrap();
    let client = Client::builder().backend(Memory::new()).keys(keys).build().unwrap();
    client.create_table("Staff").await.unwrap();
    let people = client.table::<Person>();
    assert!(people.insert(&person(1)).await.unwrap_err().is_key_unavailable());
    assert!(people.get(by_ssn("1")).await.unwrap_err().is_key_unavailable());
    let keyless = Client::memory();
    keyless.create_table("Staff").await.unwrap();
    assert!(keyless.table::<Person>().insert(&person(1)).await.unwrap_err().is_key_unavailable());
}

#[tokio::test]
async fn a_new_blind_token_key_is_rolled_out_by_check_and_repair() {
    let (old, _) = client().await;
    old.table::<Person>().insert(&person(1)).await.unwrap();
    let scope = KeyScope::default_scope();
    let keys = ring(1).blind_token_key_for_lookups(&scope, 2, &root(101)).build().unwrap();
    let both = Client::builder().backend(old.backend().clone()).keys(keys).build().unwrap();
    // A program that knows both reads what the earlier key wrote.
    assert!(
        both.table::<Person>()
            .query(Person::by_pin().department("Sales").pin(7))
            .select::<Pin>()
            .collect()
            .await
            .unwrap()
            .len()
            == 1
    );
    let keys = Keyring::builder()
        .primary(&scope, &root(1))
        .blind_token_key_for_lookups(&scope, 1, &root(100))
        .blind_token_key(&scope, 2, &root(101))
        .build()
        .unwrap();
    let new = Client::builder().backend(old.backend().clone()).keys(keys).build().unwrap();
    let people = new.table::<Person>();
    let report = people.check().await.unwrap();
    assert!(!report.is_clean());
    report.repair().await.unwrap();
    assert!(people.check().await.unwrap().is_clean());
    let copy = people.get(by_ssn("123-45-0001")).await.unwrap().unwrap();
    assert_eq!(token_version(copy.row_key().strip_prefix("ssn_").unwrap()), Some(2));
}

#[derive(Debug, Projection)]
#[table(of = Person)]
struct Pin {
    #[allow(dead_code)]
    pin: i32,
}

#[derive(Debug, Clone, PartialEq, TableEntity)]
#[table(
    name = "Staff",
    partition_key = "p",
    row_key = "{id:04}",
    index(Again, row_key = "z_{id:04}")
)]
struct Account {
    id: u32,
    #[table(encrypt, blind)]
    iban: String,
    #[table(encrypt, blind(chars = 1))]
    level: Option<i32>,
    age: i32,
}

fn account(id: u32) -> Account {
    let level = i32::try_from(id % 64).unwrap();
    Account {
        id,
        iban: format!("DE{id:04}"),
        level: (!id.is_multiple_of(10)).then_some(level),
        age: 30,
    }
}

/// A query, and what it finds.
type Case = (Query<Account, Stored<Account>>, Vec<Account>);

#[tokio::test]
async fn a_blind_column_finds_equal_values_by_its_companion() {
    let (client, recorder) = client().await;
    let accounts = client.table::<Account>();
    client.bulk().insert_all((1..200).map(account)).await.unwrap();
    let row = stored(&client, "p", "0007").await;
    assert_eq!(value(&row, "IbanBlind").unwrap().as_str().unwrap().len(), 8);
    assert_eq!(value(&row, "LevelBlind").unwrap().as_str().unwrap().len(), 1);
    assert_ne!(value(&stored(&client, "p", "z_0007").await, "IbanBlind"), None);
    recorder.clear();
    let found = accounts
        .query(Account::primary())
        .filter(Account::IBAN.eq("DE0007"))
        .collect()
        .await
        .unwrap();
    assert_eq!((found.len(), &*found[0], recorder.count()), (1, &account(7), 1));

    let wanted =
        |keep: &dyn Fn(&Account) -> bool| (1..200).map(account).filter(keep).collect::<Vec<_>>();
    // One character is shared by many values: what comes back is compared again.
    let query = |condition| accounts.query(Account::primary()).filter(condition);
    let cases: Vec<Case> = vec![
        (query(Account::LEVEL.eq(7)), wanted(&|a| a.level == Some(7))),
        (query(!Account::LEVEL.eq(7)), wanted(&|a| a.level != Some(7))),
        (
            query(Account::LEVEL.eq(7) & !Account::IBAN.eq("DE0007")),
            wanted(&|a| a.level == Some(7) && a.id != 7),
        ),
        (
            query(Account::LEVEL.eq(7) | Account::IBAN.eq("DE0009")),
            wanted(&|a| a.level == Some(7) || a.id == 9),
        ),
        (query(!(Account::LEVEL.eq(7) | Account::AGE.gt(40))), wanted(&|a| a.level != Some(7))),
    ];
    for (query, wanted) in cases {
        let found: Vec<Account> =
            query.collect().await.unwrap().into_iter().map(Stored::into_inner).collect();
        assert_eq!(found, wanted, "{}", query.explain());
    }
    let printed =
        format!("{:?} {:?}", query(Account::IBAN.eq("DE0007")), Account::IBAN.eq("DE0007"));
    assert!(printed.contains("IbanBlind eq '<token>'") && !printed.contains("DE0007"), "{printed}");

    #[derive(Debug, Projection)]
    #[table(of = Account)]
    struct Age {
        age: i32,
    }
    let ages = query(Account::IBAN.eq("DE0009")).select::<Age>().collect().await.unwrap();
    assert_eq!((ages.len(), ages[0].age), (1, 30));
    // A patch keeps value and token together.
    let nine = Account::primary().id(9);
    accounts.patch_at(nine, Account::patch().iban("new").remove_level()).await.unwrap();
    assert_eq!(query(Account::IBAN.eq("new")).collect().await.unwrap().len(), 1);
    assert_eq!(value(&stored(&client, "p", "0009").await, "LevelBlind"), None);
    accounts.patch_at(Account::primary().id(8), Account::patch().level(3)).await.unwrap();
    assert!(accounts.check().await.unwrap().is_clean());
}

#[tokio::test]
async fn a_transaction_stays_in_the_partition_that_it_names() {
    let (client, _) = client().await;
    let people = client.table::<Person>();
    let mut egt = people.transaction();
    egt.in_partition("Marketing").unwrap().insert(&person(1)).unwrap();
    let error = egt.commit().await.unwrap_err();
    assert_eq!(
        error.service_code(),
        Some(&ServiceCode::CommandsInBatchActOnDifferentPartitions),
        "{error}"
    );
    assert_eq!(error.failed_index(), Some(0));
    assert_eq!(error.table(), Some("Staff"));
    assert!(all_stored(&client).await.is_empty(), "nothing was written");

    let mut egt = people.transaction();
    egt.in_partition("Sales").unwrap().insert(&person(1)).unwrap();
    egt.commit().await.unwrap();
    assert_eq!(*people.get(by_ssn("123-45-0001")).await.unwrap().unwrap(), person(1));
}

#[derive(Debug, serde::Serialize, serde::Deserialize, Message)]
struct Hired {
    id: u32,
}

/// The rows are complete only at the commit, which counts the messages beside them.
#[tokio::test]
async fn a_transaction_that_its_messages_make_too_large_sends_nothing() {
    let (client, recorder) = client().await;
    let mut egt = client.table::<Person>().transaction();
    for id in 0..95 {
        egt.emit(&Hired { id }).unwrap();
    }
    // Each with two copies: 101 operations.
    egt.insert(&person(1)).unwrap().insert(&person(2)).unwrap();
    let error = egt.commit().await.unwrap_err();
    assert!(error.is_too_large() && error.failed_index() == Some(1), "{error}");
    assert_eq!(recorder.take().len(), 0);
}

/// A value that everyone who reads the table may see, but that keys in logs and URLs must not show.
#[derive(Debug, Clone, PartialEq, TableEntity)]
#[table(name = "Staff", partition_key = "{department}", row_key = "badge_{badge:hmac}")]
struct Badge {
    department: String,
    #[table(plaintext)]
    badge: String,
}

#[tokio::test]
async fn a_value_in_plain_text_is_found_by_its_token() {
    let (client, _) = client().await;
    let badges = client.table::<Badge>();
    let badge = Badge { department: "Sales".into(), badge: "blue-4711".into() };
    badges.insert(&badge).await.unwrap();
    let found = badges.get(Badge::primary().department("Sales").badge("blue-4711")).await.unwrap();
    assert_eq!(found.as_deref(), Some(&badge));
    let [row] = &all_stored(&client).await[..] else { panic!("expected one row") };
    assert!(!row.row_key().contains("4711"), "{row:?}");
    assert_eq!(row.get("Badge").unwrap(), Some(entable::ValueRef::String("blue-4711")));
}
