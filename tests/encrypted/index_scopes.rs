//! Tests blind token keys of scopes: blind tokens that only the holder of a tenant's own key can make.

use std::{
    collections::BTreeMap,
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering},
    },
    time::Duration,
};

use entable::{
    BlindTokenKey, Clock, DataKey, KeyProvider, KeyScope, Keyring, Row, SteppedClock, Ticks,
    ValueRef,
    backend::{Memory, ScanRequest},
    batch::Operation,
    prelude::*,
    seal::{KeyFuture, KeyId},
};
use time::OffsetDateTime;

use crate::fixture::{root, value, with};

/// Its own copies follow the tenant, the copy of a city follows the city, and that of an email, whose
/// PartitionKey is a token, the default scope.
#[derive(Debug, Clone, PartialEq, TableEntity)]
#[table(
    name = "People",
    partition_key = "{tenant}",
    row_key = "e_{id:04}",
    seal,
    index(BySsn, row_key = "ssn_{ssn:hmac}"),
    list(ByName, row_key = "name_{name:hmac}"),
    index(
        ByCity,
        partition_key = "{city}",
        row_key = "pin_{pin:hmac}_{tenant}_{id:04}",
        only(age)
    ),
    index(ByEmail, partition_key = "mail_{email:hmac}", row_key = "is", unique)
)]
struct Person {
    tenant: String,
    id: u32,
    city: String,
    #[table(encrypt)]
    ssn: String,
    #[table(encrypt)]
    pin: i32,
    #[table(encrypt)]
    name: String,
    #[table(encrypt)]
    email: String,
    #[table(encrypt, blind)]
    phone: String,
    age: i32,
}

fn person(tenant: &str, id: u32) -> Person {
    Person {
        tenant: tenant.into(),
        id,
        city: "c-x".into(),
        ssn: "123".into(),
        pin: 7,
        name: "Jones".into(),
        email: format!("{id}@{tenant}"),
        phone: "555".into(),
        age: 30,
    }
}

fn scope_of(partition_key: &str) -> KeyScope {
    if partition_key.starts_with("t-") || partition_key.starts_with("c-") {
        KeyScope::named(partition_key)
    } else {
        KeyScope::default_scope()
    }
}

/// Data keys 1 to 6 and blind token keys 101 to 105; the scope `t-n` has no blind token key.
fn keys(shredded: Option<&str>) -> Keyring {
    let mut keys = Keyring::builder();
    for (at, name) in ["default", "t-a", "t-b", "c-x", "c-y", "t-n"].into_iter().enumerate() {
        if shredded == Some(name) {
            continue;
        }
        let (scope, at) = (KeyScope::named(name), at as u8 + 1);
        keys = keys.primary(&scope, &root(at));
        if name != "t-n" {
            keys = keys.blind_token_key(&scope, 1, &root(100 + at));
        }
    }
    keys.build().unwrap().with_scopes(scope_of).with_blind_token_key_per_scope()
}

async fn people(keys: impl KeyProvider) -> Table<Person> {
    let client = Client::builder().backend(Memory::new()).keys(keys).build().unwrap();
    client.create_table("People").await.unwrap();
    client.table()
}

fn again(table: &Table<Person>, keys: impl KeyProvider) -> Table<Person> {
    let backend = table.client().backend().clone();
    Client::builder().backend(backend).keys(keys).build().unwrap().table()
}

async fn stored(table: &Table<Person>) -> BTreeMap<(String, String), Row> {
    let filter = Filter::Constant(true);
    let scan =
        ScanRequest { table: "People", filter: &filter, select: None, top: None, from: None };
    let rows = table.client().backend().scan(scan).await.unwrap().into_rows().unwrap();
    let keyed = |row: Row| ((row.partition_key().to_owned(), row.row_key().to_owned()), row);
    rows.into_iter().map(keyed).collect()
}

async fn settle(table: &Table<Person>) {
    table.client().wait_for_copies().await;
    table.client().worker().with::<Person>().drain().await.unwrap();
}

fn token(index: u8, field: &str, value: ValueRef<'_>) -> String {
    BlindTokenKey::from_root(&root(index), 1).token("People", field, value)
}

fn by_ssn(tenant: &str) -> Point<Person, entable::entity::FullCopy> {
    Person::by_ssn().tenant(tenant).ssn("123")
}

