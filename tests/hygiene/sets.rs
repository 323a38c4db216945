//! Tests sets without a prelude, with hostile names, through `macro_rules!`, and under another
//! path.
#![no_implicit_prelude]
#![allow(dead_code)]

use ::entable::{DynamicEntity, EntitySet, Projection, TableEntity};
use ::std::{assert, assert_eq, stringify};

mod storage {
    pub(crate) use ::entable as tables;
}

/// Types that are called like what generated code uses.
mod hostile {
    use ::entable::TableEntity;

    #[derive(TableEntity)]
    #[table(name = "Names", partition_key = "p", row_key = "ok_{member}")]
    pub(super) struct Ok {
        pub(super) member: u32,
    }

    #[derive(TableEntity)]
    #[table(
        name = "Names",
        partition_key = "p",
        row_key = "some_{claim}",
        entity_type = "Some",
        version = 2,
        upgrade_from(Older)
    )]
    pub(super) struct Some {
        pub(super) claim: u32,
    }

    #[derive(TableEntity)]
    #[table(name = "Names", partition_key = "p", row_key = "older_{row}", entity_type = "Some")]
    pub(super) struct Older {
        pub(super) row: u32,
    }

    impl ::std::convert::From<Older> for Some {
        fn from(old: Older) -> Self {
            Self { claim: old.row }
        }
    }
}

#[derive(EntitySet)]
enum Result {
    Ok(hostile::Ok),
    Some(hostile::Some),
    #[table(other)]
    None(DynamicEntity),
}

#[derive(EntitySet)]
#[table(crate = "crate::sets::storage::tables")]
struct Vec {
    #[table(one)]
    rows: ::std::option::Option<::entable::Stored<hostile::Ok>>,
    #[table(many)]
    claim: ::std::vec::Vec<hostile::Some>,
    #[table(other)]
    found: ::std::vec::Vec<DynamicEntity>,
}

#[derive(Projection)]
#[table(of = hostile::Ok)]
struct Member {
    member: u32,
}

#[derive(EntitySet)]
enum Only {
    Err(Member),
}

macro_rules! declared {
    ($set:ident: $($variant:ident($member:ty)),*) => {
        #[derive(EntitySet)]
        enum $set {
            $($variant($member),)*
        }
    };
}

declared!(Declared: A(hostile::Ok), B(hostile::Some));

#[test]
fn rows_become_members() {
    let row = hostile::Ok { member: 7 }.to_row().unwrap();
    let read = <Result as ::entable::FromRow>::from_row(&row).unwrap();
    assert!(::std::matches!(read, Result::Ok(ok) if ok.member == 7));
    let row = hostile::Older { row: 8 }.to_row().unwrap();
    let read = <Declared as ::entable::FromRow>::from_row(&row).unwrap();
    assert!(::std::matches!(read, Declared::B(some) if some.claim == 8));
    assert_eq!(stringify!(Only), <Only as ::entable::SetMembers>::MEMBERS.set_name());
}
