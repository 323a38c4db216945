//! Tests that typed verbs replace and delete entities that do not decode, with their copies and lists.

use entable::{KeyScope, Keyring, OutboxOptions, RootKey, Value, backend::Memory, prelude::*};

/// An entity with every kind of copy and list. Its copies write the fields in other forms than its own key.
#[derive(Debug, Clone, PartialEq, TableEntity)]
#[table(
    name = "Players",
    partition_key = "{team}",
    row_key = "player_{id:06}",
    index(ByName, row_key = "name_{name:lower}_{id}"),
    index(ByRank, row_key = "rank_{rank:03}_{id:desc}", only(name)),
    index(ByBadge, row_key = "badge_{badge}", unique),
    index(ByCaptain, row_key = "captain_{name}", when = Player::is_captain),
    index(ByMail, partition_key = "mail_{mail:lower}", row_key = "player", unique),
    index(ByCity, table = "PlayersByCity", partition_key = "{city}", row_key = "at_{team}_{id:08}"),
    index(BySponsor, partition_key = "sponsor_{name}", row_key = "player", when = Player::is_captain, unique),
    list(ByShirt, row_key = "shirt_{shirt}"),
    list(ByTown, partition_key = "town_{city}", row_key = "players")
)]
struct Player {
    team: String,
    id: u32,
    name: String,
    rank: u8,
    badge: u32,
    mail: String,
    city: String,
    shirt: u8,
    #[table(json)]
    scores: Vec<f64>,
    captain: bool,
}

impl Player {
    fn is_captain(&self) -> bool {
        self.captain
    }
}

fn player(id: u32, name: &str) -> Player {
    Player {
        team: "red".into(),
        id,
        name: name.into(),
        rank: 3,
        badge: 100 + id,
        mail: format!("{name}@contoso.com"),
        city: "Bern".into(),
        shirt: 9,
        scores: vec![1.5],
        captain: true,
    }
}

fn at(id: u32) -> Point<Player> {
    Player::primary().team("red").id(id)
}

/// A store in which the scores of player 1 do not decode.
struct World {
    client: Client,
    players: Table<Player>,
}

impl World {
    async fn new() -> Self {
        Self::with_damage("Scores", Value::from("[null]")).await
    }

    async fn with_damage(property: &str, value: Value) -> Self {
        let client = Client::builder()
            .backend(Memory::new())
            .outbox(OutboxOptions::default())
            .build()
            .unwrap();
        let players = client.table::<Player>();
        players.create().await.unwrap();
        players.insert(&player(1, "Ada")).await.unwrap();
        players.insert(&player(2, "Bea")).await.unwrap();
        let rows = client.dynamic("Players");
        let mut row = rows.get("red", "player_000001").await.unwrap().unwrap();
        row.set(property, value);
        rows.replace(&row).await.unwrap();
        assert!(players.get(at(1)).await.unwrap_err().is_decode());
        Self { client, players }
    }

    /// Returns the keys of all rows but the outbox's own, and of the entries of lists.
    async fn rows(&self) -> Vec<String> {
        let mut keys = Vec::new();
        for table in ["Players", "PlayersByCity"] {
            let rows =
                self.client.dynamic(table).query(Filter::parse("PartitionKey ge ''").unwrap());
            for row in rows.allow_scan().collect().await.unwrap() {
                keys.push(format!("{}/{}", row.partition_key(), row.row_key()));
            }
        }
        keys.retain(|key| !key.contains("/~e"));
        keys.sort();
        keys
    }

    /// Asserts that every row is of a player that is there, and that a check finds nothing.
    async fn assert_sound(&self) {
        let report = self.players.check().await.unwrap();
        assert!(report.is_clean(), "{report:?}");
    }
}