#[tokio::test(start_paused = true)]
async fn each_row_has_the_tokens_of_its_own_partitions_scope() {
    let people = people(keys(None)).await;
    people.insert(&person("t-a", 1)).await.unwrap();
    people.insert(&person("t-b", 2)).await.unwrap();
    settle(&people).await;
    let (ssn, name) = (ValueRef::String("123"), ValueRef::String("Jones"));
    let city = token(104, "Pin", ValueRef::Int32(7));
    let mail = |of: &'static str| format!("mail_{}", token(101, "Email", ValueRef::String(of)));
    let wanted = [
        ("t-a".to_owned(), format!("ssn_{}", token(102, "Ssn", ssn))),
        ("t-b".to_owned(), format!("ssn_{}", token(103, "Ssn", ssn))),
        ("t-a".to_owned(), format!("name_{}", token(102, "Name", name))),
        ("t-b".to_owned(), format!("name_{}", token(103, "Name", name))),
        ("c-x".to_owned(), format!("pin_{city}_t-a_0001")),
        ("c-x".to_owned(), format!("pin_{city}_t-b_0002")),
        (mail("1@t-a"), "is".to_owned()),
        (mail("2@t-b"), "is".to_owned()),
    ];
    let rows = stored(&people).await;
    for key in &wanted {
        assert!(rows.contains_key(key), "{key:?} in {:?}", rows.keys());
    }
    // The short token beside a value follows the row that it stands in.
    for (key, index) in [
        (("t-a".to_owned(), "e_0001".to_owned()), 102),
        (wanted[1].clone(), 103),
        (wanted[6].clone(), 101),
    ] {
        let index = BlindTokenKey::from_root(&root(index), 1);
        let short = index.short_token("People", "Phone", ValueRef::String("555"), 40);
        assert_eq!(value(&rows[&key], "PhoneBlind"), Some(short.into()), "{key:?}");
    }
    for (tenant, id) in [("t-a", 1), ("t-b", 2)] {
        let wanted = person(tenant, id);
        assert_eq!(*people.get(by_ssn(tenant)).await.unwrap().unwrap(), wanted);
        let by_email = Person::by_email().email(&*wanted.email);
        assert_eq!(*people.get(by_email).await.unwrap().unwrap(), wanted);
        let named = people.query(Person::by_name().tenant(tenant).name("Jones"));
        assert_eq!(named.collect().await.unwrap().len(), 1);
        let by_phone = people.query(Person::primary().tenant(tenant));
        let by_phone = by_phone.filter(Person::PHONE.eq("555")).collect().await.unwrap();
        assert_eq!(by_phone.iter().map(|one| one.id).collect::<Vec<_>>(), [id]);
    }
    assert!(people.check().await.unwrap().is_clean());
}

#[tokio::test(start_paused = true)]
async fn changes_follow_every_scope_that_a_row_was_or_will_be_in() {
    let people = people(keys(None)).await;
    let mut one = people.insert(&person("t-a", 1)).await.unwrap();
    (one.city, one.ssn, one.name) = ("c-y".into(), "456".into(), "Smith".into());
    let one = people.replace(&one).await.unwrap();
    settle(&people).await;
    let city = token(105, "Pin", ValueRef::Int32(7));
    let rows = stored(&people).await;
    assert!(rows.contains_key(&("c-y".to_owned(), format!("pin_{city}_t-a_0001"))), "{rows:?}");
    assert!(!rows.keys().any(|(partition, _)| partition == "c-x"), "{rows:?}");
    assert!(people.get(by_ssn("t-a")).await.unwrap().is_none());
    // Read through one scope's token, written through the primary.
    let mut copy = people.get(Person::by_ssn().tenant("t-a").ssn("456")).await.unwrap().unwrap();
    copy.city = "c-x".into();
    people.replace(&copy).await.unwrap();
    let point = || Person::primary().tenant("t-a").id(1);
    people.patch_at(point(), Person::patch().city("c-y").ssn("789")).await.unwrap();
    let taken = people.insert(&Person { ssn: "789".into(), ..person("t-a", 2) }).await.unwrap_err();
    assert!(taken.is_unique_violation(), "{taken}");
    settle(&people).await;
    assert!(people.check().await.unwrap().is_clean());
    // Lost rows are written again in the scope that they belong to.
    let kept = stored(&people).await;
    for (partition, row) in kept.keys().filter(|(p, r)| p == "c-y" || r.starts_with("ssn_")) {
        let condition = Condition::Any;
        people.client().dynamic("People").delete(partition, row, condition).await.unwrap();
    }
    people.rebuild(Person::by_city()).await.unwrap();
    people.rebuild(Person::by_ssn()).await.unwrap();
    settle(&people).await;
    assert_eq!(stored(&people).await.keys().collect::<Vec<_>>(), kept.keys().collect::<Vec<_>>());
    assert_eq!(people.reencrypt().await.unwrap().rewritten, 0);
    assert!(people.delete_at(point()).await.unwrap());
    settle(&people).await;
    let left = stored(&people).await.into_keys().filter(|(_, row_key)| !row_key.starts_with('~'));
    let left: Vec<_> = left.collect();
    assert!(left.is_empty(), "{left:?}");
    drop(one);
}

