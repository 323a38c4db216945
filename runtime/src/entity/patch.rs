//! Defines [`Patch`], which changes some of an entity's properties.

use std::{borrow::Cow, fmt, marker::PhantomData};

use serde::{Serialize, de::DeserializeOwned};

use super::{
    Blob, BlobFieldValue, BlobNames, ColumnSchema, Properties, PropertyWriter,
    blob::column::write_blob_properties,
    column::{properties_of_series, slot_out_of_range_error},
    flattened::push_property_names,
};
use crate::{
    edm::{Bag, EdmCow, EdmValue, InvalidValue, Property, Value, readable_json_text},
    error::{Error, ErrorKind, Result},
    row::Row,
};

/// Properties to set and to remove. The builder `Employee::patch()` has one method per property.
///
/// A patch that only sets properties is sent as a merge. One that removes a property needs the
/// whole row and is sent as a replace under If-Match.
pub struct Patch<E> {
    set: Bag,
    removed: Vec<Cow<'static, str>>,
    blobs: Vec<BlobFieldValue>,
    fault: Option<Error>,
    of: PhantomData<fn() -> E>,
}

impl<E> Default for Patch<E> {
    fn default() -> Self {
        let (removed, blobs) = (Vec::new(), Vec::new());
        Self { set: Bag::new(), removed, blobs, fault: None, of: PhantomData }
    }
}

impl<E> Patch<E> {
    /// Creates a patch without changes.
    ///
    /// ```
    /// # include!(concat!(env!("CARGO_MANIFEST_DIR"), "/docs/staff.rs"));
    /// # fn main() -> Result<(), Error> {
    /// let refused = Patch::<Employee>::new().into_changes().unwrap_err();
    /// assert!(refused.is_invalid(), "a patch that changes nothing");
    /// # Ok(())
    /// # }
    /// ```
    pub fn new() -> Self {
        Self::default()
    }

    fn put(&mut self, name: &'static str, value: Result<EdmCow<'_>, InvalidValue>) {
        self.removed.retain(|removed| *removed != name);
        match value {
            Ok(value) => {
                self.set.set(name, value.into_value());
            }
            Err(invalid) => {
                self.fault.get_or_insert_with(|| invalid.into_write_error(name));
            }
        }
    }

    /// Sets a property.
    ///
    /// ```
    /// # include!(concat!(env!("CARGO_MANIFEST_DIR"), "/docs/staff.rs"));
    /// # fn main() -> Result<(), Error> {
    /// let (set, removed) = Patch::<Employee>::new().set::<i32>("Age", &31).into_changes()?;
    /// assert_eq!(set.get("Age"), Some(&Value::from(31)));
    /// assert!(removed.is_empty());
    /// # Ok(())
    /// # }
    /// ```
    #[must_use]
    pub fn set<F: Property>(mut self, name: &'static str, value: &F::Scalar) -> Self {
        self.put(name, value.to_edm());
        self
    }

    /// Removes the value of the property `name` from the patch's error. The property is encrypted, or hashed in a
    /// key, and its value must not appear in errors.
    #[doc(hidden)]
    #[must_use]
    pub fn redacted(mut self, name: &str) -> Self {
        self.fault = self.fault.map(|fault| {
            if fault.property() == Some(name) {
                InvalidValue::new("").redacted().into_write_error(name)
            } else {
                fault
            }
        });
        self
    }

