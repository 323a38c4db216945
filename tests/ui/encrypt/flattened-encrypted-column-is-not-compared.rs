use entable::prelude::*;

#[derive(Properties)]
struct Account {
    #[table(encrypt)]
    iban: String,
}

#[derive(TableEntity)]
#[table(name = "Staff", partition_key = "{department}", row_key = "{id:06}")]
struct Employee {
    department: String,
    id: u32,
    #[table(flatten)]
    account: Account,
}

fn main() {
    let _ = Employee::ACCOUNT.at(Account::IBAN).eq("DE02");
}
