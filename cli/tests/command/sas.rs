//! Addresses for others.

use super::*;

#[test]
fn a_file_has_no_addresses() {
    let place = Place::filled();
    place.run(&["sas", "staff.db", "Staff"]).fails(if cfg!(feature = "azure") { 1 } else { 2 }, "");
}

#[cfg(feature = "azure")]
#[test]
fn an_address_for_others_names_what_it_allows() {
    let place = Place(tempdir().unwrap());
    let emulator = "http://127.0.0.1:10002/devstoreaccount1";
    let arguments = ["sas", emulator, "Staff", "--permissions", "ra", "--from", "a", "--to", "b"];
    let address = place.run(&arguments).ok();
    assert!(address.starts_with(&format!("{emulator}/Staff?")), "{address}");
    for part in ["sp=ra", "spk=a", "epk=b", "tn=Staff", "sig=", "se="] {
        assert!(address.contains(part), "{part}: {address}");
    }
    place.run(&["sas", emulator, "Staff", "--permissions", "x"]).fails(2, "expected r, a, u and d");
}