    /// Calls `change` with the patch and the property of slot `slot` in a series. If the series lacks the slot, the
    /// patch keeps an error, which makes its write fail. An earlier error is kept.
    #[doc(hidden)]
    #[must_use]
    pub fn change_series_slot(
        mut self,
        names: &[&'static str],
        slot: usize,
        change: impl FnOnce(Self, &'static str) -> Self,
    ) -> Self {
        if let Some(name) = names.get(slot) {
            return change(self, name);
        }
        self.fault.get_or_insert_with(|| {
            slot_out_of_range_error(slot, names.len())
                .into_write_error(&properties_of_series(names))
        });
        self
    }

    /// Sets a property to the JSON of a value. The verb that receives the patch fails with `is_invalid` if the JSON
    /// does not read back as the value's type.
    ///
    /// ```
    /// # include!(concat!(env!("CARGO_MANIFEST_DIR"), "/docs/staff.rs"));
    /// # fn main() -> Result<(), Error> {
    /// let (set, _) = Patch::<Employee>::new().set_json("Tags", &vec!["new".to_owned()]).into_changes()?;
    /// assert_eq!(set.get("Tags"), Some(&Value::from(r#"["new"]"#)));
    /// # Ok(())
    /// # }
    /// ```
    #[must_use]
    pub fn set_json<F>(mut self, name: &'static str, value: &F) -> Self
    where
        F: Serialize + DeserializeOwned,
    {
        self.put(name, readable_json_text(value).map(|text| Value::String(text).into()));
        self
    }

    /// Sets all properties of a flattened struct. Removes the properties that `value` lacks.
    ///
    /// ```
    /// use entable::{KeyRef, prelude::*};
    ///
    /// # #[derive(TableEntity)]
    /// # #[table(name = "Staff", partition_key = "{department}", row_key = "empid_{id:06}")]
    /// # struct Employee { department: String, id: u32 }
    /// let manager = KeyRef::<Employee>::new("Sales", "empid_000223");
    /// let (set, _) = entable::Patch::<Employee>::new().set_flattened("Manager", &manager).into_changes()?;
    /// assert_eq!(set.get("ManagerRowKey"), Some(&Value::from("empid_000223")));
    /// # Ok::<(), Error>(())
    /// ```
    #[must_use]
    pub fn set_flattened<F: Properties>(self, prefix: &'static str, value: &F) -> Self {
        self.replace_nested(prefix, F::COLUMNS, |out| value.write(out))
    }

    /// Sets the properties of `columns` that `write` writes, and removes the others. `prefix` precedes their names.
    /// Has no bound on the struct's type, because the compiler would report a type that cannot be flattened twice.
    #[doc(hidden)]
    #[must_use]
    pub fn replace_nested(
        mut self,
        prefix: &'static str,
        columns: &[ColumnSchema],
        write: impl FnOnce(&mut PropertyWriter<'_>) -> Result<()>,
    ) -> Self {
        let mut names = Vec::new();
        push_property_names(prefix, columns, &mut names);
        // An absent field writes nothing, which would keep its stored value. Remove all properties
        // first, then set those that are written.
        for name in names {
            self = self.remove_named(name.into());
        }
        self.set_nested(prefix, write)
    }

    /// Sets the properties that `write` writes, with `prefix` before their names, and drops any earlier removal of
    /// them in this patch.
    #[doc(hidden)]
    #[must_use]
    pub fn set_nested(
        mut self,
        prefix: &'static str,
        write: impl FnOnce(&mut PropertyWriter<'_>) -> Result<()>,
    ) -> Self {
        let mut row = Row::build("", "");
        let written = PropertyWriter::new(&mut row).put_nested(prefix, write);
        match written.and_then(|()| row.finish()).and_then(|row| row.to_bag()) {
            Ok(bag) => bag.into_iter().for_each(|(name, value)| {
                self.removed.retain(|removed| *removed != name);
                self.set.set(name, value);
            }),
            Err(error) => {
                self.fault.get_or_insert(error);
            }
        }
        self
    }

    /// Sets a field that is stored in a blob. The verb that receives the patch uploads the bytes of `value`.
    #[doc(hidden)]
    #[must_use]
    pub fn set_blob(mut self, field: &'static str, names: &'static BlobNames, value: Blob) -> Self {
        self.removed.retain(|removed| names.property_names().all(|name| name != *removed));
        self = self.set_nested("", |out| {
            write_blob_properties(out, names, Some(&value));
            Ok(())
        });
        self.blobs.retain(|known| known.names != names);
        self.blobs.push(BlobFieldValue { field, names, blob: value });
        self
    }

    /// Removes a property. Drops any earlier change to it in this patch.
    ///
    /// ```
    /// # include!(concat!(env!("CARGO_MANIFEST_DIR"), "/docs/staff.rs"));
    /// # fn main() -> Result<(), Error> {
    /// let (set, removed) = Patch::<Employee>::new().remove("Age").into_changes()?;
    /// assert!(set.is_empty());
    /// assert_eq!(removed, ["Age"]);
    /// # Ok(())
    /// # }
    /// ```
    #[must_use]
    pub fn remove(self, name: &'static str) -> Self {
        self.remove_named(name.into())
    }

    fn remove_named(mut self, name: Cow<'static, str>) -> Self {
        self.blobs.retain(|known| known.names.name != name);
        self.set.remove(&name);
        if !self.removed.contains(&name) {
            self.removed.push(name);
        }
        self
    }

    /// Removes the values of blob fields from the patch and returns them. The verb uploads them.
    pub(crate) fn take_blobs(&mut self) -> Vec<BlobFieldValue> {
        std::mem::take(&mut self.blobs)
    }

    /// Returns the properties to set, and the names of the properties to remove.
    ///
    /// # Errors
    ///
    /// Fails with `is_invalid` for the first value that cannot be stored, and for a patch that changes nothing.
    ///
    /// ```
    /// # include!(concat!(env!("CARGO_MANIFEST_DIR"), "/docs/staff.rs"));
    /// # fn main() -> Result<(), Error> {
    /// let patch = Patch::<Employee>::new().set::<i32>("Age", &31).remove("Email");
    /// let (set, removed) = patch.into_changes()?;
    /// assert_eq!((set.len(), removed), (1, vec!["Email".into()]));
    /// # Ok(())
    /// # }
    /// ```
    pub fn into_changes(self) -> Result<(Bag, Vec<Cow<'static, str>>)> {
        match self.fault {
            Some(fault) => Err(fault),
            None if self.set.is_empty() && self.removed.is_empty() => Err(Error::new(
                ErrorKind::Invalid,
                "the patch changes nothing; set or remove a property",
            )),
            None => Ok((self.set, self.removed)),
        }
    }
}

impl<E> fmt::Debug for Patch<E> {
    /// Prints only names, because values may be secret.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let set: Vec<&str> = self.set.iter().map(|(name, _)| name).collect();
        f.debug_struct("Patch").field("set", &set).field("removed", &self.removed).finish()
    }
}
