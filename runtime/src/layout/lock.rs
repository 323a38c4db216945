//! Defines [`Layout`], and [`layout!`](crate::layout!), which makes one of entity types.

use std::{fmt, path::Path, str::FromStr};

use super::{
    compare::compare_layouts,
    needs::LayoutChange,
    parse::{HEAD, parse},
    shape::EntityShape,
};
use crate::{
    entity::Schema,
    error::{Error, ErrorKind, Result},
};

/// The variable that makes [`Layout::check`] write the file.
const ACCEPT: &str = "ENTABLE_LAYOUT";

/// Returns the [`Layout`](crate::layout::Layout) of entity types: how their rows are stored.
///
/// ```
/// use entable::prelude::*;
///
/// #[derive(TableEntity)]
/// #[table(name = "Staff", partition_key = "{department}", row_key = "empid_{id:06}")]
/// pub struct Employee { pub department: String, pub id: u32, pub age: i32 }
///
/// assert_eq!(
///     entable::layout![Employee].to_string().lines().skip(2).collect::<Vec<_>>().join("\n"),
///     r#"layout 1
///
/// entity "Employee" version 1
///   table Staff
///   discriminator property EntityType
///   primary
///     partition "{Department}" -
///     row "empid_{Id:06}" 6
///   key Department String
///   key Id Int64 as u32
///   property Age Int32"#
/// );
/// ```
#[macro_export]
macro_rules! layout {
    ($($entity:ty),+ $(,)?) => {
        $crate::layout::Layout::from_schemas(&[$(<$entity as $crate::TableEntity>::SCHEMA),+])
    };
}

/// The layout of the rows of entity types: keys, properties, copies and versions. [`layout!`](crate::layout!)
/// makes it from the types, `parse` from the text that its `Display` writes.
///
/// Check the text in as a file, and compare it with the code in a test ([`check`](Self::check)): no
/// change of stored rows lands unseen.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Layout {
    entities: Vec<EntityShape>,
}

impl Layout {
    /// Creates the layout of entity types from their schemas, in every version.
    #[doc(hidden)]
    pub fn from_schemas(schemas: &[&'static Schema]) -> Self {
        let versions = schemas.iter().flat_map(|schema| schema.versions());
        Self { entities: versions.map(EntityShape::shape_of_entity).collect() }
    }

    pub(super) fn entities(&self) -> &[EntityShape] {
        &self.entities
    }

    /// Returns what has changed since an earlier layout, and what each change needs.
    ///
    /// ```
    /// use entable::{layout::{Layout, Needs}, prelude::*};
    ///
    /// #[derive(TableEntity)]
    /// #[table(name = "Staff", partition_key = "{department}", row_key = "empid_{id:06}",
    ///         index(ByEmail, row_key = "email_{email:lower}"))]
    /// pub struct Employee { pub department: String, pub id: u32, pub email: String }
    ///
    /// let earlier: Layout = r#"layout 1
    /// entity "Employee" version 1
    ///   table Staff
    ///   discriminator property EntityType
    ///   primary
    ///     partition "{Department}" -
    ///     row "empid_{Id:06}" 6
    ///   key Department String
    ///   key Id Int64 as u32
    ///   property Email String
    /// "#
    /// .parse()?;
    /// let changes = entable::layout![Employee].changes_since(&earlier);
    /// assert_eq!(changes.len(), 1);
    /// assert_eq!(changes[0].needs, Needs::Rebuild);
    /// assert!(changes[0].how.contains("table.rebuild(Employee::by_email())"));
    /// # Ok::<(), Error>(())
    /// ```
    pub fn changes_since(&self, earlier: &Self) -> Vec<LayoutChange> {
        compare_layouts(&earlier.entities, &self.entities)
    }

    /// Compares the layout with a checked-in file. A relative path starts at the package's folder, where
    /// `cargo test` runs tests.
    ///
    /// With `ENTABLE_LAYOUT=write` in the environment, writes the file instead. Run the test this way once, and
    /// again for each change that you accept.
    ///
    /// ```
    /// # use entable::prelude::*;
    /// # #[derive(TableEntity)]
    /// # #[table(name = "Staff", partition_key = "{department}", row_key = "empid_{id:06}")]
    /// # pub struct Employee { pub department: String, pub id: u32 }
    /// # let directory = tempfile::tempdir()?;
    /// # let path = directory.path().join("layout.lock");
    /// let layout = entable::layout![Employee];
    /// assert!(layout.check(&path).is_err_and(|error| error.is_invalid()), "there is no file yet");
    /// std::fs::write(&path, layout.to_string())?;
    /// assert!(layout.check(&path).is_ok());
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// # Errors
    ///
    /// Fails with `is_invalid` if the file is missing or the layout differs, even by a compatible change. For
    /// each change, the error says whether it is compatible or needs a new version, a rebuild or a migration,
    /// and which call does that.
    pub fn check(&self, path: impl AsRef<Path>) -> Result<()> {
        let path = path.as_ref();
        if std::env::var_os(ACCEPT).is_some() {
            return std::fs::write(path, self.to_string()).map_err(|error| {
                let message = format!("`{}` cannot be written", path.display());
                Error::new(ErrorKind::Backend, message).with_source(error)
            });
        }
        let text = std::fs::read_to_string(path).map_err(|error| {
            let message = format!(
                "`{}` cannot be read; if it is missing, write it with {ACCEPT}=write in the environment",
                path.display()
            );
            Error::new(ErrorKind::Invalid, message).with_source(error)
        })?;
        let earlier = text.parse::<Self>()?;
        let changes = self.changes_since(&earlier);
        // A file with other line ends or comments has an equal layout.
        if changes.is_empty() && earlier == *self {
            return Ok(());
        }
        let mut message = format!("the layout differs from `{}`:\n", path.display());
        for change in &changes {
            message.push_str(&format!("\n{change}\n"));
        }
        if changes.is_empty() {
            message.push_str("\nentities or properties stand in another order: compatible\n");
        }
        message.push_str(&format!(
            "\nwhen each change is prepared for, accept them with {ACCEPT}=write in the environment"
        ));
        Err(Error::new(ErrorKind::Invalid, message))
    }
}

impl fmt::Display for Layout {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(
            f,
            "# How rows are stored. Check this file in: a test compares it with the code."
        )?;
        writeln!(f, "# `entable::layout!` writes it; do not edit it by hand.")?;
        writeln!(f, "{HEAD}")?;
        self.entities.iter().try_for_each(|entity| write!(f, "\n{entity}"))
    }
}

impl FromStr for Layout {
    type Err = Error;

    fn from_str(text: &str) -> Result<Self> {
        Ok(Self { entities: parse(text)? })
    }
}
