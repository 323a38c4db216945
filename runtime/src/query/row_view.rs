//! Shows the rows of a query in place, without making entities of them.

use std::{fmt, marker::PhantomData, sync::Arc};

use futures_util::TryStreamExt;
use time::OffsetDateTime;

use super::{
    build::Query,
    decode::{QueriedVersion, recognize_or_skip},
};
use crate::{
    edm::{InvalidValue, ValueRef},
    entity::{Column, ReadColumn, Schema, Stored, TableEntity},
    error::{Error, ErrorKind, Result},
    key::RowFamily,
    row::{ETag, Row, error_with_row_keys},
};

/// A row that [`Query::for_each_ref`] shows. Its keys and texts are borrowed from the page that was read.
pub struct RowView<'r, E> {
    row: &'r Row,
    family: &'static RowFamily,
    of: PhantomData<fn() -> E>,
}

impl<E> Clone for RowView<'_, E> {
    fn clone(&self) -> Self {
        *self
    }
}

impl<E> Copy for RowView<'_, E> {}

/// Shows the keys alone: properties may have been decrypted.
impl<E> fmt::Debug for RowView<'_, E> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("RowView").field(&self.row.keys()).finish()
    }
}

impl<'r, E: TableEntity> RowView<'r, E> {
    /// Returns PartitionKey and RowKey.
    ///
    /// ```
    /// # include!(concat!(env!("CARGO_MANIFEST_DIR"), "/docs/staff.rs"));
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> Result<(), Error> {
    /// let mut found = Vec::new();
    /// let keep = |employee: RowView<'_, Employee>| {
    ///     found.push(employee.keys().1.to_owned());
    ///     Ok(())
    /// };
    /// staff().await?.query(sales()).take(1).for_each_ref(keep).await?;
    /// assert_eq!(found, ["empid_000007"]);
    /// # Ok(())
    /// # }
    /// ```
    pub fn keys(&self) -> (&'r str, &'r str) {
        self.row.keys()
    }

    /// Returns when the row was written. `None` if the store did not say so.
    ///
    /// ```
    /// # include!(concat!(env!("CARGO_MANIFEST_DIR"), "/docs/staff.rs"));
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> Result<(), Error> {
    /// let is_written = |employee: RowView<'_, Employee>| {
    ///     assert!(employee.timestamp().is_some());
    ///     Ok(())
    /// };
    /// assert_eq!(staff().await?.query(sales()).for_each_ref(is_written).await?, 3);
    /// # Ok(())
    /// # }
    /// ```
    pub fn timestamp(&self) -> Option<OffsetDateTime> {
        self.row.timestamp().map(OffsetDateTime::from)
    }

    /// Returns the ETag, with which the entity can be changed if nobody else has changed it meanwhile.
    ///
    /// ```
    /// # include!(concat!(env!("CARGO_MANIFEST_DIR"), "/docs/staff.rs"));
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> Result<(), Error> {
    /// let staff = staff().await?;
    /// let jones = staff.get(at(224)).await?.map(|jones| jones.etag());
    /// let mut last = None;
    /// let keep = |employee: RowView<'_, Employee>| {
    ///     last = employee.etag();
    ///     Ok(())
    /// };
    /// staff.query(sales()).for_each_ref(keep).await?;
    /// assert_eq!(last, jones);
    /// # Ok(())
    /// # }
    /// ```
    pub fn etag(&self) -> Option<ETag> {
        self.row.etag()
    }

    /// Reads the field of a column, from the row's property or from its keys. Any column can be read, also one that
    /// is encrypted. Use [`text`](Self::text) for texts: it copies nothing.
    ///
    /// ```
    /// # include!(concat!(env!("CARGO_MANIFEST_DIR"), "/docs/staff.rs"));
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> Result<(), Error> {
    /// let (mut ids, mut ages) = (Vec::new(), 0);
    /// let add = |employee: RowView<'_, Employee>| {
    ///     ids.push(employee.get(Employee::ID)?);
    ///     ages += employee.get(Employee::AGE)?;
    ///     Ok(())
    /// };
    /// staff().await?.query(sales()).for_each_ref(add).await?;
    /// assert_eq!((ids, ages), (vec![7, 223, 224], 90));
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    ///
    /// Fails with `is_decode` if the value is missing or does not fit the field.
    pub fn get<F, K>(&self, column: Column<E, F, K>) -> Result<F> {
        column.read(self.row, self.family).map_err(|error| error_with_row_keys(self.row, error))
    }

    /// Returns the text of a column. `None` if the row does not have the property.
    ///
    /// ```
    /// # include!(concat!(env!("CARGO_MANIFEST_DIR"), "/docs/staff.rs"));
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> Result<(), Error> {
    /// let mut longest = 0;
    /// let measure = |employee: RowView<'_, Employee>| {
    ///     longest = longest.max(employee.text(Employee::LAST_NAME)?.map_or(0, str::len));
    ///     Ok(())
    /// };
    /// staff().await?.query(sales()).for_each_ref(measure).await?;
    /// assert_eq!(longest, "Jones".len());
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    ///
    /// Fails with `is_decode` if the value is no String, and with `is_invalid` for a column that the keys hold: read
    /// that with [`get`](Self::get).
    pub fn text<F, K>(&self, column: Column<E, F, K>) -> Result<Option<&'r str>> {
        let name = column.name();
        let error = |error: Error| Err(error_with_row_keys(self.row, error));
        if self.family.in_keys.contains(&name) {
            let message =
                "the row's keys hold this field, which may be escaped in them; read it with `get`";
            return error(Error::new(ErrorKind::Invalid, message).in_property(name));
        }
        match self.row.get(name) {
            Ok(Some(ValueRef::String(text))) => Ok(Some(text)),
            Ok(None) => Ok(None),
            Ok(Some(other)) => {
                let message = format!("expected a String, found {}", other.edm_type());
                error(InvalidValue::new(message).into_read_error(name))
            }
            Err(failure) => error(failure),
        }
    }
}

/// A row of the queried type.
struct RecognizedRow {
    row: Row,
    family: &'static RowFamily,
}

impl<E: TableEntity> Query<E, Stored<E>> {
    /// Calls a closure with each row of the query, in place: no entity is made, and texts are borrowed. Use it for
    /// sums and exports of many rows. Reads the same rows in the same requests as [`stream`](Self::stream), and
    /// returns how many it has shown.
    ///
    /// ```
    /// # include!(concat!(env!("CARGO_MANIFEST_DIR"), "/docs/staff.rs"));
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> Result<(), Error> {
    /// let mut names = String::new();
    /// let append = |employee: RowView<'_, Employee>| {
    ///     names.push_str(employee.text(Employee::LAST_NAME)?.unwrap_or_default());
    ///     Ok(())
    /// };
    /// assert_eq!(staff().await?.query(sales()).for_each_ref(append).await?, 3);
    /// assert_eq!(names, "CaoHallJones");
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    ///
    /// Returns the first error of a request, of a row that cannot be read, or of the closure. A row of another
    /// version of the entity fails with `is_unsupported`, because only an entity can be upgraded: use
    /// [`collect`](Self::collect) or [`stream`](Self::stream).
    pub async fn for_each_ref<F>(&self, mut show: F) -> Result<u64>
    where
        F: FnMut(RowView<'_, E>) -> Result<()>,
    {
        let mut rows = self.clone().recognized()?.stream();
        let mut shown = 0;
        while let Some(RecognizedRow { row, family }) = rows.try_next().await? {
            show(RowView { row: &row, family, of: PhantomData })?;
            shown += 1;
        }
        Ok(shown)
    }

    /// Leaves out the decoding of the rows.
    fn recognized(self) -> Result<Query<E, RecognizedRow>> {
        if self.request.reads_list() {
            // Lists are resolved to entities, which have their rows.
            let family = E::SCHEMA.primary()?;
            return Ok(self.map_decode(|decode| {
                Arc::new(move |page, row| {
                    let stored = decode(page, row)?;
                    Ok(stored.map(|stored| RecognizedRow { row: stored.row().clone(), family }))
                })
            }));
        }
        let family = self.request.family().map_or_else(|| E::SCHEMA.primary(), Ok)?;
        Ok(self.map_decode(|_| {
            Arc::new(move |_, row| {
                let row = row?;
                match is_shown(E::SCHEMA, &row, family) {
                    Ok(true) => Ok(Some(RecognizedRow { row, family })),
                    Ok(false) => Ok(None),
                    Err(error) => Err(error_with_row_keys(&row, error)),
                }
            })
        }))
    }
}

/// Returns whether the entity's query shows a row. Fails for another version of the entity.
fn is_shown(schema: &'static Schema, row: &Row, family: &'static RowFamily) -> Result<bool> {
    match recognize_or_skip(schema, row, family)? {
        Some(QueriedVersion::Own) => Ok(true),
        None => Ok(false),
        Some(QueriedVersion::Other(version)) => {
            let message = format!(
                "the row is of version {version}, which is upgraded when an entity is made of it; use `collect` or `stream`"
            );
            Err(Error::new(ErrorKind::Unsupported, message))
        }
    }
}
