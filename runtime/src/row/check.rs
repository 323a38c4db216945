//! What the service would refuse of a row.

use super::{Row, property_size, text_of};
use crate::{
    edm::{Ticks, ValueRef},
    error::{Error, Result, ServiceCode},
    limits,
};

impl Row {
    /// Refuses the row where the service would.
    ///
    /// # Errors
    ///
    /// `is_too_large` and `is_invalid`, naming keys, property, limit and actual size.
    pub fn check(&self) -> Result<()> {
        let place = |error: Error| error.at_keys(self.partition_key(), self.row_key());
        limits::check_key("PartitionKey", self.partition_key()).map_err(place)?;
        limits::check_key("RowKey", self.row_key()).map_err(place)?;
        self.check_properties().map_err(place)
    }

    fn check_properties(&self) -> Result<()> {
        let mut properties = self.properties();
        let mut names: Vec<&str> = Vec::with_capacity(16);
        let mut size = self.keys_size();
        while let Some((name, value)) = properties.next()? {
            let name = text_of(name)?;
            limits::check_property_name(name)?;
            check_value(value).map_err(|error| error.in_property(name))?;
            names.push(name);
            size += property_size(name, value);
        }
        if names.len() > limits::PROPERTIES {
            let message = format!(
                "the entity has {} properties, the limit is {} beside the system's three",
                names.len(),
                limits::PROPERTIES
            );
            return Err(Error::service(ServiceCode::TooManyProperties, message));
        }
        check_distinct(names)?;
        if size > limits::ENTITY_BYTES {
            let message = format!(
                "the entity has {size} bytes, the limit is {}; \
                 keep large values in a blob and their address in the entity",
                limits::ENTITY_BYTES
            );
            return Err(Error::service(ServiceCode::EntityTooLarge, message));
        }
        Ok(())
    }
}

fn check_distinct(mut names: Vec<&str>) -> Result<()> {
    names.sort_unstable();
    match names.array_windows().find(|[one, next]| one == next) {
        None => Ok(()),
        Some([twice, _]) => {
            let message = "the property is given twice";
            Err(Error::service(ServiceCode::DuplicatePropertiesSpecified, message)
                .in_property(twice))
        }
    }
}

fn check_value(value: ValueRef<'_>) -> Result<()> {
    let (what, found, limit) = match value {
        ValueRef::String(text) => {
            ("UTF-16 units of text", limits::utf16_units(text), limits::STRING_UNITS)
        }
        ValueRef::Binary(bytes) => ("bytes", bytes.len(), limits::PROPERTY_BYTES),
        ValueRef::DateTime(ticks) if ticks < Ticks::MIN_PROPERTY => {
            let message = format!("{ticks} is before the year 1601");
            return Err(Error::service(ServiceCode::OutOfRangeInput, message));
        }
        _ => return Ok(()),
    };
    if found <= limit {
        return Ok(());
    }
    let message = format!("the property has {found} {what}, the limit is {limit}");
    Err(Error::service(ServiceCode::PropertyValueTooLarge, message))
}
