use entable::prelude::*;

#[derive(TableEntity)]
#[table(name = "Messages", partition_key = "{employee:06}", row_key = "{day:06}")]
struct Day {
    employee: u32,
    day: u32,
    #[table(series)]
    sent: [i32; 24],
    #[table(split(2))]
    text: String,
}

fn main() {
    let _ = Day::SENT.ge(5);
    let _ = Day::TEXT.eq("text");
    let _ = Day::patch().remove_sent(3);
}
