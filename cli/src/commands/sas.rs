//! The command that makes addresses for others.

use crate::{args::Sas, failure::Failure, output::Output};

#[cfg(not(feature = "azure"))]
pub(crate) fn sas(_: &Output, sas: &Sas) -> Result<(), Failure> {
    // Says which feature lacks, or that a file has no addresses.
    crate::store::open(&sas.store, false)?;
    Err(Failure::usage(format!(
        "`{}` is a file; only tables on Azure or an emulator have a signature",
        sas.store
    )))
}

#[cfg(feature = "azure")]
pub(crate) fn sas(output: &Output, sas: &Sas) -> Result<(), Failure> {
    use entable::sas::{TablePermissions, TableSas};
    use serde_json::json;
    use time::{Duration, OffsetDateTime};

    let client = crate::store::open(&sas.store, false)?;
    let mut permissions = TablePermissions::NONE;
    for letter in sas.permissions.chars() {
        permissions = permissions
            | match letter {
                'r' => TablePermissions::READ,
                'a' => TablePermissions::ADD,
                'u' => TablePermissions::UPDATE,
                'd' => TablePermissions::DELETE,
                other => {
                    let message = format!(
                        "--permissions: expected r, a, u and d, found `{}`",
                        other.escape_debug()
                    );
                    return Err(Failure::usage(message));
                }
            };
    }
    // A signature ends in whole seconds.
    let until = OffsetDateTime::now_utc() + Duration::minutes(i64::from(sas.minutes));
    let mut terms = TableSas::new(&sas.table).permissions(permissions).expires(until);
    if let Some(from) = &sas.from {
        terms = terms.keys_from(from, None);
    }
    if let Some(to) = &sas.to {
        terms = terms.keys_to(to, None);
    }
    if sas.store.starts_with("http://") {
        terms = terms.allow_http();
    }
    let address = client.sas(&terms)?.to_url(&client.table_url(&sas.table)?);
    output.say(|| address.clone(), || json!({"url": address, "minutes": sas.minutes}))
}
