use entable::prelude::*;

#[derive(TableEntity)]
#[table(name = "Staff", partition_key = "{department}", row_key = "{id:06}")]
struct Older {
    department: String,
    id: u32,
}

#[derive(TableEntity)]
#[table(name = "Staff", partition_key = "{department}", row_key = "{id:06}", version = "2", upgrade_from(Older))]
struct Quoted {
    department: String,
    id: u32,
}

#[derive(TableEntity)]
#[table(name = "Staff", partition_key = "{department}", row_key = "{id:06}", verson = 2, upgrade_from(Older))]
struct Versioned {
    department: String,
    id: u32,
}

#[derive(TableEntity)]
#[table(
    name = "Staff",
    partition_key = "{department}",
    row_key = "{id:06}",
    index(ByMail, partition_key = "mail", row_key = "{mail}", uniqe)
)]
struct Unique {
    department: String,
    id: u32,
    mail: String,
}

#[derive(TableEntity)]
#[table(
    name = "Staff",
    partition_key = "{department}",
    row_key = "{id:06}",
    index(ByMail, partiton_key = "{mail}", row_key = "{id:06}_{department}")
)]
struct Elsewhere {
    department: String,
    id: u32,
    mail: String,
}

#[derive(TableEntity)]
#[table(
    name = "Staff",
    partition_key = "{department}",
    row_key = "{id:06}",
    indx(ByMail, row_key = "mail_{mail}")
)]
struct Listed {
    department: String,
    id: u32,
    mail: String,
}

#[derive(TableEntity)]
#[table(name = "Staff", partition_key = "{department}", row_key = "{id:06}", wid)]
struct Wide {
    department: String,
    id: u32,
    #[table(part = 2)]
    letter: String,
    #[table(part = 3)]
    photo: Vec<u8>,
}

#[derive(TableEntity)]
#[table(name = "Staff", partition_key = "{department}", row_key = "{id:06}", wide)]
struct Parts {
    department: String,
    id: u32,
    name: String,
    #[table(prt = 2)]
    letter: String,
}

#[derive(TableEntity)]
#[table(name = "Staff", partition_key = "{department}", row_key = "{id:06}")]
struct Secret {
    department: String,
    id: u32,
    #[table(encrpt, blind)]
    code: String,
    #[table(flaten)]
    boss: KeyRef<Older>,
    #[table(renam = "At")]
    timestamp: i64,
}

#[derive(TableEntity)]
#[table(
    name = "Staff",
    partition_key = "{at:%Y%m%d}",
    row_key = "{id:06}",
    alow(hot_partition),
    discriminator = kind,
    rename_al = "camelCase"
)]
struct Hot {
    at: time::OffsetDateTime,
    id: u32,
    #[table(rename = "EntityType")]
    kind: String,
    row_key: String,
}

#[derive(TableEntity)]
#[table(name = Staff, partition_key = "{department}", row_key = "{id:06}", allow(hot))]
struct Me {
    department: String,
    id: u32,
}

fn main() {
    let _ = Elsewhere::by_mail().mail("a@b.c").id(1).department("Sales");
    let _ = Listed::by_mail().department("Sales").mail("a@b.c");
}
