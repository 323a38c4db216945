//! Addresses of rows: table, PartitionKey and RowKey as texts.

/// The address of a row, as owned texts.
///
/// It has no `==`: whether case counts in a table's name is the store's rule. Use
/// [`RowAt::is_same_row`] for that rule and [`RowAt::table_and_key_texts`] for exact texts.
#[derive(Debug, Clone)]
pub(crate) struct RowAddress {
    pub(crate) table: String,
    pub(crate) partition_key: String,
    pub(crate) row_key: String,
}

/// The address of a row, as borrowed texts.
#[derive(Debug, Clone, Copy)]
pub(crate) struct RowAt<'a> {
    pub(crate) table: &'a str,
    pub(crate) partition_key: &'a str,
    pub(crate) row_key: &'a str,
}

impl RowAddress {
    /// Borrows the texts of the address.
    pub(crate) fn as_row_at(&self) -> RowAt<'_> {
        RowAt::new(&self.table, &self.partition_key, &self.row_key)
    }
}

impl<'a> RowAt<'a> {
    /// Creates the address of a row from its table, PartitionKey and RowKey.
    pub(crate) const fn new(table: &'a str, partition_key: &'a str, row_key: &'a str) -> Self {
        Self { table, partition_key, row_key }
    }

    /// Copies the texts of the address.
    pub(crate) fn to_owned(self) -> RowAddress {
        let [table, partition_key, row_key] = self.table_and_key_texts().map(str::to_owned);
        RowAddress { table, partition_key, row_key }
    }

    /// Returns the address of the row with RowKey `row_key` in the same table and partition.
    pub(crate) const fn with_row_key(self, row_key: &'a str) -> Self {
        Self { row_key, ..self }
    }

    /// Returns whether both addresses name one row of a store with that rule for names of tables.
    pub(crate) fn is_same_row(self, other: RowAt<'_>, case: TableCase) -> bool {
        case.is_same_table(self.table, other.table)
            && self.partition_key == other.partition_key
            && self.row_key == other.row_key
    }

    /// Returns table, PartitionKey and RowKey.
    pub(crate) const fn table_and_key_texts(self) -> [&'a str; 3] {
        [self.table, self.partition_key, self.row_key]
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
    /// Returns whether both names are names of one table.
    pub(crate) fn is_same_table(self, a: &str, b: &str) -> bool {
        match self {
            Self::Insensitive => a.eq_ignore_ascii_case(b),
            Self::Sensitive => a == b,
        }
    }

    /// Returns the form of a table name that the store compares: lower case if the store ignores case, else
    /// the name unchanged. Two names of one table have the same form.
    ///
    /// ```
    /// use entable::backend::TableCase;
    ///
    /// assert_eq!(TableCase::Insensitive.canonical_table_name("Staff"), "staff");
    /// assert_eq!(TableCase::Sensitive.canonical_table_name("Staff"), "Staff");
    /// ```
    pub fn canonical_table_name(self, table: &str) -> String {
        match self {
            Self::Insensitive => table.to_ascii_lowercase(),
            Self::Sensitive => table.to_owned(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::{RowAt, TableCase};

    #[test]
    fn case_counts_in_keys_and_in_names_of_tables_as_the_store_says() {
        let at = RowAt::new("Staff", "Sales", "empid_000223");
        for case in [TableCase::Insensitive, TableCase::Sensitive] {
            let shouted = RowAt::new("STAFF", "Sales", "empid_000223");
            assert_eq!(at.is_same_row(shouted, case), case == TableCase::Insensitive);
            assert!(at.is_same_row(at, case));
            assert!(!at.is_same_row(RowAt::new("Staff", "sales", "empid_000223"), case));
            assert!(!at.is_same_row(at.with_row_key("Empid_000223"), case));
            assert!(!at.is_same_row(RowAt::new("Staff2", "Sales", "empid_000223"), case));
        }
        assert_eq!(
            at.to_owned().as_row_at().table_and_key_texts(),
            ["Staff", "Sales", "empid_000223"]
        );
    }
}
