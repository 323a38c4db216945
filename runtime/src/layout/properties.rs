//! Compares the properties that the layout file and the code give one version of an entity type.

use super::{
    keys::OldAndNewEntity,
    needs::{EntityTypeChanges, Needs},
    shape::{EntityShape, PropertyEncryptionShape, PropertyShape, SeriesShape},
};

const REENCRYPT: &str = "give the client `PlaintextPolicy::Allow`, run `table.reencrypt()`, then go \
                         back to `Reject`";

pub(super) fn compare_properties(versions: OldAndNewEntity<'_>, changes: &mut EntityTypeChanges) {
    let OldAndNewEntity { old, new } = versions;
    for was in &old.properties {
        if let Some(is) = new.properties.iter().find(|is| is.name == was.name) {
            compare_property(was, is, changes);
        }
    }
    // A property that holds the name of a blob now, or held it, is compared with blobs.
    let is_blob = |entity: &EntityShape, name: &str| entity.blobs.iter().any(|b| b.name == name);
    let is_gone = |was: &&PropertyShape| {
        !new.has_property_or_key_field(&was.name) && !is_blob(new, &was.name)
    };
    let is_new =
        |is: &&PropertyShape| !old.has_property_or_key_field(&is.name) && !is_blob(old, &is.name);
    let gone: Vec<_> = old.properties.iter().filter(is_gone).collect();
    let mut come: Vec<_> = new.properties.iter().filter(is_new).collect();
    for was in gone {
        // Only a property that is equal in all else can hold the stored values of the one that is
        // gone.
        let renamed = come.iter().position(|is| {
            PropertyShape { name: was.name.clone(), ..PropertyShape::clone(is) } == *was
        });
        match renamed {
            Some(at) => report_property_rename(was, come.remove(at), changes),
            None => report_removed_property(was, changes),
        }
    }
    come.into_iter().for_each(|is| report_added_property(is, changes));
    compare_all_series(versions, changes);
}

fn report_property_rename(
    was: &PropertyShape,
    is: &PropertyShape,
    changes: &mut EntityTypeChanges,
) {
    let (was, is) = (&was.name, &is.name);
    changes.push(
        Needs::Version,
        format!("property `{was}` is gone and `{is}` of the same type is new: a renamed field"),
        format!(
            "keep the stored name with `#[table(rename = \"{was}\")]`, which needs nothing else; or raise \
             `version`, keep the earlier struct as `upgrade_from`, and run `table.upgrade_all()`"
        ),
    );
}

fn report_removed_property(was: &PropertyShape, changes: &mut EntityTypeChanges) {
    let how = match was.is_optional || was.has_default {
        true => "stored rows keep the value until they are replaced",
        false => {
            "deploy all readers before the first writer: programs of the earlier layout cannot read \
             rows without it"
        }
    };
    changes.push(Needs::Nothing, format!("property `{}` is gone", was.name), how);
}

fn report_added_property(is: &PropertyShape, changes: &mut EntityTypeChanges) {
    let what = format!("property `{}` ({}) is new", is.name, is.edm);
    if is.is_optional || is.has_default {
        let hidden = is.encryption.as_ref().is_some_and(|encryption| encryption.hides_none);
        match hidden {
            true => changes.push(Needs::Migration, what, REENCRYPT),
            false => changes.push(Needs::Nothing, what, "rows without it are read"),
        }
    } else {
        let how = "rows without it cannot be read: give the field `#[table(default)]` or make it an \
                   `Option`; or raise `version` with `upgrade_from`, and run `table.upgrade_all()`";
        changes.push(Needs::Version, what, how);
    }
}

fn compare_property(was: &PropertyShape, is: &PropertyShape, changes: &mut EntityTypeChanges) {
    let name = &was.name;
    if was.edm != is.edm {
        let what = format!("property `{name}` was {} and is {}", was.edm, is.edm);
        match (was.edm.as_str(), is.edm.as_str()) {
            // `i64` and `f64` also read an Int32, but the service compares it as the type that is
            // stored.
            ("Int32", "Int64" | "Double") => changes.push(
                Needs::Nothing,
                what,
                "stored values are read as the wider type; deploy all readers before the first \
                 writer; filters compare only values of the new type, so run `table.upgrade_all()` \
                 of a new `version` if you filter by it",
            ),
            _ => changes.push(
                Needs::Version,
                what,
                "stored values cannot be read: raise `version`, keep the earlier struct as \
                 `upgrade_from`, and run `table.upgrade_all()`",
            ),
        }
    }
    if was.part != is.part {
        changes.push(
            Needs::Version,
            format!("property `{name}` is in part {}, not in part {}", is.part, was.part),
            "stored values would not be found: raise `version`, keep the earlier struct as \
             `upgrade_from`, and run `table.upgrade_all()`",
        );
    }
    let (was_absent, is_absent) =
        (was.is_optional || was.has_default, is.is_optional || is.has_default);
    match (was_absent, is_absent) {
        (true, false) => changes.push(
            Needs::Version,
            format!("property `{name}` may no longer be absent"),
            "rows without it cannot be read: give the field `#[table(default)]`; or raise `version` \
             with `upgrade_from`, and run `table.upgrade_all()`",
        ),
        (false, true) => changes.push(
            Needs::Nothing,
            format!("property `{name}` may be absent"),
            "deploy all readers before the first writer: programs of the earlier layout cannot read \
             rows without it",
        ),
        _ => {
            if (was.is_optional, was.has_default) != (is.is_optional, is.has_default) {
                let what = format!("property `{name}` is read in another way where it is absent");
                changes.push(Needs::Nothing, what, "stored rows are read as before");
            }
        }
    }
    compare_encryption(name, was.encryption.as_ref(), is.encryption.as_ref(), changes);
}

