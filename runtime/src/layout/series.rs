//! Compares the series and split fields of one version of an entity type, as the layout file has them, with
//! those in the code.

use super::{
    keys::OldAndNewEntity,
    needs::{EntityTypeChanges, REENCRYPT, RequiredWork, UPGRADE},
    properties::compare_property,
    shape::{EntityShape, PropertyShape, SeriesShape, SlotOrPiece},
};

pub(super) fn compare_all_series(versions: OldAndNewEntity<'_>, changes: &mut EntityTypeChanges) {
    let OldAndNewEntity { old, new } = versions;
    for was in &old.properties {
        if let Some(slot) = new.find_slot(&was.name).filter(|_| !new.has_property(&was.name)) {
            report_property_as_slot(was, &slot, changes);
        }
    }
    for was in &old.series {
        match new.find_series_counterpart(was) {
            Some(is) => compare_series(versions, was, is, changes),
            None => changes.push(
                RequiredWork::Version,
                format!(
                    "{} is gone, {} properties from `{}`",
                    series_noun(was),
                    was.slots,
                    was.first.name
                ),
                "stored rows keep its properties, and programs of the earlier layout read rows \
                 without it as empty, or not at all: raise `version` with `upgrade_from`, so that \
                 `table.upgrade_all()` can move its values",
            ),
        }
    }
    for is in &new.series {
        if old.find_series_counterpart(is).is_none() {
            report_added_series(old, is, changes);
        }
    }
}

fn series_noun(series: &SeriesShape) -> String {
    let kind = if series.is_split { "split field" } else { "series" };
    format!("{kind} `{}`", series.field)
}

/// Reports a separate property that is now a slot or a piece.
fn report_property_as_slot(
    was: &PropertyShape,
    slot: &SlotOrPiece<'_>,
    changes: &mut EntityTypeChanges,
) {
    let SlotOrPiece { series, at } = slot;
    let kind = if series.is_split { "piece" } else { "slot" };
    let what =
        format!("property `{}` is now {kind} {} of {}", was.name, at + 1, series_noun(series));
    if series.is_split {
        let how = format!("rows without the other pieces cannot be read: {UPGRADE}");
        return changes.push(RequiredWork::Version, what, how);
    }
    let part = series.part_of_slot(*at);
    let is = PropertyShape { name: was.name.clone(), part, ..series.first.clone() };
    changes.push(RequiredWork::Nothing, what, "stored values are read as those of the slot");
    compare_property(was, &is, changes);
}

fn report_added_series(old: &EntityShape, is: &SeriesShape, changes: &mut EntityTypeChanges) {
    let what = format!("{} is new, {} properties", series_noun(is), is.slots);
    // Properties of the row that become pieces are reported one by one.
    let has_pieces = is.property_names().any(|name| old.has_slot_or_blob_property(&name));
    if is.is_split && !is.first.is_optional {
        let how = format!(
            "rows without all pieces cannot be read: make the field an `Option`; or {UPGRADE}"
        );
        changes.push(RequiredWork::Version, what, how);
    } else if has_pieces {
        let how = format!("stored rows hold other values under its names: {UPGRADE}");
        changes.push(RequiredWork::Version, what, how);
    } else if is.first.hides_absence() {
        changes.push(RequiredWork::Migration, what, REENCRYPT);
    } else {
        changes.push(RequiredWork::Nothing, what, "rows without it are read");
    }
}

fn compare_series(
    versions: OldAndNewEntity<'_>,
    was: &SeriesShape,
    is: &SeriesShape,
    changes: &mut EntityTypeChanges,
) {
    let name = series_noun(is);
    if was.first.name != is.first.name || was.is_split != is.is_split {
        let what =
            format!("{name} is stored from `{}` on, not from `{}`", is.first.name, was.first.name);
        // Stored slots have other names or another meaning, so no further difference counts.
        return changes.push(
            RequiredWork::Version,
            what,
            format!("stored values would not be found: {UPGRADE}"),
        );
    }
    if was.field != is.field {
        changes.push(
            RequiredWork::Nothing,
            format!("{} is now called `{}` in the code", series_noun(was), is.field),
            "its properties keep their names",
        );
    }
    if was.slots != is.slots {
        report_other_length(versions, was, is, changes);
    } else if was.last != is.last {
        let what = format!("{name} ends with `{}`, not with `{}`", is.last, was.last);
        changes.push(
            RequiredWork::Version,
            what,
            format!("stored values would not be found: {UPGRADE}"),
        );
    }
    let first = PropertyShape { name: is.first.name.clone(), ..was.first.clone() };
    if is.is_split {
        compare_pieces(&first, is, changes);
    } else {
        compare_property(&first, &is.first, changes);
    }
}

