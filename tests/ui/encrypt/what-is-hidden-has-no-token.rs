use entable::TableEntity;

#[derive(TableEntity)]
#[table(name = "Staff", partition_key = "p", row_key = "{id:03}")]
struct Person {
    id: u16,
    #[table(encrypt(hide_none), blind)]
    iban: Option<String>,
}

fn main() {}
