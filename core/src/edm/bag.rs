//! Defines [`Bag`], an ordered map of properties whose names are known only at run time, and
//! [`PropertyBag`], the trait of types that can hold such properties.

use std::collections::{BTreeMap, HashMap};

use super::Value;

/// A map from property names to values, ordered by first insertion.
///
/// ```
/// use entable_core::{Bag, Value};
///
/// let mut bag = Bag::new();
/// bag.set("EmployeeCount", 153);
/// bag.set("EmployeeCount", 154);
/// assert_eq!(bag.get("EmployeeCount").and_then(Value::as_i32), Some(154));
/// assert_eq!(bag.len(), 1);
/// ```
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Bag(Vec<(String, Value)>);

impl Bag {
    /// Creates an empty bag.
    ///
    /// ```
    /// # use entable_core::{Bag, Value};
    /// assert!(Bag::new().is_empty());
    /// ```
    pub const fn new() -> Self {
        Self(Vec::new())
    }

    /// Returns the value of the property `name`, or `None` if the bag has no such property.
    ///
    /// ```
    /// # use entable_core::{Bag, Value};
    /// let mut bag = Bag::new();
    /// bag.set("Age", 30);
    /// assert_eq!(bag.get("Age"), Some(&Value::from(30)));
    /// assert_eq!(bag.get("age"), None, "names are compared with their case");
    /// ```
    pub fn get(&self, name: &str) -> Option<&Value> {
        self.0.iter().find(|(n, _)| n == name).map(|(_, value)| value)
    }

    /// Returns the value of the property `name` for changing it in place, or `None` if the bag has
    /// no such property.
    ///
    /// ```
    /// # use entable_core::{Bag, Value};
    /// let mut bag = Bag::new();
    /// bag.set("Age", 30);
    /// if let Some(age) = bag.get_mut("Age") {
    ///     *age = 31.into();
    /// }
    /// assert_eq!(bag.get("Age"), Some(&Value::from(31)));
    /// ```
    pub fn get_mut(&mut self, name: &str) -> Option<&mut Value> {
        self.0.iter_mut().find(|(n, _)| n == name).map(|(_, value)| value)
    }

    /// Sets a property and returns its previous value. A new name is appended; an existing name keeps its
    /// position.
    ///
    /// ```
    /// # use entable_core::{Bag, Value};
    /// let mut bag = Bag::new();
    /// assert_eq!(bag.set("Age", 30), None);
    /// assert_eq!(bag.set("Age", 31), Some(Value::from(30)));
    /// ```
    pub fn set(&mut self, name: impl Into<String>, value: impl Into<Value>) -> Option<Value> {
        let (name, value) = (name.into(), value.into());
        match self.get_mut(&name) {
            Some(slot) => Some(std::mem::replace(slot, value)),
            None => {
                self.0.push((name, value));
                None
            }
        }
    }

    /// Removes the property `name` and returns its value, or `None` if the bag has no such
    /// property.
    ///
    /// ```
    /// # use entable_core::{Bag, Value};
    /// let mut bag = Bag::new();
    /// bag.set("Age", 30);
    /// assert_eq!(bag.remove("Age"), Some(Value::from(30)));
    /// assert!(bag.is_empty());
    /// ```
    pub fn remove(&mut self, name: &str) -> Option<Value> {
        let at = self.0.iter().position(|(n, _)| n == name)?;
        // Not `swap_remove`, which would change the order of the other properties.
        Some(self.0.remove(at).1)
    }

    /// Iterates over names and values in the bag's order.
    ///
    /// ```
    /// # use entable_core::{Bag, Value};
    /// let mut bag = Bag::new();
    /// bag.set("LastName", "Hall");
    /// bag.set("Age", 30);
    /// let names: Vec<&str> = bag.iter().map(|(name, _)| name).collect();
    /// assert_eq!(names, ["LastName", "Age"]);
    /// ```
    pub fn iter(&self) -> impl ExactSizeIterator<Item = (&str, &Value)> {
        self.0.iter().map(|(name, value)| (name.as_str(), value))
    }

    /// Returns the number of properties.
    ///
    /// ```
    /// # use entable_core::{Bag, Value};
    /// let mut bag = Bag::new();
    /// bag.set("Age", 30);
    /// assert_eq!(bag.len(), 1);
    /// ```
    pub fn len(&self) -> usize {
        self.0.len()
    }

    /// Returns whether the bag has no properties.
    ///
    /// ```
    /// # use entable_core::{Bag, Value};
    /// let mut bag = Bag::new();
    /// assert!(bag.is_empty());
    /// bag.set("Age", 30);
    /// assert!(!bag.is_empty());
    /// ```
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }
}

impl FromIterator<(String, Value)> for Bag {
    fn from_iter<I: IntoIterator<Item = (String, Value)>>(properties: I) -> Self {
        let mut bag = Self::new();
        for (name, value) in properties {
            bag.set(name, value);
        }
        bag
    }
}

impl IntoIterator for Bag {
    type Item = (String, Value);
    type IntoIter = std::vec::IntoIter<(String, Value)>;

    fn into_iter(self) -> Self::IntoIter {
        self.0.into_iter()
    }
}

/// A type that a `#[table(extra)]` field can have. The field receives the row's properties that the
/// struct does not declare, and writes them back.
#[diagnostic::on_unimplemented(
    message = "`{Self}` cannot be used for an `extra` field",
    note = "use `entable::Bag`, `BTreeMap<String, Value>` or `HashMap<String, Value>`"
)]
pub trait PropertyBag: Default {
    /// Stores one property.
    fn put(&mut self, name: &str, value: Value);
    /// Calls `each` for every property and stops at its first error.
    ///
    /// # Errors
    ///
    /// Returns the first error of `each`.
    fn each<E>(&self, each: impl FnMut(&str, &Value) -> Result<(), E>) -> Result<(), E>;
}

impl PropertyBag for Bag {
    fn put(&mut self, name: &str, value: Value) {
        self.set(name, value);
    }

    fn each<E>(&self, mut each: impl FnMut(&str, &Value) -> Result<(), E>) -> Result<(), E> {
        self.iter().try_for_each(|(name, value)| each(name, value))
    }
}

macro_rules! map_bags {
    ($($map:ident),*) => {
        $(impl PropertyBag for $map<String, Value> {
            fn put(&mut self, name: &str, value: Value) {
                self.insert(name.to_owned(), value);
            }

            fn each<E>(&self, mut each: impl FnMut(&str, &Value) -> Result<(), E>) -> Result<(), E> {
                self.iter().try_for_each(|(name, value)| each(name, value))
            }
        })*
    };
}

map_bags!(BTreeMap, HashMap);
