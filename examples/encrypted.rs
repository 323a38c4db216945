//! Encrypts fields: lookups by a token, attacks that are detected, a change of keys, destroyed keys.
#![allow(clippy::print_stdout, reason = "an example prints what it shows")]

use entable::{KeyScope, Keyring, RootKey, SealFault, backend::Memory, prelude::*};

#[derive(Debug, Clone, PartialEq, TableEntity)]
#[table(
    name = "Patients",
    partition_key = "{clinic}",
    row_key = "patient_{id:06}",
    index(BySsn, row_key = "ssn_{ssn:hmac}")
)]
struct Patient {
    clinic: String,
    id: u32,
    year_of_birth: u16,
    #[table(encrypt)]
    ssn: String,
    #[table(encrypt, blind)]
    insurer: String,
    // Padding hides the length, `hide_none` hides whether there is a value.
    #[table(encrypt(pad = 256, hide_none))]
    diagnosis: Option<String>,
}

fn patient(id: u32, ssn: &str, insurer: &str) -> Patient {
    Patient {
        clinic: "north".into(),
        id,
        year_of_birth: 1980,
        ssn: ssn.into(),
        insurer: insurer.into(),
        diagnosis: (id == 1).then(|| "influenza".into()),
    }
}

/// Builds the keys of a clinic: a data key encrypts values, a blind token key makes tokens. Each clinic is a
/// scope (a group of partitions) with data keys of its own; one blind token key serves all.
fn keys(primary: &RootKey, earlier: Option<&RootKey>) -> Result<Keyring, Error> {
    let north = KeyScope::named("north");
    let mut keys = Keyring::builder()
        .primary(&north, primary)
        .blind_token_key(&KeyScope::default_scope(), 1, &RootKey::from_bytes([9; 32]))
        .scopes(KeyScope::named);
    if let Some(earlier) = earlier {
        keys = keys.decrypt_only(&north, earlier);
    }
    keys.build()
}

#[tokio::main]
async fn main() -> Result<(), Box<dyn std::error::Error>> {
    let store = std::sync::Arc::new(Memory::new());
    let open = |keys| Client::builder().backend(store.clone()).keys(keys).build();
    let (first, second) = (RootKey::generate()?, RootKey::generate()?);

    let client = open(keys(&first, None)?)?;
    let patients = client.table::<Patient>();
    patients.create().await?;
    for (id, ssn, insurer) in [(1, "123-45-6789", "Acme"), (2, "987-65-4321", "Umbrella")] {
        patients.insert(&patient(id, ssn, insurer)).await?;
    }

    // The copy's key holds a token of the number (a keyed hash). The number itself is in no key and no
    // request.
    let path = Patient::by_ssn().clinic("north").ssn("123-45-6789");
    let found = patients.get(path).await?.ok_or("she was inserted")?;
    println!("found by {}: patient {}", found.row_key(), found.id);
    assert_eq!((found.id, found.diagnosis.as_deref()), (1, Some("influenza")));
    assert!(found.row_key().starts_with("ssn_") && !found.row_key().contains("6789"));

    // `blind` stores a token beside the encrypted value, so that a filter can find equal values.
    let acme =
        patients.query(Patient::primary().clinic("north")).filter(Patient::INSURER.eq("Acme"));
    println!("filter: {}", acme.explain().filter);
    assert!(acme.explain().filter.contains("InsurerBlind eq '<token>'"));
    assert_eq!(acme.collect().await?.len(), 1);

    // A patch by key needs no ETag. It reads the row first, because it sets an encrypted property.
    let point = || Patient::primary().clinic("north").id(2);
    patients.patch_at(point(), Patient::patch().diagnosis("sprained ankle")).await?;

    // A client without keys sees only bytes.
    let stranger = Client::builder().backend(store.clone()).build()?;
    let raw = stranger.dynamic("Patients").get("north", "patient_000001").await?.ok_or("a row")?;
    assert!(raw.bytes("Ssn").is_ok() && raw.bytes("Diagnosis").is_ok());
    let error = stranger.table::<Patient>().get(point()).await.err().ok_or("it does not open")?;
    println!("without keys: {error}");
    assert!(error.is_key_unavailable());

    // An attacker copies one patient's encrypted diagnosis to another. Reading it fails, because a value
    // is bound to its table, keys and property.
    let stolen = raw.get("Diagnosis").cloned().ok_or("it is stored")?;
    let mut victim =
        stranger.dynamic("Patients").get("north", "patient_000002").await?.ok_or("a row")?;
    let honest = victim.get("Diagnosis").cloned().ok_or("it is stored")?;
    victim.set("Diagnosis", stolen);
    let mut victim = stranger.dynamic("Patients").replace(&victim).await?;
    let error = patients.get(point()).await.err().ok_or("it does not open")?;
    println!("a moved value: {error}");
    assert_eq!(error.seal_fault(), Some(SealFault::Authentication));
    victim.set("Diagnosis", honest);
    stranger.dynamic("Patients").replace(&victim).await?;

    // A new data key: `reencrypt` finds the rows of the old key and encrypts them again.
    let client = open(keys(&second, Some(&first))?)?;
    let old = entable::DataKey::from_root(&first).id();
    let report = client.table::<Patient>().reencrypt().encrypted_with(old).await?;
    println!("encrypted {} rows again: two patients and their two copies", report.rewritten);
    assert_eq!((report.rewritten, report.is_complete()), (4, true));
    let patients = open(keys(&second, None)?)?.table::<Patient>();
    assert_eq!(patients.query(Patient::primary().clinic("north")).collect().await?.len(), 2);

    // Without its data keys no value of the clinic can be read any more (crypto-shredding).
    let patients = open(keys(&RootKey::generate()?, None)?)?.table::<Patient>();
    let error = patients.get(point()).await.err().ok_or("it does not open")?;
    println!("after the keys are destroyed: {error}");
    assert!(matches!(error.seal_fault(), Some(SealFault::KeyNotFound(_))));
    Ok(())
}
