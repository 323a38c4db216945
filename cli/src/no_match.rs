//! Says why a filter may have matched no row: a property's name in other letters, or a value of another type.

use std::collections::BTreeMap;

use entable::{Comparison, EdmType, Filter, Row};

/// The type of each property of a few rows; more than one if rows differ.
type Types = BTreeMap<String, Vec<EdmType>>;

/// Returns a remark about the first comparison of the filter that none of the rows can meet, whatever their
/// values are. `rows` are some rows of the table.
pub(crate) fn remark_on_no_match(filter: &Filter, rows: &[Row]) -> Option<String> {
    let types = types_of(rows);
    let mut comparisons = Vec::new();
    push_comparisons(filter, &mut comparisons);
    comparisons.into_iter().find_map(|(name, of_value)| match types.get(name) {
        Some(found) => remark_on_type(name, of_value, found),
        None => remark_on_name(name, &types),
    })
}

fn remark_on_type(name: &str, of_value: EdmType, found: &[EdmType]) -> Option<String> {
    let [first, ..] = found else { return None };
    let example = example_of(*first);
    let is_comparable = found.iter().any(|stored| can_be_compared(*stored, of_value));
    (!is_comparable).then(|| {
        format!(
            "no row matches: `{name}` is of type {first}, and the filter compares it with {of_value}; \
             write the value as in `{name} eq {example}`"
        )
    })
}

/// Returns whether a stored value of one type can equal a value of another: numbers are widened to the stored type.
const fn can_be_compared(stored: EdmType, value: EdmType) -> bool {
    use EdmType::{Double, Int32, Int64};
    matches!((stored, value), (Int64 | Double, Int32) | (Double, Int64))
        || stored as u8 == value as u8
}

fn remark_on_name(name: &str, types: &Types) -> Option<String> {
    let other = types.keys().find(|other| other.eq_ignore_ascii_case(name))?;
    Some(format!("no row matches: the property is called `{other}`, not `{name}`"))
}

fn types_of(rows: &[Row]) -> Types {
    let mut types = Types::new();
    for row in rows {
        let mut properties = row.properties();
        // A damaged row is a matter for `check`.
        while let Ok(Some((name, value))) = properties.next() {
            let found = types.entry(String::from_utf8_lossy(name).into_owned()).or_default();
            if !found.contains(&value.edm_type()) {
                found.push(value.edm_type());
            }
        }
    }
    types
}

/// Collects the comparisons that a value of another type never meets. Keys and Timestamps have one type and one
/// name.
fn push_comparisons<'f>(filter: &'f Filter, found: &mut Vec<(&'f str, EdmType)>) {
    match filter {
        Filter::Compare { property, comparison, value }
            if matches!(comparison, Comparison::Eq | Comparison::Gt | Comparison::Ge)
                && !matches!(property.as_str(), "PartitionKey" | "RowKey" | "Timestamp") =>
        {
            found.push((property, value.edm_type()));
        }
        Filter::Property(property) => found.push((property, EdmType::Boolean)),
        Filter::And(all) | Filter::Or(all) => {
            all.iter().for_each(|filter| push_comparisons(filter, found));
        }
        _ => {}
    }
}

/// Returns how a value of this type looks in a filter.
const fn example_of(edm_type: EdmType) -> &'static str {
    match edm_type {
        EdmType::Int32 => "7",
        EdmType::Int64 => "7L",
        EdmType::Double => "7.0",
        EdmType::Boolean => "true",
        EdmType::DateTime => "datetime'2026-11-27T00:00:00Z'",
        EdmType::Guid => "guid'3f2504e0-4f89-11d3-9a0c-0305e82c3301'",
        EdmType::Binary => "X'00ff'",
        _ => "'text'",
    }
}

#[cfg(test)]
mod tests {
    use entable::ValueRef;

    use super::*;

    #[test]
    fn a_remark_names_the_property_and_what_to_write() {
        let row = |hits: ValueRef<'_>| {
            let row = Row::build("p", "r").with("Hits", hits).unwrap();
            row.with("City", ValueRef::String("Bonn")).unwrap().finish().unwrap()
        };
        let rows = [row(ValueRef::Int32(5)), row(ValueRef::Int32(6))];
        let remark = |filter: &str| remark_on_no_match(&Filter::parse(filter).unwrap(), &rows);
        let of_type = remark("City eq 'Bonn' and Hits eq 7L").unwrap();
        assert!(of_type.contains("`Hits` is of type Edm.Int32"), "{of_type}");
        assert!(of_type.contains("Edm.Int64") && of_type.contains("`Hits eq 7`"), "{of_type}");
        let of_name = remark("hits eq 7 or City eq 'Kiel'").unwrap();
        assert!(of_name.contains("`Hits`") && of_name.contains("`hits`"), "{of_name}");
        let can_match = [
            "Hits eq 7",
            "City eq 'Kiel'",
            "Other eq 7",
            "RowKey eq 7",
            "City lt 5",
            "not (City eq 5)",
        ];
        for met in can_match {
            assert_eq!(remark(met), None, "{met}");
        }
        for wide in [ValueRef::Int64(5), ValueRef::Double(5.0)] {
            let narrow = Filter::parse("Hits eq 7").unwrap();
            assert_eq!(remark_on_no_match(&narrow, &[row(wide)]), None, "it is widened");
        }
        let mixed = [row(ValueRef::Int64(5)), row(ValueRef::Int32(5))];
        let either = Filter::parse("Hits eq 7L").unwrap();
        assert_eq!(remark_on_no_match(&either, &mixed), None, "some rows have this type");
        assert_eq!(remark_on_no_match(&either, &[]), None);
    }
}