/// The rows of the entity that is replaced are in scopes of their own, whose keys no earlier step of the
/// transfer has fetched.
#[tokio::test(start_paused = true)]
async fn a_transfer_replaces_an_entity_with_tokens_of_other_scopes() {
    let people = people(keys(None)).await;
    let former = people.client().table_named::<Person>("Former");
    former.create().await.unwrap();
    former
        .insert(&Person { city: "c-y".into(), ssn: "456".into(), ..person("t-a", 1) })
        .await
        .unwrap();
    people.insert(&Person { email: "2@t-a".into(), ..person("t-a", 1) }).await.unwrap();
    settle(&people).await;
    let point = || Person::primary().tenant("t-a").id(1);
    assert!(people.transfer(point(), &former).await.unwrap());
    settle(&former).await;
    assert!(people.get(point()).await.unwrap().is_none());
    let found = former.get(Person::by_ssn().tenant("t-a").ssn("123")).await.unwrap();
    assert_eq!(found.map(|one| one.email.clone()), Some("2@t-a".to_owned()));
    assert!(former.get(Person::by_ssn().tenant("t-a").ssn("456")).await.unwrap().is_none());
    assert!(former.check().await.unwrap().is_clean());
}

/// An entity that expires, with tokens in the keys of its copies.
#[derive(Debug, Clone, PartialEq, TableEntity)]
#[table(
    name = "Visits",
    partition_key = "{tenant}",
    row_key = "v_{id:04}",
    expires = until,
    index(ByBadge, row_key = "badge_{badge:hmac}", unique)
)]
struct Visit {
    tenant: String,
    id: u32,
    #[table(encrypt)]
    badge: String,
    until: OffsetDateTime,
}

#[tokio::test]
async fn what_has_expired_is_replaced_and_swept_in_every_scope() {
    let hour = Duration::from_secs(3600);
    let clock = Arc::new(SteppedClock::new(Ticks::new(638_000_000_000_000_000).unwrap()));
    let backend = Memory::with_clock(clock.clone());
    let client = Client::builder().backend(backend).clock(clock.clone()).keys(keys(None));
    let client = client.build().unwrap();
    let visits = client.table::<Visit>();
    visits.create().await.unwrap();
    let visit = |tenant: &str, id: u32, badge: &str| Visit {
        tenant: tenant.into(),
        id,
        badge: badge.into(),
        until: OffsetDateTime::from(clock.now()) + hour,
    };
    for tenant in ["t-a", "t-b"] {
        visits.insert(&visit(tenant, 1, "red")).await.unwrap();
        visits.insert(&visit(tenant, 2, "blue")).await.unwrap();
    }
    clock.advance(hour);
    // Each client has fetched no key so far.
    let fresh = || {
        let backend = client.backend().clone();
        let client = Client::builder().backend(backend).clock(clock.clone()).keys(keys(None));
        client.build().unwrap().table::<Visit>()
    };
    fresh().insert(&visit("t-a", 1, "green")).await.unwrap();
    fresh().insert(&visit("t-b", 3, "red")).await.unwrap();
    let by_badge = |badge: &str| Visit::by_badge().tenant("t-a").badge(badge);
    assert!(visits.get(by_badge("green")).await.unwrap().is_some());
    assert!(visits.get(by_badge("red")).await.unwrap().is_none());
    clock.advance(hour + Duration::from_secs(6 * 60));
    let swept = fresh().client().worker().with::<Visit>().drain().await.unwrap();
    assert_eq!(swept.expired, 4);
    let left = client.dynamic("Visits").query(Keys::partition("t-a")).collect().await.unwrap();
    let left: Vec<_> =
        left.iter().map(|row| row.row_key()).filter(|key| !key.starts_with('~')).collect();
    assert!(left.is_empty(), "{left:?}");
}