/// The keys of all rows of two players with Bern as the city.
fn rows_of(names: &[(u32, &str)]) -> Vec<String> {
    let mut keys = vec!["red/shirt_009".to_owned(), "town_Bern/players".to_owned()];
    for (id, name) in names {
        let lower = name.to_lowercase();
        keys.extend([
            format!("red/player_{id:06}"),
            format!("red/name_{lower}_{id:010}"),
            format!("red/rank_003_{}", u32::MAX - id),
            format!("red/badge_{:010}", 100 + id),
            format!("red/captain_{name}"),
            format!("mail_{lower}@contoso.com/player"),
            format!("Bern/at_red_{id:08}"),
            format!("sponsor_{name}/player"),
        ]);
    }
    keys.sort();
    keys
}

#[tokio::test]
async fn an_unreadable_entity_is_deleted_with_its_copies_and_lists() {
    let world = World::new().await;
    assert_eq!(world.rows().await, rows_of(&[(1, "Ada"), (2, "Bea")]));
    assert!(world.players.delete_at(at(1)).await.unwrap());
    world.assert_sound().await;
    assert_eq!(world.rows().await, rows_of(&[(2, "Bea")]));
    assert!(!world.players.delete_at(at(1)).await.unwrap());
    world.players.insert(&player(1, "Ada")).await.unwrap();
    world.assert_sound().await;
}

#[tokio::test]
async fn an_unreadable_entity_is_replaced_with_its_copies_and_lists() {
    for verb in ["insert_or_replace", "replace_any", "insert_or_merge", "transaction", "bulk"] {
        let world = World::new().await;
        let eve = player(1, "Eve");
        match verb {
            "insert_or_replace" => drop(world.players.insert_or_replace(&eve).await.unwrap()),
            "replace_any" => drop(world.players.replace_any(&eve).await.unwrap()),
            "insert_or_merge" => drop(world.players.insert_or_merge(&eve).await.unwrap()),
            "transaction" => {
                let mut transaction = world.players.transaction();
                transaction.insert_or_replace(&eve).unwrap();
                transaction.commit().await.unwrap();
            }
            _ => {
                let report =
                    world.client.bulk().insert_or_replace_all([eve.clone()]).await.unwrap();
                assert!(report.is_complete(), "{report:?}");
            }
        }
        world.assert_sound().await;
        assert_eq!(world.rows().await, rows_of(&[(1, "Eve"), (2, "Bea")]), "{verb}");
        assert_eq!(*world.players.get(at(1)).await.unwrap().unwrap(), eve);
    }
}

#[tokio::test]
async fn an_unreadable_entity_keeps_the_copies_that_do_not_change() {
    let world = World::new().await;
    world.players.insert_or_replace(&player(1, "Ada")).await.unwrap();
    world.assert_sound().await;
    assert_eq!(world.rows().await, rows_of(&[(1, "Ada"), (2, "Bea")]));
}

#[tokio::test]
async fn a_patch_of_the_unreadable_field_mends_the_entity() {
    let world = World::new().await;
    world.players.patch_at(at(1), Player::patch().scores(vec![2.5])).await.unwrap();
    world.assert_sound().await;
    assert_eq!(world.players.get(at(1)).await.unwrap().unwrap().scores, [2.5]);
}

/// The condition of an index keeps player 1 out; player 2 has the key that the name of player 1 would have.
#[tokio::test]
async fn a_copy_that_a_condition_gives_to_another_entity_stays() {
    for replaces in [false, true] {
        let world = World::new().await;
        let rows = world.client.dynamic("Players");
        let mut row = rows.get("red", "player_000001").await.unwrap().unwrap();
        for (property, value) in [
            ("Captain", Value::from(false)),
            ("Name", "Bea".into()),
            ("Mail", "a@contoso.com".into()),
        ] {
            row.set(property, value);
        }
        rows.replace(&row).await.unwrap();
        let two = Player { captain: true, ..player(2, "Bea") };
        let before = world.players.get(at(2)).await.unwrap();
        assert_eq!(before.map(|stored| stored.into_inner()), Some(two));
        if replaces {
            let late = player(1, "Bea");
            let refused = world.players.insert_or_replace(&late).await.unwrap_err();
            assert!(refused.is_unique_violation(), "{refused}");
        } else {
            assert!(world.players.delete_at(at(1)).await.unwrap())
        }
        for key in [("red", "captain_Bea"), ("sponsor_Bea", "player")] {
            let copy = rows.get(key.0, key.1).await.unwrap();
            assert_eq!(copy.unwrap().get("Badge"), Some(&Value::from(102_i64)), "{key:?}");
        }
    }
}

