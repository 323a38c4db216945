//! Values under keys, beside the bare cipher.

use std::hint::black_box;

use entable::{
    BlindTokenKey, DataKey, Keyring, RootKey, Row, ValueRef, backend::Memory, prelude::*,
    seal::ValueBinding,
};
use serde::{Deserialize, Serialize};
use xaes_256_gcm::{
    Nonce, Xaes256Gcm,
    aead::{AeadInOut, KeyInit},
};

use crate::figure::{figure, in_pieces, in_turns, median_of, note, rate, timed};

/// Values of a repeat.
const VALUES: u32 = 100_000;
/// Pages of a repeat.
const PAGES: usize = 50;
/// Bytes of a value.
const BYTES: usize = 64;

const PLACE: ValueBinding<'static> = ValueBinding {
    table: "People",
    partition_key: "Sales",
    row_key: "empid_000223",
    property: "Ssn",
};

pub(crate) fn run() {
    property();
    page();
    parts();
    query();
    message();
}

/// A row without encrypted properties.
#[derive(Debug, Clone, TableEntity)]
#[table(name = "Orders", partition_key = "{customer}", row_key = "{id:08}")]
struct Order {
    customer: String,
    id: u32,
    article: String,
    amount: i32,
}

#[derive(Debug, Serialize, Deserialize, Message)]
struct Ship {
    customer: String,
    id: u32,
}

/// Inserts of a piece.
const INSERTS: u32 = 100;

/// An insert with a message into a store in memory: with keys, which sign the message, and without.
fn message() {
    let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
    let keys = Keyring::from_bytes([1; 32]);
    let signing = Client::builder().backend(Memory::new()).keys(keys).build().unwrap();
    let plain = Client::builder().backend(Memory::new()).build().unwrap();
    for client in [&signing, &plain] {
        runtime.block_on(client.table::<Order>().create()).unwrap();
    }
    let insert = |client: &Client, next: &mut u32| {
        runtime.block_on(async {
            for _ in 0..INSERTS {
                *next += 1;
                let (customer, id) = ("contoso".to_owned(), *next);
                let order = Order { customer, id, article: "tea".into(), amount: 3 };
                let ship = Ship { customer: order.customer.clone(), id };
                let mut egt = client.transaction();
                egt.insert(&order).unwrap().emit(&ship).unwrap();
                black_box(egt.commit().await.unwrap());
            }
        });
    };
    let (mut first, mut second) = (0, 0);
    let (signed, unsigned) =
        in_pieces(10, |_| insert(&signing, &mut first), |_| insert(&plain, &mut second));
    figure("encrypt_message", signed.as_secs_f64() / unsigned.as_secs_f64(), "<= 1.05");
}

#[derive(Debug, Clone, TableEntity)]
#[table(name = "Staff", partition_key = "{department}", row_key = "{id:06}")]
struct Employee {
    department: String,
    id: u32,
    name: String,
    age: i32,
    #[table(encrypt)]
    ssn: String,
    #[table(encrypt)]
    salary: f64,
}

/// Rows of a page.
const ROWS: u32 = 1000;

/// A page of rows with two encrypted properties each, from the request to the entities.
fn query() {
    let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
    let keys = Keyring::from_bytes([1; 32]);
    let client = Client::builder().backend(Memory::new()).keys(keys).build().unwrap();
    let staff = client.table::<Employee>();
    let employee = |id| Employee {
        department: "Sales".into(),
        id,
        name: "Jones".into(),
        age: 34,
        ssn: "123-45-6789".into(),
        salary: 5000.0,
    };
    runtime.block_on(async {
        staff.create().await.unwrap();
        let report = client.bulk().insert_all((0..ROWS).map(employee)).await.unwrap();
        assert!(report.is_complete());
    });
    let query = staff.query(Employee::primary().department("Sales"));
    let read = || {
        let rows = runtime.block_on(query.collect()).unwrap();
        assert_eq!(black_box(rows).len(), 1000);
    };
    let (once, again) = in_turns(read, read);
    let rate_of = f64::from(2 * ROWS) / once.min(again).as_secs_f64();
    rate("encrypt_query properties/s", rate_of, ">= 500,000");
}

