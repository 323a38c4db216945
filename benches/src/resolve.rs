//! Mixed rows of five types to values of a set, beside decoding rows of one known type, and beside
//! serde's internally tagged enum from the same rows as JSON.

use std::hint::black_box;

use entable::{DynamicEntity, EntitySet, FromRow, Row, TableEntity};
use serde::{Deserialize, Serialize};

use crate::figure::{figure, in_pieces, note};

/// Rows that are resolved in a repeat.
const ROWS: usize = 100_000;
/// Rows of a piece.
const PIECE: usize = 500;

/// A row as the service sends it.
#[derive(Serialize)]
struct Sent<T> {
    #[serde(rename = "odata.etag")]
    etag: &'static str,
    #[serde(rename = "Timestamp")]
    timestamp: &'static str,
    #[serde(flatten)]
    entity: T,
}

/// Five types that differ in name and key alone, so that a row of one costs what a row of another
/// does.
macro_rules! types {
    ($($name:ident $plain:ident $row_key:literal)*) => {
        $(
            #[derive(Debug, Clone, TableEntity)]
            #[table(name = "Staff", partition_key = "{department}", row_key = $row_key)]
            struct $name {
                department: String,
                id: u32,
                first_name: String,
                last_name: String,
                age: i32,
                email: String,
                salary: f64,
                active: bool,
            }

            impl $name {
                fn new(number: usize) -> Self {
                    Self {
                        department: format!("Department {}", number % 50),
                        id: u32::try_from(number).unwrap(),
                        first_name: format!("First{}", number % 977),
                        last_name: format!("Last{}", number % 1009),
                        age: i32::try_from(20 + number % 50).unwrap(),
                        email: format!("person{number}@contoso.com"),
                        salary: number as f64 / 3.0,
                        active: number % 3 == 0,
                    }
                }

                fn plain(&self) -> Plain {
                    let row = self.to_row().unwrap();
                    Plain::$name($plain {
                        partition_key: row.partition_key().to_owned(),
                        row_key: row.row_key().to_owned(),
                        first_name: self.first_name.clone(),
                        last_name: self.last_name.clone(),
                        age: self.age,
                        email: self.email.clone(),
                        salary: self.salary,
                        active: self.active,
                    })
                }
            }

            #[derive(Debug, Serialize, Deserialize)]
            #[serde(rename_all = "PascalCase")]
            struct $plain {
                partition_key: String,
                row_key: String,
                first_name: String,
                last_name: String,
                age: i32,
                email: String,
                salary: f64,
                active: bool,
            }
        )*

        #[derive(Debug, EntitySet)]
        enum StaffRow {
            $($name($name),)*
        }

        #[derive(Debug, EntitySet)]
        enum AnyRow {
            $($name($name),)*
            #[table(other)]
            Other(DynamicEntity),
        }

        /// Decodes with types that are known beforehand, which no program can do.
        fn in_order(row: &Row, number: usize) -> StaffRow {
            let kinds: [fn(&Row) -> StaffRow; 5] =
                [$(|row| StaffRow::$name($name::from_row(row).unwrap())),*];
            kinds[number % 5](row)
        }

        /// Rows of one type, a piece of each of the five after the other.
        fn known() -> Vec<Row> {
            let kinds: [fn(usize) -> Row; 5] = [$(|number| $name::new(number).to_row().unwrap()),*];
            (0..ROWS).map(|number| kinds[number / PIECE % 5](number)).collect()
        }

        /// The rows of a piece, whose type is known.
        fn decode_known(rows: &[Row], piece: usize) {
            let kinds: [fn(&[Row], usize); 5] = [$(decode::<$name>),*];
            kinds[piece % 5](rows, piece);
        }

        /// The keys are text here: serde does not take them apart.
        #[derive(Debug, Serialize, Deserialize)]
        #[serde(tag = "EntityType")]
        enum Plain {
            $($name($plain),)*
        }

        /// Row and JSON of the number-th type of five.
        fn row(number: usize) -> (Row, String) {
            let kinds: [fn(usize) -> (Row, Plain); 5] = [$(|number| {
                let entity = $name::new(number);
                (entity.to_row().unwrap(), entity.plain())
            }),*];
            let make = kinds.get(number % 5).unwrap();
            let (row, plain) = make(number);
            let sent = Sent {
                etag: "W/\"datetime'2014-08-22T00%3A50%3A32.1234567Z'\"",
                timestamp: "2014-08-22T00:50:32.1234567Z",
                entity: plain,
            };
            (row, serde_json::to_string(&sent).unwrap())
        }
    };
}

types! {
    Employee PlainEmployee "empid_{id:06}"
    Customer PlainCustomer "customer_{id:06}"
    Contractor PlainContractor "contractor_{id:06}"
    Applicant PlainApplicant "applicant_{id:06}"
    Pensioner PlainPensioner "pensioner_{id:06}"
}

pub(crate) fn run() {
    // One after the other, so that the rows lie as closely together as those of one type.
    let mixed: Vec<Row> = (0..ROWS).map(|number| row(number).0).collect();
    let json: Vec<String> = (0..ROWS).map(|number| row(number).1).collect();
    let known = known();
    // As a query gives them back, the types come one after the other.
    let mut order: Vec<usize> = (0..ROWS).collect();
    order.sort_unstable_by_key(|number| (number / PIECE, number % 5));
    let sorted: Vec<Row> = order.into_iter().map(|number| row(number).0).collect();
    let pieces = ROWS / PIECE;
    let (ours, one) =
        in_pieces(pieces, |at| decode::<StaffRow>(&mixed, at), |at| decode_known(&known, at));
    figure("resolve.mixed", one.as_secs_f64() / ours.as_secs_f64(), ">= 0.9");
    note("resolve.mixed rows/s", ROWS as f64 / ours.as_secs_f64());
    let (ours, floor) = in_pieces(
        pieces,
        |at| decode::<StaffRow>(&mixed, at),
        |at| {
            for (number, row) in mixed.chunks(PIECE).nth(at).unwrap().iter().enumerate() {
                black_box(in_order(black_box(row), number));
            }
        },
    );
    note(
        "resolve.mixed beside five types in known order",
        floor.as_secs_f64() / ours.as_secs_f64(),
    );
    let (ours, one) =
        in_pieces(pieces, |at| decode::<StaffRow>(&sorted, at), |at| decode_known(&known, at));
    note("resolve.mixed in the order of the keys", one.as_secs_f64() / ours.as_secs_f64());
    let (ours, one) =
        in_pieces(pieces, |at| decode::<StaffRow>(&known, at), |at| decode_known(&known, at));
    note("resolve.one_type through the set", one.as_secs_f64() / ours.as_secs_f64());
    let (other, one) =
        in_pieces(pieces, |at| decode::<AnyRow>(&mixed, at), |at| decode_known(&known, at));
    note("resolve.with_other beside one type", one.as_secs_f64() / other.as_secs_f64());
    let (ours, serde) =
        in_pieces(pieces, |at| decode::<StaffRow>(&mixed, at), |at| parse(&json, at));
    figure("resolve.serde", serde.as_secs_f64() / ours.as_secs_f64(), ">= 3");
}

fn decode<T: FromRow>(rows: &[Row], piece: usize) {
    for row in rows.chunks(PIECE).nth(piece).unwrap() {
        black_box(T::from_row(black_box(row)).unwrap());
    }
}

fn parse(rows: &[String], piece: usize) {
    for row in rows.chunks(PIECE).nth(piece).unwrap() {
        black_box(serde_json::from_str::<Plain>(black_box(row)).unwrap());
    }
}