/// A scope without a blind token key gets none of the default scope.
#[tokio::test]
async fn a_scope_without_a_blind_token_key_makes_no_tokens() {
    let people = people(keys(None)).await;
    let error = people.insert(&person("t-n", 1)).await.unwrap_err();
    assert!(error.is_key_unavailable() && error.to_string().contains("`t-n`"), "{error}");
    assert!(stored(&people).await.is_empty());
    // It has a data key, so that it is not shredded.
    let error = people.get(by_ssn("t-n")).await.unwrap_err();
    assert!(error.is_key_unavailable(), "{error}");
    assert_eq!(people.client().usage().shredded, 0);
}

#[tokio::test]
async fn a_condition_on_a_token_names_its_scopes() {
    let people = people(keys(None)).await;
    for (tenant, id) in [("t-a", 1), ("t-a", 2), ("t-b", 3)] {
        let one = Person { ssn: id.to_string(), ..person(tenant, id) };
        people.insert(&one).await.unwrap();
    }
    settle(&people).await;
    let query = || people.query(Person::scan()).filter(Person::PHONE.eq("555")).allow_scan();
    let error = query().collect().await.unwrap_err();
    assert!(error.is_invalid() && error.to_string().contains("in_scopes"), "{error}");
    for (scopes, wanted) in [(&["t-a", "t-b"][..], 3), (&["t-b"], 1), (&["c-x"], 0)] {
        let scopes = scopes.iter().copied().map(KeyScope::named);
        let found = query().in_scopes(scopes).collect().await.unwrap();
        assert_eq!(found.len(), wanted);
    }
    let error = query().in_scopes([KeyScope::named("t-n")]).collect().await.unwrap_err();
    assert!(error.is_key_unavailable(), "{error}");
    // A PartitionKey tells the scope, whatever is named.
    let one = people.query(Person::primary().tenant("t-b")).filter(Person::PHONE.eq("555"));
    let found = one.in_scopes([KeyScope::named("t-a")]).collect().await.unwrap();
    assert_eq!(found.len(), 1);
}

#[tokio::test]
async fn a_shredded_tenant_is_looked_up_as_if_it_had_nothing() {
    let people = people(keys(None)).await;
    people.insert(&person("t-a", 1)).await.unwrap();
    people.insert(&person("t-b", 2)).await.unwrap();
    settle(&people).await;
    let after = again(&people, keys(Some("t-a")));
    assert!(after.get(by_ssn("t-a")).await.unwrap().is_none());
    assert!(after.get(by_ssn("t-b")).await.unwrap().is_some());
    assert_eq!(after.client().usage().shredded, 1);
    // Nothing else hides: not a point without a token, and not a key id that somebody made up.
    let error = after.get(Person::primary().tenant("t-a").id(1)).await.unwrap_err();
    assert!(error.is_decrypt() || error.is_key_unavailable(), "{error}");
    let rows = stored(&people).await;
    let ((partition_key, row_key), copy) =
        rows.iter().find(|((p, r), _)| p == "t-b" && r.starts_with("ssn_")).unwrap();
    let Some(Value::Binary(bytes)) = value(copy, "EntitySeal") else { panic!() };
    let mut bytes = bytes.to_vec();
    bytes[3] ^= 1;
    let forged = with(copy, "EntitySeal", Some(Value::Binary(bytes.into())));
    assert_eq!((forged.partition_key(), forged.row_key()), (&**partition_key, &**row_key));
    let batch = entable::Batch::single("People", Operation::insert_or_replace(forged)).unwrap();
    after.client().backend().apply(&batch).await.unwrap();
    assert!(after.get(by_ssn("t-b")).await.unwrap_err().is_decrypt());
    assert_eq!(after.client().usage().shredded, 1);
}

