//! Addresses of rows: table, PartitionKey and RowKey as texts.

use std::{
    borrow::Cow,
    cmp::Ordering,
    hash::{Hash, Hasher},
};

/// The rule of a store for names of tables. It makes a [`TableName`] from a text.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Names(TableCase);

/// The name of a table in a store: the text as given, which requests and stored rows contain, and its canonical form.
///
/// Names are compared, ordered and hashed by their canonical form, so two spellings of one table are equal. The form is
/// made where it is needed: a name borrows its text and allocates nothing.
#[derive(Debug, Clone, Copy)]
pub struct TableName<'a> {
    text: &'a str,
    names: Names,
}

/// The address of a row, as owned texts. Two spellings of one table are equal.
#[derive(Debug, Clone)]
pub struct RowAddress {
    names: Names,
    /// The name of the table, as given.
    pub table: String,
    /// The PartitionKey.
    pub partition_key: String,
    /// The RowKey.
    pub row_key: String,
}

/// The address of a row, as borrowed texts. Two spellings of one table are equal.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct RowAt<'a> {
    /// The name of the table.
    pub table: TableName<'a>,
    /// The PartitionKey.
    pub partition_key: &'a str,
    /// The RowKey.
    pub row_key: &'a str,
}

impl Names {
    /// The rule of a store that ignores case. It also finds a table where the store's own rule is unknown.
    pub const ANY_CASE: Self = Self(TableCase::Insensitive);

    /// Returns the rule of a store with these capabilities of names.
    pub const fn with_case(case: TableCase) -> Self {
        Self(case)
    }

    /// Makes a name from its text.
    pub const fn name(self, text: &str) -> TableName<'_> {
        TableName { text, names: self }
    }

    /// Returns whether both texts are names of one table.
    pub fn is_same_table(self, one: &str, other: &str) -> bool {
        self.name(one) == self.name(other)
    }

    /// Creates the address of a row from the texts of its table, PartitionKey and RowKey.
    pub const fn row_at<'a>(
        self,
        table: &'a str,
        partition_key: &'a str,
        row_key: &'a str,
    ) -> RowAt<'a> {
        RowAt::new(self.name(table), partition_key, row_key)
    }

    /// Creates the address of a row from table, PartitionKey and RowKey, as a stored row contains them.
    pub fn address(self, [table, partition_key, row_key]: [String; 3]) -> RowAddress {
        RowAddress { names: self, table, partition_key, row_key }
    }
}

impl<'a> TableName<'a> {
    /// Returns the text as it was given.
    pub const fn as_str(self) -> &'a str {
        self.text
    }

    /// Returns the rule of the name's store.
    pub const fn names(self) -> Names {
        self.names
    }

    /// Returns the name with this text in the same store.
    pub const fn sibling<'b>(self, text: &'b str) -> TableName<'b> {
        self.names.name(text)
    }

    /// Returns the canonical form, which is part of hashes and signatures. Two names of one table have the same form.
    pub fn form(self) -> Cow<'a, str> {
        self.names.0.canonical_form(self.text)
    }

    fn form_bytes(self) -> impl Iterator<Item = u8> + 'a {
        self.text.bytes().map(move |byte| match self.names.0 {
            TableCase::Insensitive => byte.to_ascii_lowercase(),
            TableCase::Sensitive => byte,
        })
    }
}

impl PartialEq for TableName<'_> {
    fn eq(&self, other: &Self) -> bool {
        self.form_bytes().eq(other.form_bytes())
    }
}

impl Eq for TableName<'_> {}

impl PartialOrd for TableName<'_> {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl Ord for TableName<'_> {
    fn cmp(&self, other: &Self) -> Ordering {
        self.form_bytes().cmp(other.form_bytes())
    }
}

impl Hash for TableName<'_> {
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.form_bytes().for_each(|byte| state.write_u8(byte));
        // No text contains this byte, so a name and the key after it cannot be mistaken for another pair.
        state.write_u8(0xff);
    }
}

impl RowAddress {
    /// Returns the rule of the address's store.
    pub const fn names(&self) -> Names {
        self.names
    }

