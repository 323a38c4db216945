use entable::prelude::*;
use time::OffsetDateTime;

#[derive(TableEntity)]
#[table(name = "Visits{at:%Y%m%d}", partition_key = "{page}", row_key = "{id:06}")]
struct Visit {
    page: String,
    id: u32,
    at: OffsetDateTime,
}

#[derive(TableEntity)]
#[table(name = "Logins{at:%Y%m%d}", partition_key = "{user}", row_key = "{at:desc}")]
struct Login {
    user: String,
    at: OffsetDateTime,
}

fn main() {
    let client = Client::memory();
    let _ = client.table::<Visit>().query(Visit::primary().page("home"));
    let _ = client.table::<Login>().query(Login::primary().user("don"));
}