/// A query by a token says no more than `get` does, and the other scopes of a query stay readable.
#[tokio::test]
async fn queries_by_tokens_find_nothing_in_a_shredded_scope() {
    let people = people(keys(None)).await;
    for (tenant, id) in [("t-a", 1), ("t-b", 2)] {
        people.insert(&person(tenant, id)).await.unwrap();
    }
    settle(&people).await;
    let after = again(&people, keys(Some("t-a")));
    let shredded = || after.client().usage().shredded;
    assert!(after.query(by_ssn("t-a")).collect().await.unwrap().is_empty());
    assert_eq!(after.query(by_ssn("t-a")).count().await.unwrap(), 0);
    assert!(after.query(by_ssn("t-a")).page(None).await.unwrap().next.is_none());
    let named = |tenant| Person::by_name().tenant(tenant).name("Jones");
    assert!(after.query(named("t-a")).collect().await.unwrap().is_empty());
    assert!(after.keys(named("t-a")).await.unwrap().is_empty());
    assert!(!after.query(named("t-a")).exists().await.unwrap());
    let of = |tenant: &'static str| after.query(Person::primary().tenant(tenant));
    assert!(of("t-a").filter(Person::PHONE.eq("555")).collect().await.unwrap().is_empty());
    assert_eq!((shredded(), after.client().usage().scans), (7, 0));
    // The other scopes answer.
    assert_eq!(after.query(by_ssn("t-b")).collect().await.unwrap().len(), 1);
    assert_eq!(after.query(named("t-b")).collect().await.unwrap().len(), 1);
    let both = after.query_many(["t-a", "t-b"].map(by_ssn)).collect().await.unwrap();
    assert_eq!(both.iter().map(|one| one.id).collect::<Vec<_>>(), [2]);
    let all = |names: &'static [&'static str]| {
        let scopes = names.iter().copied().map(KeyScope::named);
        after.query(Person::scan()).allow_scan().in_scopes(scopes)
    };
    for (scopes, ids) in [(&["t-a", "t-b"][..], &[2][..]), (&["t-b", "t-a"], &[2]), (&["t-a"], &[])]
    {
        let found = all(scopes).filter(Person::PHONE.eq("555")).collect().await.unwrap();
        assert_eq!(found.iter().map(|one| one.id).collect::<Vec<_>>(), ids, "{scopes:?}");
    }
    // Another condition may find rows of the scope: they are left out, and the others are not.
    let scans = after.client().usage().scans;
    for scopes in [&["t-a", "t-b"][..], &["t-a"], &["t-b"]] {
        let before = shredded();
        let or = all(scopes).filter(Person::PHONE.eq("555") | Person::AGE.gt(3));
        let found = or.collect().await.unwrap();
        assert_eq!(found.iter().map(|one| one.id).collect::<Vec<_>>(), [2], "{scopes:?}");
        assert!(shredded() > before);
    }
    let not = all(&["t-a"]).filter(!Person::PHONE.eq("777")).collect().await.unwrap();
    assert_eq!(not.iter().map(|one| one.id).collect::<Vec<_>>(), [2]);
    assert_eq!(after.client().usage().scans, scans + 4);
    // A query that would find nothing is refused for the mistakes of any other query.
    let refused = after.query(by_ssn("t-a")).page_size(0).collect().await.unwrap_err();
    assert!(refused.is_invalid(), "{refused}");
    let refused = all(&["t-a"]).filter(Person::PHONE.eq("555")).page_size(0);
    assert!(refused.collect().await.unwrap_err().is_invalid());
    // Without a token, the rows are errors at their places.
    let rows = of("t-a").results().collect().await.unwrap();
    assert!(!rows.is_empty() && rows.iter().all(Result::is_err));
    let error = all(&["t-b"]).filter(Person::AGE.gt(3)).collect().await.unwrap_err();
    assert!(error.is_decrypt() || error.is_key_unavailable(), "{error}");
}

/// A move to another tenant needs the blind token keys of both, and of the scopes of copies elsewhere.
#[tokio::test(start_paused = true)]
async fn a_move_makes_the_tokens_of_the_scope_that_it_goes_to() {
    let people = people(keys(None)).await;
    let mut one = people.insert(&person("t-a", 1)).await.unwrap();
    settle(&people).await;
    let error = {
        one.tenant = "t-n".into();
        people.move_to(&one, &people).await.map(drop).unwrap_err()
    };
    assert!(error.is_key_unavailable(), "{error}");
    one.tenant = "t-b".into();
    people.move_to(&one, &people).await.unwrap().wait().await.unwrap();
    settle(&people).await;
    let rows = stored(&people).await;
    let ssn = token(103, "Ssn", ValueRef::String("123"));
    assert!(rows.contains_key(&("t-b".to_owned(), format!("ssn_{ssn}"))), "{rows:?}");
    assert!(
        !rows
            .keys()
            .any(|(partition_key, row_key)| partition_key == "t-a" && !row_key.starts_with("~e"))
    );
    assert!(people.get(by_ssn("t-a")).await.unwrap().is_none());
    let found = people.get(by_ssn("t-b")).await.unwrap().unwrap();
    assert_eq!(*found, *one);
    let by_email = people.get(Person::by_email().email("1@t-a")).await.unwrap().unwrap();
    assert_eq!(*by_email, *one);
    let taken = Person { email: "1@t-a".into(), ..person("t-a", 2) };
    let error = people.insert(&taken).await.unwrap_err();
    assert_eq!(error.holder(), Some(("t-b", "e_0001")), "{error}");
    assert!(people.check().await.unwrap().is_clean());
}