    /// Borrows the texts of the address.
    pub fn as_row_at(&self) -> RowAt<'_> {
        self.names.row_at(&self.table, &self.partition_key, &self.row_key)
    }
}

impl PartialEq for RowAddress {
    fn eq(&self, other: &Self) -> bool {
        self.as_row_at() == other.as_row_at()
    }
}

impl Eq for RowAddress {}

impl PartialOrd for RowAddress {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl Ord for RowAddress {
    fn cmp(&self, other: &Self) -> Ordering {
        self.as_row_at().cmp(&other.as_row_at())
    }
}

impl Hash for RowAddress {
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.as_row_at().hash(state);
    }
}

impl<'a> RowAt<'a> {
    /// Creates the address of a row from its table, PartitionKey and RowKey.
    pub const fn new(table: TableName<'a>, partition_key: &'a str, row_key: &'a str) -> Self {
        Self { table, partition_key, row_key }
    }

    /// Copies the texts of the address.
    pub fn to_owned(self) -> RowAddress {
        self.table.names.address(self.table_and_key_texts().map(str::to_owned))
    }

    /// Returns the address of the row with RowKey `row_key` in the same table and partition.
    pub const fn with_row_key(self, row_key: &'a str) -> Self {
        Self { row_key, ..self }
    }

    /// Returns table, PartitionKey and RowKey as exact texts.
    pub const fn table_and_key_texts(self) -> [&'a str; 3] {
        [self.table.text, self.partition_key, self.row_key]
    }
}

/// Whether names that differ only in case refer to the same table of a store.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
#[non_exhaustive]
pub enum TableCase {
    /// `Staff` and `staff` name one table, as on Azure Table storage.
    #[default]
    Insensitive,
    /// `Staff` and `staff` name two tables, as on the storage emulator Azurite and on Cosmos DB.
    Sensitive,
}

impl TableCase {
    /// Returns the form of a table name that the store compares: lower case if the store ignores case, else
    /// the name unchanged. Two names of one table have the same form.
    ///
    /// ```
    /// use entable_core::backend::TableCase;
    ///
    /// assert_eq!(TableCase::Insensitive.canonical_table_name("Staff"), "staff");
    /// assert_eq!(TableCase::Sensitive.canonical_table_name("Staff"), "Staff");
    /// ```
    pub fn canonical_table_name(self, table: &str) -> String {
        self.canonical_form(table).into_owned()
    }

    /// Returns the canonical form of a table name, without an allocation where it equals the name.
    fn canonical_form(self, table: &str) -> Cow<'_, str> {
        let has_upper_case = || table.bytes().any(|byte| byte.is_ascii_uppercase());
        match self {
            Self::Insensitive if has_upper_case() => Cow::Owned(table.to_ascii_lowercase()),
            Self::Insensitive | Self::Sensitive => Cow::Borrowed(table),
        }
    }
}

#[cfg(test)]
mod tests {
    use std::hash::{BuildHasher, RandomState};

    use super::{Names, TableCase};

    #[test]
    fn case_counts_in_keys_and_in_names_of_tables_as_the_store_says() {
        let hasher = RandomState::new();
        for case in [TableCase::Insensitive, TableCase::Sensitive] {
            let names = Names::with_case(case);
            let at = names.row_at("Staff", "Sales", "empid_000223");
            let shouted = names.row_at("STAFF", "Sales", "empid_000223");
            let is_one = case == TableCase::Insensitive;
            assert_eq!(at == shouted, is_one);
            assert_eq!(at.to_owned() == shouted.to_owned(), is_one);
            assert_eq!(at.cmp(&shouted).is_eq(), is_one);
            assert_eq!(hasher.hash_one(at) == hasher.hash_one(shouted), is_one);
            assert_eq!(names.name("STAFF").form() == "staff", is_one);
            assert_eq!(at, at);
            assert_ne!(at, names.row_at("Staff", "sales", "empid_000223"));
            assert_ne!(at, at.with_row_key("Empid_000223"));
            assert_ne!(at, names.row_at("Staff2", "Sales", "empid_000223"));
            assert_eq!(
                at.to_owned().as_row_at().table_and_key_texts(),
                ["Staff", "Sales", "empid_000223"]
            );
        }
    }
}
