//! Defines [`Layout`], and [`layout!`](crate::layout!), which makes one of entity types.

use std::{fmt, path::Path, str::FromStr};

use super::{
    compare::compare_layouts,
    needs::LayoutChange,
    parse::{HEAD, parse},
    pattern_changes::{PatternChange, compare_patterns},
    pattern_shape::PatternShape,
    shape::EntityShape,
};
use crate::{
    entity::Schema,
    error::{Error, ErrorKind, Result},
    patterns::{AccessPatterns, Note},
};

/// The environment variable that makes [`Layout::check`] write the file.
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

/// The layout of the rows of entity types: keys, properties, copies and versions, and access patterns with their plans
/// if they are added ([`with_patterns`](Self::with_patterns)). [`layout!`](crate::layout!)
/// makes it from the types, `parse` from the text that its `Display` writes.
///
/// Check the text in as a file, and compare it with the code in a test ([`check`](Self::check)), so that no change of
/// stored rows goes unnoticed.
#[derive(Debug, Clone)]
pub struct Layout {
    entities: Vec<EntityShape>,
    patterns: Vec<PatternShape>,
    /// Notes on the types that follow from the patterns. They become comments of the file.
    notes: Vec<Note>,
}

impl PartialEq for Layout {
    fn eq(&self, other: &Self) -> bool {
        // Notes are comments, which a parsed file has not.
        self.entities == other.entities && self.patterns == other.patterns
    }
}

impl Eq for Layout {}