/// A tenant that is gone takes no other out of a list that they share.
#[derive(Debug, Clone, PartialEq, TableEntity)]
#[table(
    name = "Guests",
    partition_key = "{tenant}",
    row_key = "g_{id:04}",
    list(ByCode, partition_key = "code_{code:hmac}", row_key = "all"),
    list(ByCity, partition_key = "{city}", row_key = "guests")
)]
struct Guest {
    tenant: String,
    id: u32,
    city: String,
    #[table(encrypt)]
    code: String,
}

#[tokio::test]
async fn a_list_of_several_scopes_goes_on_with_the_others() {
    let client = Client::builder().backend(Memory::new()).keys(keys(None)).build().unwrap();
    client.create_table("Guests").await.unwrap();
    let guests = client.table::<Guest>();
    for (tenant, id) in [("t-a", 1), ("t-b", 2), ("t-n", 3)] {
        let tenant = tenant.to_owned();
        let guest = Guest { tenant, id, city: "town".into(), code: "red".into() };
        guests.insert(&guest).await.unwrap().wait_for_copies().await.unwrap();
    }
    let backend = client.backend().clone();
    let after = Client::builder().backend(backend).keys(keys(Some("t-a"))).build().unwrap();
    let guests = after.table::<Guest>();
    let by_code = guests.query(Guest::by_code().code("red")).collect().await.unwrap();
    let mut ids: Vec<_> = by_code.iter().map(|one| one.id).collect();
    ids.sort_unstable();
    assert_eq!((ids, after.usage().shredded), (vec![2, 3], 1));
    // Nobody looked a value up: the guest that does not open is told.
    let error = guests.query(Guest::by_city().city("town")).collect().await.unwrap_err();
    assert!(error.is_decrypt() || error.is_key_unavailable(), "{error}");
}

/// A key store that is down, and a default scope without a blind token key, hide nothing.
#[tokio::test]
async fn only_keys_that_are_gone_for_good_hide_rows() {
    #[derive(Debug)]
    struct Down(Keyring);
    fn down<'a, T: 'a>() -> KeyFuture<'a, T> {
        let fault = entable::SealFault::KeyUnavailable { retryable: true };
        Box::pin(async move { Err(Error::seal(fault, "the vault does not answer")) })
    }
    impl KeyProvider for Down {
        fn scope_of(&self, partition_key: &str) -> KeyScope {
            self.0.scope_of(partition_key)
        }
        fn primary<'a>(&'a self, _: &'a KeyScope) -> KeyFuture<'a, Arc<DataKey>> {
            down()
        }
        fn get<'a>(&'a self, _: &'a KeyScope, _: KeyId) -> KeyFuture<'a, Arc<DataKey>> {
            down()
        }
        fn fetch_blind_token_key<'a>(
            &'a self,
            _: &'a KeyScope,
            _: Option<u32>,
        ) -> KeyFuture<'a, Arc<BlindTokenKey>> {
            down()
        }
        fn has_blind_token_key_per_scope(&self) -> bool {
            true
        }
        fn blind_token_scope(&self, partition_key: &str) -> KeyScope {
            self.0.blind_token_scope(partition_key)
        }
    }
    let people = people(keys(None)).await;
    people.insert(&person("t-a", 1)).await.unwrap();
    settle(&people).await;
    let down = again(&people, Down(keys(None)));
    let error = down.query(by_ssn("t-a")).collect().await.unwrap_err();
    assert!(error.is_key_unavailable(), "{error}");
    let phone = down.query(Person::primary().tenant("t-a")).filter(Person::PHONE.eq("555"));
    assert!(phone.collect().await.unwrap_err().is_key_unavailable());

    let default = KeyScope::default_scope();
    let keys = Keyring::builder().primary(&default, &root(1)).build().unwrap();
    let without = again(&people, keys.with_scopes(scope_of).with_blind_token_key_per_scope());
    let by_email = || Person::by_email().email("1@t-a");
    assert!(without.get(by_email()).await.unwrap_err().is_key_unavailable());
    assert!(without.query(by_email()).collect().await.unwrap_err().is_key_unavailable());
    assert_eq!((down.client().usage().shredded, without.client().usage().shredded), (0, 0));
}

