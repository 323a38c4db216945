//! A stored row to an entity, beside serde_json from the service's JSON to a plain struct.

use std::hint::black_box;

use entable::{Row, TableEntity};
use serde::{Deserialize, Serialize, de::DeserializeOwned};
use time::{OffsetDateTime, macros::datetime};

use crate::{
    data,
    figure::{figure, in_turns, note},
    flight::Flight,
};

/// Entities that are decoded in a repeat.
const ENTITIES: usize = 200_000;

/// The entity of the guide.
#[derive(Debug, TableEntity)]
#[table(name = "Staff", partition_key = "{department}", row_key = "empid_{id:06}")]
struct Employee {
    department: String,
    id: u32,
    first_name: String,
    last_name: String,
    age: i32,
    email: String,
    salary: f64,
    hired: OffsetDateTime,
}

/// The same as the service sends it: the keys are text, and so is what goes before each DateTime.
#[derive(Debug, Serialize, Deserialize)]
#[serde(rename_all = "PascalCase")]
struct PlainEmployee {
    partition_key: String,
    row_key: String,
    first_name: String,
    last_name: String,
    age: i32,
    email: String,
    salary: f64,
    #[serde(rename = "Hired@odata.type", skip_deserializing)]
    hired_type: &'static str,
    #[serde(with = "time::serde::rfc3339")]
    hired: OffsetDateTime,
}

#[derive(Debug, Serialize, Deserialize)]
#[serde(rename_all = "PascalCase")]
struct PlainFlight {
    partition_key: String,
    row_key: String,
    carrier: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    tailnum: Option<String>,
    dest: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    dep_time: Option<u16>,
    #[serde(skip_serializing_if = "Option::is_none")]
    dep_delay: Option<i32>,
    sched_arr_time: u16,
    #[serde(skip_serializing_if = "Option::is_none")]
    arr_time: Option<u16>,
    #[serde(skip_serializing_if = "Option::is_none")]
    arr_delay: Option<i32>,
    #[serde(skip_serializing_if = "Option::is_none")]
    air_time: Option<u16>,
    distance: u16,
    #[serde(rename = "Left@odata.type", skip_deserializing)]
    left_type: &'static str,
    #[serde(with = "time::serde::rfc3339")]
    left: OffsetDateTime,
}

/// The head of every entity with minimal metadata.
#[derive(Serialize)]
struct Sent<'a, T> {
    #[serde(rename = "odata.etag")]
    etag: &'a str,
    #[serde(rename = "Timestamp")]
    timestamp: &'a str,
    #[serde(rename = "EntityType")]
    entity_type: &'a str,
    #[serde(flatten)]
    entity: T,
}

fn sent<T: Serialize>(entity_type: &str, entity: T) -> String {
    let etag = "W/\"datetime'2013-01-01T10%3A15%3A23.1234567Z'\"";
    let timestamp = "2013-01-01T10:15:23.1234567Z";
    serde_json::to_string(&Sent { etag, timestamp, entity_type, entity }).unwrap()
}

pub(crate) fn run() {
    let employees: Vec<Employee> = (0..1_000).map(employee).collect();
    let json: Vec<String> = employees.iter().map(|e| sent("Employee", plain_employee(e))).collect();
    compare::<Employee, PlainEmployee>("decode_employee", &employees, &json);

    let mut flights = data::week();
    flights.truncate(1_000);
    let json: Vec<String> = flights.iter().map(|f| sent("Flight", plain_flight(f))).collect();
    compare::<Flight, PlainFlight>("decode_flight", &flights, &json);
}

fn compare<E: TableEntity, P: DeserializeOwned>(name: &str, entities: &[E], json: &[String]) {
    let rows: Vec<Row> = entities.iter().map(|entity| entity.to_row().unwrap()).collect();
    let stored: Vec<bytes::Bytes> =
        rows.iter().map(|row| bytes::Bytes::copy_from_slice(&row.as_bytes())).collect();
    let rounds = ENTITIES / entities.len();
    let (ours, theirs) = in_turns(
        || {
            for bytes in std::iter::repeat_n(&stored, rounds).flatten() {
                let row = Row::from_bytes(black_box(bytes).clone()).unwrap();
                black_box(E::from_row(&row).unwrap());
            }
        },
        || {
            for text in std::iter::repeat_n(json, rounds).flatten() {
                black_box(serde_json::from_slice::<P>(black_box(text.as_bytes())).unwrap());
            }
        },
    );
    let count = (rounds * entities.len()) as f64;
    figure(name, theirs.as_secs_f64() / ours.as_secs_f64(), ">= 3.0");
    note(&format!("{name} ns"), format!("{:.0}", ours.as_secs_f64() * 1e9 / count));
    note(&format!("{name} ns serde_json"), format!("{:.0}", theirs.as_secs_f64() * 1e9 / count));
    let size = stored.first().map_or(0, bytes::Bytes::len);
    note(
        &format!("{name} bytes, row and JSON"),
        format!("{size} {}", json.first().map_or(0, String::len)),
    );
}

fn employee(number: u32) -> Employee {
    Employee {
        department: "Sales".into(),
        id: number,
        first_name: "Don".into(),
        last_name: format!("Hall{number}"),
        age: 34,
        email: format!("don.hall{number}@contoso.com"),
        salary: 12_345.5 + f64::from(number),
        hired: datetime!(2014-08-22 00:50:32 UTC) + time::Duration::minutes(number.into()),
    }
}

fn plain_employee(e: &Employee) -> PlainEmployee {
    PlainEmployee {
        partition_key: e.department.clone(),
        row_key: format!("empid_{:06}", e.id),
        first_name: e.first_name.clone(),
        last_name: e.last_name.clone(),
        age: e.age,
        email: e.email.clone(),
        salary: e.salary,
        hired_type: "Edm.DateTime",
        hired: e.hired,
    }
}

fn plain_flight(f: &Flight) -> PlainFlight {
    let row = f.to_row().unwrap();
    PlainFlight {
        partition_key: row.partition_key().to_owned(),
        row_key: row.row_key().to_owned(),
        carrier: f.carrier.clone(),
        tailnum: f.tailnum.clone(),
        dest: f.dest.clone(),
        dep_time: f.dep_time,
        dep_delay: f.dep_delay,
        sched_arr_time: f.sched_arr_time,
        arr_time: f.arr_time,
        arr_delay: f.arr_delay,
        air_time: f.air_time,
        distance: f.distance,
        left_type: "Edm.DateTime",
        left: f.left,
    }
}
