//! Tests encrypted fields of wide entities: each part is sealed for its own keys.

use entable::{EdmType, KeyScope, prelude::*};

use crate::fixture::{client, key, keyring, put, ring, root, stored, value};

#[derive(Debug, Clone, PartialEq, TableEntity)]
#[table(name = "Staff", partition_key = "{department}", row_key = "year_{id:06}", wide)]
struct Year {
    department: String,
    id: u32,
    #[table(encrypt, blind)]
    ssn: String,
    #[table(series("Day{:03}"), encrypt)]
    days: [Option<i64>; 365],
    #[table(part = 2, split(2), encrypt)]
    notes: String,
}

#[derive(Debug, Clone, PartialEq, Projection)]
#[table(of = Year)]
struct Person {
    id: u32,
    ssn: String,
}

fn year(id: u32) -> Year {
    let mut days = [None; 365];
    (days[0], days[364]) = (Some(1), Some(365));
    let ssn = format!("123-45-{id:04}");
    Year { department: "Sales".into(), id, ssn, days, notes: "likes tea".into() }
}

fn at(id: u32) -> Point<Year> {
    Year::primary().department("Sales").id(id)
}

#[tokio::test]
async fn parts_are_sealed_and_come_back_through_every_verb() -> Result<(), Error> {
    let (client, _) = client().await;
    let years = client.table::<Year>();
    years.insert(&year(1)).await?;
    let first = stored(&client, "Sales", "year_000001_01").await;
    let second = stored(&client, "Sales", "year_000001_02").await;
    for (row, name) in
        [(&first, "Ssn"), (&first, "Day000"), (&second, "Day364"), (&second, "Notes")]
    {
        assert_eq!(value(row, name).unwrap().edm_type(), EdmType::Binary, "{name}");
    }
    assert!(value(&second, "SsnBlind").is_none() && value(&first, "SsnBlind").is_some());
    assert_eq!(*years.get(at(1)).await?.unwrap(), year(1));

    let mut seen = years.get(at(1)).await?.unwrap();
    years.patch_at(at(1), Year::patch().days(364, 366_i64)).await?;
    seen.days[0] = Some(2);
    assert!(years.replace(&seen).await.unwrap_err().is_precondition_failed());
    let change = |year: &mut Year| {
        year.days[0] = Some(2);
        year.days[1] = None;
        Ok(())
    };
    let updated = years.update(at(1), change).await?;
    assert_eq!((updated.days[0], updated.days[364]), (Some(2), Some(366)));
    years.patch_at(at(1), Year::patch().remove_days(0).notes("none")).await?;
    let read = years.get(at(1)).await?.unwrap();
    assert_eq!((read.days[0], read.days[364], read.notes.as_str()), (None, Some(366), "none"));

    years.insert(&year(2)).await?;
    let all = years.query(Year::primary().department("Sales"));
    assert_eq!(all.collect().await?.len(), 2);
    let one = all.clone().filter(Year::SSN.eq("123-45-0002")).select::<Person>().collect().await?;
    assert_eq!(one.iter().map(|person| person.id).collect::<Vec<_>>(), [2]);
    assert!(years.delete_at(at(1)).await?);
    Ok(())
}

/// A part under the keys of another entity, or another part, does not open.
#[tokio::test]
async fn a_part_of_another_entity_does_not_open() -> Result<(), Error> {
    let (client, _) = client().await;
    let years = client.table::<Year>();
    for id in [1, 2] {
        years.insert(&year(id)).await?;
    }
    let other = stored(&client, "Sales", "year_000002_02").await;
    let mut moved = DynamicEntity::new("Sales", "year_000001_02");
    for (name, value) in other.to_bag()?.iter() {
        moved.set(name, value.clone());
    }
    put(&client, moved.to_row()?).await;
    assert!(years.get(at(1)).await.unwrap_err().is_decrypt());
    let all = years.query(Year::primary().department("Sales")).results().collect().await?;
    let found: Vec<bool> = all.iter().map(Result::is_ok).collect();
    assert_eq!(found, [false, true]);
    Ok(())
}

#[tokio::test]
async fn all_parts_are_sealed_again_with_a_new_key() -> Result<(), Error> {
    let (client, recorder) = client().await;
    client.table::<Year>().insert(&year(1)).await?;
    let keys = ring(2).decrypt_only(&KeyScope::default_scope(), &root(1)).build()?;
    let after = Client::builder().backend(recorder.clone()).keys(keys).build()?;
    let report = after.table::<Year>().reencrypt().retired(key(1).id()).await?;
    assert_eq!((report.rows, report.rewritten, report.is_complete()), (2, 2, true));
    let alone = Client::builder().backend(recorder).keys(keyring(2)).build()?;
    assert_eq!(*alone.table::<Year>().get(at(1)).await?.unwrap(), year(1));
    Ok(())
}