impl Layout {
    /// Creates the layout of entity types from their schemas, in every version.
    #[doc(hidden)]
    pub fn from_schemas(schemas: &[&'static Schema]) -> Self {
        let versions = schemas.iter().flat_map(|schema| schema.versions());
        let entities = versions.map(EntityShape::shape_of_entity).collect();
        Self { entities, patterns: Vec::new(), notes: Vec::new() }
    }

    /// Adds access patterns with their plans, so that one file and one test hold both.
    ///
    /// If a change of a type makes a pattern more expensive, [`check`](Self::check) fails with the change of the layout,
    /// and with each such pattern: what its plan was, what it is, and the cause.
    ///
    /// ```
    /// use entable::prelude::*;
    ///
    /// #[derive(TableEntity)]
    /// #[table(name = "Staff", partition_key = "{department}", row_key = "empid_{id:06}")]
    /// pub struct Employee { pub department: String, pub id: u32 }
    ///
    /// entable::access_patterns! {
    ///     STAFF;
    ///     "hire" write insert::<Employee>() requests 1;
    /// }
    ///
    /// let text = entable::layout![Employee].with_patterns(STAFF).to_string();
    /// assert!(text.contains("pattern \"hire\" claims Write at_most 1\n    call insert \"Employee\""));
    /// ```
    #[must_use]
    pub fn with_patterns(mut self, patterns: AccessPatterns) -> Self {
        let name = patterns.name();
        let shapes = patterns.patterns();
        let shapes = shapes.iter().map(|pattern| PatternShape::shape_of_pattern(name, pattern));
        self.patterns.extend(shapes);
        // An index that these patterns never read may be read by others.
        let calls = self.patterns.iter().flat_map(|pattern| &pattern.calls);
        let is_read = |note: &Note| calls.clone().any(|call| call.reads(&note.entity, &note.rows));
        let mut notes: Vec<Note> = Vec::new();
        for note in self.notes.iter().cloned().chain(patterns.notes()) {
            if !is_read(&note) && !notes.contains(&note) {
                notes.push(note);
            }
        }
        self.notes = notes;
        self
    }

    pub(super) fn entities(&self) -> &[EntityShape] {
        &self.entities
    }

    /// Returns what has changed since an earlier layout, and what each change needs.
    ///
    /// ```
    /// use entable::{layout::{Layout, RequiredWork}, prelude::*};
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
    /// assert_eq!(changes[0].needs, RequiredWork::Rebuild);
    /// assert!(changes[0].how.contains("table.rebuild(Employee::by_email())"));
    /// # Ok::<(), Error>(())
    /// ```
    pub fn changes_since(&self, earlier: &Self) -> Vec<LayoutChange> {
        compare_layouts(&earlier.entities, &self.entities)
    }

    /// Returns the access patterns that cost something else than in an earlier layout, that are declared in another
    /// way, or whose claims do not hold, with the changes of types that cause it.
    ///
    /// ```
    /// use entable::{layout::Layout, prelude::*};
    ///
    /// #[derive(TableEntity)]
    /// #[table(name = "Staff", partition_key = "{department}", row_key = "empid_{id:06}",
    ///         index(ByEmail, row_key = "email_{email:lower}"))]
    /// pub struct Employee { pub department: String, pub id: u32, pub email: String }
    ///
    /// entable::access_patterns! {
    ///     STAFF;
    ///     "hire" write insert::<Employee>();
    /// }
    ///
    /// // Before there was an index, a hire was one operation.
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
    ///
    /// patterns "STAFF"
    ///   pattern "hire" claims Write
    ///     call insert "Employee"
    ///     plan Write requests 1 round_trips 1 operations 1
    /// "#
    /// .parse()?;
    /// let changes = entable::layout![Employee].with_patterns(STAFF).pattern_changes_since(&earlier);
    /// assert_eq!(changes[0].name, "hire");
    /// assert_eq!(changes[0].because, ["index `ByEmail` is new, in `Employee`"]);
    /// # Ok::<(), Error>(())
    /// ```
    pub fn pattern_changes_since(&self, earlier: &Self) -> Vec<PatternChange> {
        compare_patterns((&earlier.patterns, &self.patterns), (&earlier.entities, &self.entities))
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
    /// and which call does that. For each pattern that changed, it says what its plan was, what it is, and why. A
    /// pattern whose claim does not hold fails in every case, and is not written.
    pub fn check(&self, path: impl AsRef<Path>) -> Result<()> {
        let path = path.as_ref();
        let accepts = std::env::var_os(ACCEPT).is_some();
        let holds = self.patterns.iter().all(|pattern| pattern.broken.is_none());
        if accepts && holds {
            return std::fs::write(path, self.to_string()).map_err(|error| {
                let message = format!("`{}` cannot be written", path.display());
                Error::new(ErrorKind::Backend, message).with_source(error)
            });
        }
        let earlier = match std::fs::read_to_string(path) {
            Ok(text) => text.parse::<Self>()?,
            // The patterns are told before there is a file: it is not written until they hold.
            Err(_) if !holds => Self { patterns: Vec::new(), ..self.clone() },
            Err(error) => {
                let message = format!(
                    "`{}` cannot be read; if it is missing, write it with {ACCEPT}=write in the environment",
                    path.display()
                );
                return Err(Error::new(ErrorKind::Invalid, message).with_source(error));
            }
        };
        // A file with other line ends or comments has an equal layout.
        if earlier == *self {
            Ok(())
        } else {
            Err(Error::new(ErrorKind::Invalid, self.difference(&earlier, path, holds)))
        }
    }

    /// Returns the message about a layout that differs from the file, or whose patterns do not hold.
    fn difference(&self, earlier: &Self, path: &Path, holds: bool) -> String {
        let mut changes: Vec<String> =
            self.changes_since(earlier).iter().map(ToString::to_string).collect();
        changes.extend(self.pattern_changes_since(earlier).iter().map(ToString::to_string));
        if changes.is_empty() {
            changes.push(
                "entities, properties or patterns stand in another order: compatible".to_owned(),
            );
        }
        let end = if holds {
            format!(
                "when each change is prepared for, accept them with {ACCEPT}=write in the environment"
            )
        } else {
            format!(
                "{ACCEPT}=write writes the file once each pattern holds: change its path, what it claims, or the type"
            )
        };
        format!(
            "the layout differs from `{}`:\n\n{}\n\n{end}",
            path.display(),
            changes.join("\n\n")
        )
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
        self.entities.iter().try_for_each(|entity| write!(f, "\n{entity}"))?;
        let mut group = None;
        for pattern in &self.patterns {
            if group != Some(&pattern.group) {
                writeln!(f, "\npatterns \"{}\"", pattern.group)?;
                group = Some(&pattern.group);
            }
            pattern.fmt(f)?;
        }
        self.notes.iter().try_for_each(|note| write!(f, "\n# Note: {note}\n"))
    }
}

impl FromStr for Layout {
    type Err = Error;

    fn from_str(text: &str) -> Result<Self> {
        let (entities, patterns) = parse(text)?;
        Ok(Self { entities, patterns, notes: Vec::new() })
    }
}