/// The roll-out: the default scope's key first, as one that other programs use.
#[tokio::test(start_paused = true)]
async fn a_scope_gets_a_blind_token_key_of_its_own_as_by_any_change_of_key() {
    let shared = |current: u32| {
        let mut keys = Keyring::builder();
        for (at, name) in ["default", "t-a", "c-x"].into_iter().enumerate() {
            let scope = KeyScope::named(name);
            keys = keys.primary(&scope, &root(at as u8 + 1));
            keys = match (name, current) {
                ("default", _) | (_, 1) => keys.blind_token_key(&scope, 1, &root(101)),
                _ => keys.blind_token_key_for_lookups(&scope, 1, &root(101)).blind_token_key(
                    &scope,
                    2,
                    &root(150 + at as u8),
                ),
            };
        }
        keys.build().unwrap().with_scopes(scope_of)
    };
    let people = people(shared(1)).await;
    people.insert(&person("t-a", 1)).await.unwrap();
    settle(&people).await;
    // Switched on, every token is as it was.
    let on = again(&people, shared(1).with_blind_token_key_per_scope());
    assert!(on.check().await.unwrap().is_clean());
    let own = again(&people, shared(2).with_blind_token_key_per_scope());
    let report = own.check().await.unwrap();
    assert!(!report.is_clean());
    report.repair().await.unwrap();
    assert!(own.reencrypt().await.unwrap().rewritten > 0);
    settle(&own).await;
    assert!(own.check().await.unwrap().is_clean());
    assert_eq!(*own.get(by_ssn("t-a")).await.unwrap().unwrap(), person("t-a", 1));
    let rows = stored(&own).await;
    let last = token(101, "Ssn", ValueRef::String("123"));
    assert!(!rows.keys().any(|(_, row_key)| row_key.contains(&last)), "{:?}", rows.keys());
}

/// A provider that counts its questions.
#[derive(Debug)]
struct Counting {
    keys: Keyring,
    scoped: bool,
    asked: Arc<AtomicUsize>,
    /// The questions for blind token keys alone.
    asked_for_index: Arc<AtomicUsize>,
}

impl KeyProvider for Counting {
    fn scope_of(&self, partition_key: &str) -> KeyScope {
        self.keys.scope_of(partition_key)
    }

    fn primary<'a>(&'a self, scope: &'a KeyScope) -> KeyFuture<'a, Arc<DataKey>> {
        self.asked.fetch_add(1, Ordering::Relaxed);
        self.keys.primary(scope)
    }

    fn get<'a>(&'a self, scope: &'a KeyScope, id: KeyId) -> KeyFuture<'a, Arc<DataKey>> {
        self.asked.fetch_add(1, Ordering::Relaxed);
        self.keys.get(scope, id)
    }

    fn fetch_blind_token_key<'a>(
        &'a self,
        scope: &'a KeyScope,
        v: Option<u32>,
    ) -> KeyFuture<'a, Arc<BlindTokenKey>> {
        self.asked.fetch_add(1, Ordering::Relaxed);
        self.asked_for_index.fetch_add(1, Ordering::Relaxed);
        self.keys.fetch_blind_token_key(scope, v)
    }

    fn has_blind_token_key_per_scope(&self) -> bool {
        self.scoped
    }

    fn blind_token_scope(&self, partition_key: &str) -> KeyScope {
        assert!(self.scoped, "asked without having said that scopes have keys");
        self.keys.blind_token_scope(partition_key)
    }
}

fn counting() -> Counting {
    let (asked, asked_for_index) = Default::default();
    Counting { keys: keys(None), scoped: true, asked, asked_for_index }
}

#[tokio::test]
async fn scopes_are_asked_for_only_where_a_provider_says_that_they_have_keys() {
    let people = people(Counting { scoped: false, ..counting() }).await;
    people.insert(&person("t-a", 1)).await.unwrap();
    settle(&people).await;
    let ssn = format!("ssn_{}", token(101, "Ssn", ValueRef::String("123")));
    assert!(stored(&people).await.contains_key(&("t-a".to_owned(), ssn)));
    assert!(people.get(by_ssn("t-a")).await.unwrap().is_some());
}

#[derive(Debug, Clone, PartialEq, TableEntity)]
#[table(
    name = "People",
    partition_key = "{tenant}",
    row_key = "n_{id:04}",
    index(ByText, row_key = "text_{text:hmac}")
)]
struct Note {
    tenant: String,
    id: u32,
    #[table(encrypt)]
    text: String,
}

