//! Tests derives with unusual names and shapes.

use entable::{Bag, prelude::*};

use crate::table;

#[derive(Debug, Clone, PartialEq, TableEntity)]
#[table(name = "Names", partition_key = "{query}_{from}", row_key = "{filter}_{self_}_{keys}")]
struct Names {
    query: u32,
    from: String,
    filter: String,
    self_: bool,
    keys: u8,
    r#type: String,
    r#fn: Option<i32>,
    row: i32,
    out: i32,
    slots: Option<String>,
    error: String,
    name: String,
    value: i64,
    entity: String,
    prefix: String,
    properties: i32,
    part: Option<bool>,
    template: i32,
    set: i32,
    key: i32,
    family: i32,
    x: Option<i32>,
    remove: Option<i32>,
    into: Option<i32>,
    clone: Option<i32>,
    default: i32,
    bounds: i32,
    access: i32,
}

fn names() -> Names {
    Names {
        query: 1,
        from: "f".into(),
        filter: "g_h".into(),
        self_: true,
        keys: 3,
        r#type: "t".into(),
        r#fn: Some(1),
        row: 1,
        out: 2,
        slots: None,
        error: "e".into(),
        name: "n".into(),
        value: 4,
        entity: "e".into(),
        prefix: "p".into(),
        properties: 1,
        part: None,
        template: 2,
        set: 4,
        key: 5,
        family: 6,
        x: None,
        remove: Some(1),
        into: Some(2),
        clone: Some(3),
        default: 4,
        bounds: 5,
        access: 6,
    }
}

#[tokio::test]
async fn fields_may_be_called_what_they_like() -> Result<(), Error> {
    let all = table::<Names>().await;
    all.insert(&names()).await?;
    let step = Names::primary().query(1).from("f").filter("g_h").self_(true);
    assert_eq!(*all.get(step.clone().keys(3)).await?.unwrap(), names());
    let found = all.query(step).filter(Names::TYPE.eq("t") & Names::FN.eq(1)).collect().await?;
    assert_eq!(found.len(), 1);
    all.patch_at(
        Names::primary().query(1).from("f").filter("g_h").self_(true).keys(3),
        Names::patch().set(9).remove_into().clone(4).remove_fn(),
    )
    .await?;
    Ok(())
}

#[derive(Debug, Clone, PartialEq, Properties)]
struct Inner {
    a: Option<i32>,
    b: Option<String>,
}

#[derive(Debug, Clone, PartialEq, Properties)]
struct Middle {
    #[table(flatten(prefix = "In"))]
    inner: Option<Inner>,
    #[table(flatten(prefix = "Other"))]
    other: Inner,
    c: Option<bool>,
}

#[derive(Debug, Clone, PartialEq, TableEntity)]
#[table(name = "Nested", partition_key = "p", row_key = "{id}")]
struct Nested {
    id: u8,
    #[table(flatten(prefix = "M"))]
    middle: Option<Middle>,
    #[table(flatten)]
    own: Option<Inner>,
    #[table(extra)]
    extra: Bag,
}

#[derive(Debug, PartialEq, Projection)]
#[table(of = Nested)]
struct Some1 {
    id: u8,
    middle: Option<Middle>,
}

#[tokio::test]
async fn nested_optional_structs_come_back() -> Result<(), Error> {
    let all = table::<Nested>().await;
    let full = Inner { a: Some(1), b: Some("b".into()) };
    let half = Inner { a: None, b: Some("b".into()) };
    let mut extra = Bag::new();
    extra.set("Min", 3);
    let rows = [
        Nested { id: 1, middle: None, own: None, extra },
        Nested {
            id: 2,
            middle: Some(Middle { inner: Some(full.clone()), other: half.clone(), c: None }),
            own: Some(half.clone()),
            extra: Bag::new(),
        },
        Nested {
            id: 3,
            middle: Some(Middle { inner: None, other: half, c: Some(true) }),
            own: Some(full),
            extra: Bag::new(),
        },
    ];
    for row in &rows {
        all.insert(row).await?;
        assert_eq!(*all.get(Nested::primary().id(row.id)).await?.unwrap(), *row);
        let part = all.get_as::<Some1>(Nested::primary().id(row.id)).await?.unwrap();
        assert_eq!(part.middle, row.middle);
    }
    let filter =
        Nested::MIDDLE.within(Middle::INNER).at(Inner::A).ge(1) | Nested::OWN.at(Inner::B).eq("x");
    assert_eq!(all.query(Nested::primary()).filter(filter).collect().await?.len(), 1);
    let parts = all.query(Nested::primary()).select::<Some1>().collect().await?;
    assert_eq!(parts[1].middle, rows[1].middle);
    Ok(())
}

#[derive(Debug, Clone, PartialEq, TableEntity)]
#[table(name = "Case", partition_key = "p", row_key = "{id}", rename_all = "camelCase")]
struct Case {
    id: u8,
    etag: String,
    timestamp: i32,
    #[table(rename = "É")]
    e: i32,
}

#[tokio::test]
async fn names_that_look_reserved_are_ordinary() -> Result<(), Error> {
    let all = table::<Case>().await;
    let row = Case { id: 1, etag: "x".into(), timestamp: 2, e: 3 };
    all.insert(&row).await?;
    assert_eq!(*all.get(Case::primary().id(1)).await?.unwrap(), row);
    let found = all.query(Case::primary()).filter(Case::E.eq(3) & Case::ETAG.eq("x"));
    assert_eq!(found.collect().await?.len(), 1);
    Ok(())
}

#[deny(warnings)]
mod without_warnings {
    use entable::prelude::*;

    #[allow(non_snake_case)]
    #[derive(Debug, TableEntity)]
    #[table(name = "Quiet", partition_key = "{tail_}", row_key = "{isHot:bucket(4)}_{isHot}")]
    pub(super) struct Quiet {
        tail_: String,
        isHot: String,
        _note: Option<String>,
        #[deprecated]
        old: Option<i32>,
        ö: i32,
    }

    #[test]
    fn generated_names_raise_no_warnings() {
        let _ = Quiet::primary().tail_("x").isHot("y");
    }
}
