//! Addresses of rows: table, PartitionKey and RowKey. Texts only.

/// The address of a row, as owned texts.
///
/// It has no `==`: the store ignores the case of a table's name, while texts that are stored keep
/// it. Use [`RowAt::is_same_row`] for the store's rule and [`RowAt::texts`] for exact texts.
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
    pub(crate) fn at(&self) -> RowAt<'_> {
        RowAt::new(&self.table, &self.partition_key, &self.row_key)
    }
}

impl<'a> RowAt<'a> {
    /// Creates the address of the row with these keys.
    pub(crate) const fn new(table: &'a str, partition_key: &'a str, row_key: &'a str) -> Self {
        Self { table, partition_key, row_key }
    }

    /// Copies the texts of the address.
    pub(crate) fn to_owned(self) -> RowAddress {
        let [table, partition_key, row_key] = self.texts().map(str::to_owned);
        RowAddress { table, partition_key, row_key }
    }

    /// Returns the address of another row of the partition.
    pub(crate) const fn with_row_key(self, row_key: &'a str) -> Self {
        Self { row_key, ..self }
    }

    /// Returns whether both addresses name one row of the store.
    pub(crate) fn is_same_row(self, other: RowAt<'_>) -> bool {
        is_same_table(self.table, other.table)
            && self.partition_key == other.partition_key
            && self.row_key == other.row_key
    }

    /// Returns table, PartitionKey and RowKey.
    pub(crate) const fn texts(self) -> [&'a str; 3] {
        [self.table, self.partition_key, self.row_key]
    }
}

/// Returns whether both names are names of one table: the store ignores their case.
pub(crate) const fn is_same_table(a: &str, b: &str) -> bool {
    a.eq_ignore_ascii_case(b)
}

#[cfg(test)]
mod tests {
    use super::RowAt;

    #[test]
    fn case_counts_in_keys_and_not_in_names_of_tables() {
        let at = RowAt::new("Staff", "Sales", "empid_000223");
        assert!(at.is_same_row(RowAt::new("STAFF", "Sales", "empid_000223")));
        assert!(!at.is_same_row(RowAt::new("Staff", "sales", "empid_000223")));
        assert!(!at.is_same_row(at.with_row_key("Empid_000223")));
        assert!(!at.is_same_row(RowAt::new("Staff2", "Sales", "empid_000223")));
        assert_eq!(at.to_owned().at().texts(), ["Staff", "Sales", "empid_000223"]);
    }
}