fn report_other_length(
    versions: OldAndNewEntity<'_>,
    was: &SeriesShape,
    is: &SeriesShape,
    changes: &mut EntityTypeChanges,
) {
    let name = series_noun(is);
    let is_shorter = was.slots > is.slots;
    let verb = if is_shorter { "shortened" } else { "lengthened" };
    let mut what = format!("{name} is {verb} from {} to {} properties", was.slots, is.slots);
    if is_shorter {
        what.push_str(&format!(", `{}` was its last", was.last));
        let how = format!("the values behind its end would be lost: {UPGRADE}");
        return changes.push(RequiredWork::Version, what, how);
    }
    // `Day{:03}` in place of `Day{:02}` renames all slots.
    let last_that_was = is.property_name(was.slots.saturating_sub(1));
    if last_that_was != was.last {
        what.push_str(&format!(", and its slot `{}` is called `{last_that_was}`", was.last));
        let how = format!("stored values would not be found: {UPGRADE}");
        return changes.push(RequiredWork::Version, what, how);
    }
    if is.is_split {
        let how = format!("rows without the new pieces cannot be read: {UPGRADE}");
        return changes.push(RequiredWork::Version, what, how);
    }
    let is_wide = versions.old.is_wide() && versions.new.is_wide();
    // A series that begins in another part is reported as its first slot.
    let offset = |series: &SeriesShape, at| series.part_of_slot(at) - series.first.part;
    let moved = (0..was.slots).find(|at| is_wide && offset(was, *at) != offset(is, *at));
    if let Some(at) = moved {
        what.push_str(&format!(
            ", and `{}` moves from part {} to part {}",
            was.property_name(at),
            was.part_of_slot(at),
            is.part_of_slot(at)
        ));
        let how = format!("queries of one part would not find stored values: {UPGRADE}");
        return changes.push(RequiredWork::Version, what, how);
    }
    if is.first.hides_absence() {
        changes.push(RequiredWork::Migration, what, REENCRYPT)
    } else {
        changes.push(
            RequiredWork::Nothing,
            what,
            "rows without the new ones are read; deploy all readers before the first writer: \
             programs of the earlier layout do not see the new properties",
        )
    }
}

/// Compares the first piece of a split field. `was` has the name of the new one.
fn compare_pieces(was: &PropertyShape, is: &SeriesShape, changes: &mut EntityTypeChanges) {
    let name = series_noun(is);
    let mut was = was.clone();
    if was.is_optional != is.first.is_optional {
        let how_to_keep = format!("keep the `Option`; or {UPGRADE}");
        changes.push_changed_optionality(&name, is.first.is_optional, &how_to_keep);
        was.is_optional = is.first.is_optional;
    }
    match (&was.encryption, &is.first.encryption) {
        (None, Some(_)) => changes.push(
            RequiredWork::Migration,
            format!("{name} is now encrypted"),
            "a full piece does not fit once it is encrypted, and `table.reencrypt()` does not cut the value \
             anew: give the client `PlaintextPolicy::Allow`, read each entity and write it with \
             `table.replace(..)`, run `table.reencrypt()` until it is complete, then go back to `Reject`",
        ),
        (Some(old), Some(new)) if old.pad < new.pad => changes.push(
            RequiredWork::Nothing,
            format!("values of `{}` are padded to {} bytes, not {}", was.name, new.pad, old.pad),
            "stored values are read; a full piece does not fit with more padding, so read each entity and \
             write it with `table.replace(..)`, which cuts the value anew, before `table.reencrypt()`",
        ),
        _ => return compare_property(&was, &is.first, changes),
    }
    was.encryption.clone_from(&is.first.encryption);
    compare_property(&was, &is.first, changes);
}
