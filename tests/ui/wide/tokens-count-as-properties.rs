use entable::prelude::*;

// 244 slots, four values with a token each, and the type are 253 properties.
#[derive(TableEntity)]
#[table(name = "Staff", partition_key = "{department}", row_key = "id_{id:06}")]
struct Employee {
    department: String,
    id: u32,
    #[table(series, encrypt)]
    days: [u8; 244],
    #[table(encrypt, blind)]
    ssn: String,
    #[table(encrypt, blind)]
    email: String,
    #[table(encrypt, blind)]
    phone: String,
    #[table(encrypt, blind)]
    street: String,
}

// 243 slots and three values with a token each are 249 properties of part 1; the token of `street` is
// the 251st.
#[derive(TableEntity)]
#[table(name = "Staff", partition_key = "{department}", row_key = "wide_{id:06}", wide)]
struct Wide {
    department: String,
    id: u32,
    #[table(series, encrypt)]
    mornings: [u8; 122],
    #[table(series, encrypt)]
    evenings: [u8; 121],
    #[table(encrypt, blind)]
    ssn: String,
    #[table(encrypt, blind)]
    email: String,
    #[table(encrypt, blind)]
    phone: String,
    #[table(encrypt, blind)]
    street: String,
    #[table(part = 2)]
    notes: String,
}

fn main() {}