#[tokio::test]
async fn an_entity_with_a_damaged_key_field_is_deleted_and_a_check_finds_what_is_left() {
    let world = World::with_damage("Rank", Value::from("three")).await;
    assert!(world.players.delete_at(at(1)).await.unwrap());
    let rows = world.rows().await;
    let left = rows.iter().filter(|key| !rows_of(&[(2, "Bea")]).contains(key)).collect::<Vec<_>>();
    assert_eq!(left, ["red/rank_003_4294967294"], "its key needs the damaged field");
    let report = world.players.check().await.unwrap();
    assert!(!report.is_clean());
    report.repair().await.unwrap();
    world.assert_sound().await;
    assert_eq!(world.rows().await, rows_of(&[(2, "Bea")]));
}

/// Declares an entity twice: as it is, and as a program writes it that allows values which the first refuses.
macro_rules! declare_twice {
    ($name:ident, $loose:ident, [$($setting:tt)*], { $($fields:tt)* }) => {
        #[derive(Debug, Clone, PartialEq, TableEntity)]
        #[table(entity_type = "Twice", $($setting)*)]
        struct $name {
            $($fields)*
            #[table(json, encrypt)]
            scores: Vec<f64>,
        }

        #[derive(Debug, Clone, PartialEq, TableEntity)]
        #[table(entity_type = "Twice", $($setting)*)]
        struct $loose {
            $($fields)*
            #[table(json, encrypt)]
            scores: Vec<Option<f64>>,
        }
    };
}

declare_twice!(
    Patient,
    LoosePatient,
    [
        name = "Patients",
        partition_key = "all",
        row_key = "patient_{ssn:hmac}",
        index(BySsn, row_key = "ssn_{ssn:hmac}"),
        index(ByMail, partition_key = "mail_{mail:hmac}", row_key = "patient_{ssn:hmac}")
    ],
    {
        #[table(encrypt)]
        ssn: String,
        #[table(encrypt)]
        mail: String,
    }
);

fn encrypted_client() -> Client {
    let (scope, root) = (KeyScope::default_scope(), RootKey::from_bytes([7; 32]));
    let keys = Keyring::builder()
        .primary(&scope, &root)
        .blind_token_key(&scope, 1, &root)
        .build()
        .unwrap();
    Client::builder().backend(Memory::new()).keys(keys).build().unwrap()
}

async fn count_rows(client: &Client, table: &str) -> usize {
    let rows = client.dynamic(table).query(Filter::parse("PartitionKey ge ''").unwrap());
    let rows = rows.allow_scan().collect().await.unwrap();
    rows.iter().filter(|row| !row.row_key().starts_with("~e")).count()
}

#[tokio::test]
async fn an_unreadable_entity_with_tokens_in_its_keys_goes_with_its_copies() {
    for replaces in [false, true] {
        let client = encrypted_client();
        let (strict, loose) = (client.table::<Patient>(), client.table::<LoosePatient>());
        strict.create().await.unwrap();
        let (ssn, mail) = ("1-2-3".to_owned(), "ada@contoso.com".to_owned());
        let damaged = LoosePatient { ssn: ssn.clone(), mail: mail.clone(), scores: vec![None] };
        loose.insert(&damaged).await.unwrap();
        assert_eq!(count_rows(&client, "Patients").await, 3);
        let point = || Patient::primary().ssn("1-2-3");
        assert!(strict.get(point()).await.unwrap_err().is_decode());
        if replaces {
            let mended = Patient { ssn, mail: "eve@contoso.com".into(), scores: vec![1.5] };
            strict.insert_or_replace(&mended).await.unwrap();
            assert_eq!(*strict.get(point()).await.unwrap().unwrap(), mended);
            assert_eq!(count_rows(&client, "Patients").await, 3);
        } else {
            assert!(strict.delete_at(point()).await.unwrap());
            assert_eq!(count_rows(&client, "Patients").await, 0);
        }
        assert!(strict.check().await.unwrap().is_clean());
    }
}