#[derive(Debug, Clone, PartialEq, TableEntity)]
#[table(name = "People", partition_key = "{tenant}", row_key = "bill_{id:04}")]
struct Bill {
    tenant: String,
    id: u32,
    #[table(encrypt, blind)]
    iban: String,
}

/// The token in the condition is the one thing for which a deletion needs a blind token key.
#[tokio::test]
async fn a_deletion_of_many_pages_asks_for_the_key_of_its_condition_once() {
    let asked: Arc<AtomicUsize> = Arc::default();
    let provider = Counting { asked_for_index: asked.clone(), ..counting() };
    let bills = people(provider).await.client().table::<Bill>();
    let bill = |id| Bill { tenant: "t-a".into(), id, iban: "DE7".into() };
    bills.bulk().insert_all((0..95).map(bill)).await.unwrap();
    asked.store(0, Ordering::Relaxed);
    let scans = bills.client().usage().scans;
    let query = bills.query(Bill::primary().tenant("t-a")).filter(Bill::IBAN.eq("DE7"));
    let report = query.page_size(10).delete_all().await.unwrap();
    assert_eq!((report.done, bills.client().usage().scans - scans), (95, 10));
    assert_eq!(asked.load(Ordering::Relaxed), 1);
}

#[derive(Debug, EntitySet)]
enum Notes {
    #[allow(dead_code)]
    Note(Note),
}

/// Whoever writes rows can name any scope by a PartitionKey.
#[tokio::test]
async fn a_page_of_made_up_scopes_costs_few_questions() {
    let asked: Arc<AtomicUsize> = Arc::default();
    let people = people(Counting { asked: asked.clone(), ..counting() }).await;
    let client = people.client();
    let token = token(102, "Text", ValueRef::String("x"));
    for at in 0..900 {
        // Without an encrypted value, only the token in the key asks for a key.
        let mut row = Row::build(&format!("t-{at:04}"), &format!("text_{token}"));
        row.put("EntityType", ValueRef::String("Note#ByText"));
        row.put("Id", ValueRef::Int64(at));
        let made_up = Operation::insert_or_replace(row.finish().unwrap());
        let batch = entable::Batch::single("People", made_up).unwrap();
        client.backend().apply(&batch).await.unwrap();
    }
    asked.store(0, Ordering::Relaxed);
    let condition = Filter::parse("RowKey ge 'text_'").unwrap();
    let set = client.set::<Notes>("People").query(condition).include_copies().allow_scan();
    let found = set.results().collect().await.unwrap();
    assert_eq!((found.len(), found.iter().filter(|row| row.is_err()).count()), (900, 900));
    let asked = asked.load(Ordering::Relaxed);
    assert!((32..=64).contains(&asked), "{asked} questions");
    for error in found.into_iter().filter_map(Result::err) {
        assert!(error.is_key_unavailable(), "{error}");
    }
}

/// A lookup by a token asks whether scopes are gone: of a page with made-up ones, for few of them.
#[tokio::test]
async fn a_lookup_asks_for_few_made_up_scopes() {
    let asked: Arc<AtomicUsize> = Arc::default();
    let people = people(Counting { asked: asked.clone(), ..counting() }).await;
    for at in 0..900_u64 {
        let mut row = Row::build(&format!("t-{at:04}"), "e_0001");
        row.put("EntityType", ValueRef::String("Person"));
        row.put("Age", ValueRef::Int32(30));
        let mut seal = vec![0xae, 0x5e, 1];
        seal.extend(at.to_be_bytes());
        seal.extend([7; 32]);
        row.put("EntitySeal", ValueRef::Binary(&seal));
        let made_up = Operation::insert_or_replace(row.finish().unwrap());
        let batch = entable::Batch::single("People", made_up).unwrap();
        people.client().backend().apply(&batch).await.unwrap();
    }
    asked.store(0, Ordering::Relaxed);
    let query = people.query(Person::scan()).allow_scan().in_scopes([KeyScope::named("t-b")]);
    let query = query.filter(Person::PHONE.eq("555") | Person::AGE.gt(3));
    let found = query.results().collect().await.unwrap();
    assert!(found.iter().all(Result::is_err));
    // Those that were not asked for stay errors.
    let left_out = 900 - found.len();
    assert_eq!(people.client().usage().shredded, left_out as u64);
    let asked = asked.load(Ordering::Relaxed);
    assert!(
        (32..=128).contains(&asked) && left_out == 32,
        "{asked} questions, {left_out} left out"
    );
}