/// A property there and back: nonce, associated data, type tag, allocation and all.
fn property() {
    let key = DataKey::from_root(&RootKey::from_bytes([1; 32]));
    let cipher = Xaes256Gcm::new(&[1; 32].into());
    let text = "x".repeat(BYTES);
    // The text that an envelope of that place is bound to has this length.
    let bound = [7; 11 + 1 + 8 + 4 * 4 + 6 + 5 + 12 + 3];
    let plain = [7; BYTES + 1];
    let (ours, bare) = in_turns(
        || {
            for _ in 0..VALUES {
                let sealed = key.encrypt(&PLACE, Some(ValueRef::String(black_box(&text))), 0);
                let opened = key.decrypt(&PLACE, black_box(&sealed.unwrap())).unwrap();
                black_box(opened);
            }
        },
        || {
            let mut nonce = [0; 24];
            for number in 0..VALUES {
                nonce[..4].copy_from_slice(&number.to_le_bytes());
                let nonce = Nonce::from(nonce);
                let mut buffer = black_box(plain);
                let bound = black_box(&bound);
                let sealed = cipher.encrypt_inout_detached(&nonce, bound, (&mut buffer[..]).into());
                let tag = sealed.unwrap();
                let buffer = black_box(&mut buffer);
                cipher
                    .decrypt_inout_detached(&nonce, bound, (&mut buffer[..]).into(), &tag)
                    .unwrap();
                black_box(buffer);
            }
        },
    );
    figure("encrypt_property", ours.as_secs_f64() / bare.as_secs_f64(), "<= 2.0");
    let each =
        |time: std::time::Duration| format!("{:.0}", time.as_secs_f64() * 1e9 / f64::from(VALUES));
    note("encrypt_property ns there and back", each(ours));
    note("encrypt_property ns bare cipher", each(bare));
}

/// A page as the store hands it out: rows with two encrypted properties each, and nothing else done
/// with them than finding the envelopes and opening them.
fn page() {
    let key = DataKey::from_root(&RootKey::from_bytes([1; 32]));
    let text = "x".repeat(BYTES);
    let rows: Vec<Row> = (0..1_000).map(|number| row(&key, number, &text)).collect();
    let time = median_of(|| {
        for row in std::iter::repeat_n(&rows, PAGES).flatten() {
            for property in NAMES {
                let place = place(row.partition_key(), row.row_key(), property);
                // A value that is no envelope does not open, and stops the bench.
                let sealed = match row.get(property).unwrap() {
                    Some(ValueRef::Binary(sealed)) => sealed,
                    _ => &[],
                };
                black_box(key.decrypt(&place, sealed).unwrap());
            }
        }
    });
    let count = (PAGES * rows.len() * NAMES.len()) as f64;
    rate("encrypt_page properties/s", count / time.as_secs_f64(), ">= 500000");
}

const NAMES: [&str; 2] = ["Ssn", "Iban"];

fn place<'a>(partition_key: &'a str, row_key: &'a str, property: &'a str) -> ValueBinding<'a> {
    ValueBinding { table: "People", partition_key, row_key, property }
}

fn row(key: &DataKey, number: u32, text: &str) -> Row {
    let row_key = format!("empid_{number:06}");
    let mut row = Row::build("Sales", &row_key);
    for property in NAMES {
        let place = place("Sales", &row_key, property);
        let sealed = key.encrypt(&place, Some(ValueRef::String(text)), 0).unwrap();
        row.put(property, ValueRef::Binary(&sealed));
    }
    row.finish().unwrap()
}

/// Measures the parts that explain the ratio, and the price of other verbs.
fn parts() {
    let key = DataKey::from_root(&RootKey::from_bytes([1; 32]));
    let index = BlindTokenKey::from_root(&RootKey::from_bytes([2; 32]), 1);
    let text = "x".repeat(BYTES);
    let sealed = key.encrypt(&PLACE, Some(ValueRef::String(&text)), 0).unwrap();
    let properties: Vec<_> = ["A", "B", "C", "D", "E", "F", "G", "H"]
        .map(|name| (name, ValueRef::String(&text)))
        .into_iter()
        .collect();
    let parts: [(&str, &dyn Fn()); 5] = [
        ("encrypt", &|| drop(black_box(key.encrypt(&PLACE, Some(ValueRef::String(&text)), 0)))),
        ("decrypt", &|| drop(black_box(key.decrypt(&PLACE, &sealed)))),
        ("random nonce", &|| {
            let mut nonce = [0; 24];
            black_box(getrandom::fill(&mut nonce)).unwrap();
        }),
        ("seal of eight properties", &|| drop(black_box(key.seal(&PLACE, &properties)))),
        ("blind token", &|| {
            drop(black_box(index.token("People", "Email", ValueRef::String(&text))));
        }),
    ];
    for (name, part) in parts {
        let time = timed(|| (0..VALUES).for_each(|_| part()));
        let each = time.as_secs_f64() * 1e9 / f64::from(VALUES);
        note(&format!("{name} ns"), format!("{each:.0}"));
    }
}