declare_twice!(
    Year,
    LooseYear,
    [
        name = "Years",
        partition_key = "{site}",
        row_key = "year_{year:04}",
        wide,
        index(ByName, partition_key = "name_{name}", row_key = "year_{site}_{year:04}", only(name))
    ],
    {
        site: String,
        year: u16,
        name: String,
        #[table(series, part = 2)]
        days: [i32; 3],
    }
);

#[tokio::test]
async fn an_unreadable_wide_entity_goes_with_its_parts_and_copies() {
    let client = encrypted_client();
    let (strict, loose) = (client.table::<Year>(), client.table::<LooseYear>());
    strict.create().await.unwrap();
    let (site, name) = ("north".to_owned(), "dry".to_owned());
    loose
        .insert(&LooseYear { site, year: 2014, name, days: [1, 2, 3], scores: vec![None] })
        .await
        .unwrap();
    assert_eq!(count_rows(&client, "Years").await, 3);
    let point = || Year::primary().site("north").year(2014);
    assert!(strict.get(point()).await.unwrap_err().is_decode());
    assert!(strict.delete_at(point()).await.unwrap());
    assert_eq!(count_rows(&client, "Years").await, 0);
}

#[derive(Debug, Clone, PartialEq, TableEntity)]
#[table(
    name = "Orders",
    partition_key = "{customer}",
    row_key = "order_{number:06}",
    index(ByState, row_key = "state_{state}_{number:06}")
)]
struct Order {
    customer: String,
    number: u32,
    state: String,
    #[table(json)]
    lines: Vec<f64>,
}

/// The next version, whose index has other keys.
#[derive(Debug, Clone, PartialEq, TableEntity)]
#[table(
    name = "Orders",
    entity_type = "Order",
    version = 2,
    upgrade_from(Order),
    partition_key = "{customer}",
    row_key = "order_{number:06}",
    index(ByState, row_key = "in_{state}_{number:08}")
)]
struct OrderOfToday {
    customer: String,
    number: u32,
    state: String,
    #[table(json)]
    lines: Vec<f64>,
}

impl From<Order> for OrderOfToday {
    fn from(Order { customer, number, state, lines }: Order) -> Self {
        Self { customer, number, state, lines }
    }
}

#[tokio::test]
async fn an_unreadable_entity_of_an_older_version_goes_with_the_copies_of_that_version() {
    for replaces in [false, true] {
        let client = Client::memory();
        let (before, today) = (client.table::<Order>(), client.table::<OrderOfToday>());
        before.create().await.unwrap();
        let (customer, state) = ("ada".to_owned(), "open".to_owned());
        let order = Order { customer, number: 7, state, lines: vec![1.5] };
        before.insert(&order).await.unwrap();
        let rows = client.dynamic("Orders");
        let mut row = rows.get("ada", "order_000007").await.unwrap().unwrap();
        row.set("Lines", Value::from("[null]"));
        rows.replace(&row).await.unwrap();
        let point = OrderOfToday::primary().customer("ada").number(7);
        if replaces {
            drop(today.insert_or_replace(&order.into()).await.unwrap())
        } else {
            assert!(today.delete_at(point).await.unwrap())
        }
        let left = rows.query(Keys::partition("ada")).collect().await.unwrap();
        let left: Vec<&str> = left.iter().map(|row| row.row_key()).collect();
        let expected: &[&str] = if replaces { &["in_open_00000007", "order_000007"] } else { &[] };
        assert_eq!(left, expected);
    }
}