fn compare_encryption(
    name: &str,
    was: Option<&PropertyEncryptionShape>,
    is: Option<&PropertyEncryptionShape>,
    changes: &mut EntityTypeChanges,
) {
    let (was, is) = match (was, is) {
        (None, None) => return,
        (None, Some(_)) => {
            let what = format!("property `{name}` is now encrypted");
            return changes.push(Needs::Migration, what, REENCRYPT);
        }
        (Some(_), None) => {
            let what = format!("property `{name}` is no longer encrypted");
            let how = "stored values stay encrypted, also when they are written back: raise \
                       `version` with `upgrade_from`, run `table.upgrade_all()` and keep the keys";
            return changes.push(Needs::Migration, what, how);
        }
        (Some(was), Some(is)) => (was, is),
    };
    if was.pad != is.pad {
        let what = format!("values of `{name}` are padded to {} bytes, not {}", is.pad, was.pad);
        let how = "stored values are read; `table.reencrypt()` pads them";
        changes.push(Needs::Nothing, what, how);
    }
    if was.hides_none != is.hides_none {
        let what = match is.hides_none {
            true => format!("absent values of `{name}` are now hidden"),
            false => format!("absent values of `{name}` are no longer hidden"),
        };
        match is.hides_none {
            true => changes.push(Needs::Migration, what, REENCRYPT),
            false => changes.push(Needs::Nothing, what, "stored rows are read as before"),
        }
    }
    if was.blind != is.blind {
        match &is.blind {
            Some((token, chars)) => changes.push(
                Needs::Migration,
                format!("the blind token of `{name}` is `{token}` of {chars} characters"),
                "filters do not find rows with another token or none: run `table.reencrypt()`",
            ),
            None => changes.push(
                Needs::Nothing,
                format!("`{name}` has no blind token any more"),
                "stored tokens stay until `table.reencrypt()`",
            ),
        }
    }
}

fn compare_all_series(versions: OldAndNewEntity<'_>, changes: &mut EntityTypeChanges) {
    let OldAndNewEntity { old, new } = versions;
    for was in &old.series {
        match new.series.iter().find(|is| is.field == was.field) {
            Some(is) => compare_series(was, is, changes),
            None => changes.push(
                Needs::Version,
                format!("{} is gone, {} properties from `{}`", series_noun(was), was.slots, was.first.name),
                "stored rows keep its properties, and programs of the earlier layout read rows \
                 without it as empty: raise `version` with `upgrade_from`, so that `table.upgrade_all()` \
                 can move its values",
            ),
        }
    }
    for is in &new.series {
        if !old.series.iter().any(|was| was.field == is.field) {
            let what = format!("{} is new, {} properties", series_noun(is), is.slots);
            changes.push(Needs::Nothing, what, "rows without it are read");
        }
    }
}

fn series_noun(series: &SeriesShape) -> String {
    let kind = if series.is_split { "split field" } else { "series" };
    format!("{kind} `{}`", series.field)
}

fn compare_series(was: &SeriesShape, is: &SeriesShape, changes: &mut EntityTypeChanges) {
    let name = series_noun(is);
    let converted = "raise `version`, keep the earlier struct as `upgrade_from`, and run \
                     `table.upgrade_all()`";
    if was.first.name != is.first.name || was.is_split != is.is_split {
        let what =
            format!("{name} is stored from `{}` on, not from `{}`", is.first.name, was.first.name);
        // Stored slots have other names or another meaning, so no further difference counts.
        return changes.push(
            Needs::Version,
            what,
            format!("stored values would not be found: {converted}"),
        );
    }
    if was.slots > is.slots {
        let what = format!(
            "{name} is shortened from {} to {} properties, `{}` was its last",
            was.slots, is.slots, was.last
        );
        let how = format!("the values behind its end would be lost: {converted}");
        changes.push(Needs::Version, what, how);
    } else if was.slots < is.slots {
        let what = format!("{name} is lengthened from {} to {} properties", was.slots, is.slots);
        let how = "rows without the new ones are read; deploy all readers before the first writer: \
                   programs of the earlier layout do not see the new properties";
        changes.push(Needs::Nothing, what, how);
    } else if was.last != is.last {
        let what = format!("{name} ends with `{}`, not with `{}`", is.last, was.last);
        changes.push(
            Needs::Version,
            what,
            format!("stored values would not be found: {converted}"),
        );
    }
    let first = PropertyShape { name: is.first.name.clone(), ..was.first.clone() };
    compare_property(&first, &is.first, changes);
}
