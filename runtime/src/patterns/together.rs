//! Questions about a transaction of several writes.

use super::{
    question::{EntityWrite, Question},
    write_cost::WriteVerb,
};
use crate::entity::{Message, TableEntity};

/// Begins a question about a [`Transaction`](crate::Transaction) of several writes. Add each write with a method, which
/// has the name of the transaction's method.
///
/// ```
/// use entable::prelude::*;
///
/// #[derive(TableEntity)]
/// #[table(name = "Orders", partition_key = "{customer}", row_key = "order_{number:08}",
///         index(ByArticle, row_key = "article_{article}_{number:08}"))]
/// pub struct Order { pub customer: String, pub number: u32, pub article: String }
///
/// #[derive(TableEntity)]
/// #[table(name = "Orders", partition_key = "{customer}", row_key = "customer")]
/// pub struct Customer { pub customer: String, pub orders: u32 }
///
/// entable::access_patterns! {
///     ORDERS;
///     "order three articles" write transaction().insert::<Order>().times(3).replace::<Customer>() requests 1 at 5/s;
/// }
///
/// ORDERS.check()?;
/// // Three orders with a copy each, and the customer.
/// assert_eq!(ORDERS.patterns()[0].operation_count(), 7);
/// # Ok::<(), Error>(())
/// ```
pub const fn transaction() -> Together {
    Together { writes: Vec::new(), messages: 0 }
}

/// Writes that are committed in one transaction. [`transaction`] begins them. Each write concerns a different entity,
/// with its own copies and lists.
#[derive(Debug, Clone, Default)]
pub struct Together {
    writes: Vec<EntityWrite>,
    messages: usize,
}

macro_rules! writes {
    ($($(#[$doc:meta])* $name:ident = $verb:ident;)*) => {
        impl Together { $(
            $(#[$doc])*
            #[must_use]
            pub fn $name<E: TableEntity>(self) -> Self {
                let function = stringify!($name);
                self.add(EntityWrite { function, schema: E::SCHEMA, verb: WriteVerb::$verb })
            }
        )* }
    };
}

writes! {
    /// Inserts an entity that has a copy in each of its indexes, into lists that exist.
    insert = Insert;
    /// Replaces an entity that was read; no key of its copies and lists changes.
    replace = Replace;
    /// Replaces an entity that was read, so that the key of each copy and list changes.
    replace_keys = ReplaceKeys;
    /// Merges a field that the copies hold, and that is in no key.
    patch_at = PatchAt;
    /// Inserts an entity or replaces the stored one; no key of its copies and lists changes.
    insert_or_replace = InsertOrReplace;
    /// Inserts an entity or merges it into the stored one; no key of its copies and lists changes.
    insert_or_merge = InsertOrMerge;
    /// Deletes an entity that was read.
    delete = Delete;
    /// Deletes an entity by its keys.
    delete_at = DeleteAt;
}

impl Together {
    fn add(mut self, write: EntityWrite) -> Self {
        self.writes.push(write);
        self
    }

    /// Repeats the last write for `entities` entities of its type.
    #[must_use]
    pub fn times(mut self, entities: usize) -> Self {
        if let Some(last) = self.writes.pop() {
            self.writes.extend(std::iter::repeat_n(last, entities));
        }
        self
    }

    /// Stores a message in the transaction.
    #[must_use]
    pub fn emit<M: Message>(mut self) -> Self {
        self.messages += 1;
        self
    }
}

impl From<Together> for Question {
    fn from(together: Together) -> Self {
        Self::of_transaction(&together.writes, together.messages)
    }
}
