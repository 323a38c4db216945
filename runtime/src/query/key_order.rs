//! Merges queries of several partitions by RowKey, as one query.

use std::{cmp::Ordering, collections::VecDeque, fmt};

use futures_util::{StreamExt, TryStreamExt, future::try_join_all, stream};

use super::{
    build::{Items, Query},
    explain::Explain,
    fan_out::QueryMany,
    pages::PlannedQuery,
};
use crate::{
    entity::{Stored, TableEntity},
    error::{Error, ErrorKind, Result},
    filter::Filter,
    filter::compare_utf16,
    limits::{PAGE_ROWS, saturating_u64, saturating_usize},
    page::{Continuation, Cursor, Page, PageLoop, text_fingerprint},
};

/// Queries of several partitions whose rows are merged by RowKey, then by PartitionKey. A row that several
/// paths lead to is returned once. [`QueryMany::in_key_order`] creates it.
pub struct KeyOrder<E> {
    queries: Vec<Query<E, Stored<E>>>,
    page_size: u32,
}

impl<E> Clone for KeyOrder<E> {
    fn clone(&self) -> Self {
        Self { queries: self.queries.clone(), page_size: self.page_size }
    }
}

impl<E> fmt::Debug for KeyOrder<E> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("KeyOrder")
            .field("queries", &self.queries)
            .field("page_size", &self.page_size)
            .finish()
    }
}

impl<E: TableEntity> QueryMany<E> {
    /// Merges the rows of all paths by RowKey, as if they were in one partition. Each path must fix the whole
    /// PartitionKey.
    #[must_use]
    pub fn in_key_order(self) -> KeyOrder<E> {
        KeyOrder { queries: self.into_queries(), page_size: PAGE_ROWS }
    }
}

impl<E: TableEntity> KeyOrder<E> {
    /// Sets the maximum number of items per page, 1 to 1,000. The default is 1,000.
    #[must_use]
    pub fn page_size(self, items: u32) -> Self {
        Self { page_size: items, ..self }
    }

    /// Returns what each query will send for the first page, in the order of the paths. Sends nothing.
    pub fn explain(&self) -> Vec<Explain> {
        self.queries.iter().map(|query| query.clone().page_size(self.page_size).explain()).collect()
    }

    /// Reads one page, from the start or from the cursor of an earlier page, even in another process. Costs one
    /// request for each path, in parallel, and more for a path whose first rows have other types.
    ///
    /// The cursor holds the keys of the last item, so its size does not depend on the number of paths. Rows
    /// inserted before the cursor are not found.
    ///
    /// # Errors
    ///
    /// Fails with `is_invalid` for a path that spans partitions or leads to a list, and with
    /// `is_invalid_cursor` for a cursor of another query. Otherwise fails with the first error of a request or a
    /// row.
    pub async fn page(&self, cursor: Option<Cursor>) -> Result<Page<Stored<E>>> {
        let most = saturating_usize(self.page_size);
        let mut merge = self.start_merge(cursor.as_ref(), self.page_size).await?;
        let mut items = Vec::new();
        while items.len() < most {
            let Some(item) = merge.next_item().await? else { return Ok(Page::new(items, None)) };
            items.push(item);
        }
        let as_of = cursor.as_ref().and_then(|cursor| cursor.as_of);
        let returned = cursor.map_or(0, |cursor| cursor.returned) + saturating_u64(items.len());
        let next = items.last().filter(|_| merge.has_more()).map(|last| Cursor {
            fingerprint: merge.fingerprint,
            returned,
            mixed: false,
            at: Continuation {
                partition_key: last.partition_key().to_owned(),
                row_key: Some(last.row_key().to_owned()),
            },
            table: None,
            as_of,
        });
        Ok(Page::new(items, next))
    }

    /// Returns all items as a stream. Keeps one page of rows for each path in memory.
    pub fn stream(&self) -> Items<Stored<E>> {
        let this = self.clone();
        let merged = async move {
            let merge = this.start_merge(None, this.page_size).await?;
            Ok::<_, Error>(stream::try_unfold(merge, |mut merge| async move {
                Ok(merge.next_item().await?.map(|item| (item, merge)))
            }))
        };
        stream::once(merged).try_flatten().boxed()
    }

    /// Reads all items.
    ///
    /// # Errors
    ///
    /// Fails as [`page`](Self::page) does.
    pub async fn collect(&self) -> Result<Vec<Stored<E>>> {
        self.stream().try_collect().await
    }

    /// Prepares all queries to continue after `cursor`.
    async fn start_merge(&self, cursor: Option<&Cursor>, page_size: u32) -> Result<Merge<E>> {
        let mut partitions = Vec::with_capacity(self.queries.len());
        let mut text = String::from("in key order");
        for query in &self.queries {
            if query.request.tables.is_some() {
                let message = "a time window reads several tables, whose rows cannot be merged by RowKey; give each \
                               path one time";
                return Err(Error::new(ErrorKind::Invalid, message).in_table(&query.request.table));
            }
            let plan = query.request.clone().plan(None).await?;
            let partition = plan.read.access.keys.partition.clone();
            let Some(partition) = partition.filter(|_| !plan.request.reads_list()) else {
                let message = "merging by RowKey needs paths that give a whole PartitionKey and lead to rows, not to \
                               a list of ids";
                return Err(Error::new(ErrorKind::Invalid, message).in_table(&plan.request.table));
            };
            if !plan.request.store.capabilities().ordered {
                let message = "the store returns rows in no order, so they cannot be merged";
                return Err(
                    Error::new(ErrorKind::Unsupported, message).in_table(&plan.request.table)
                );
            }
            // The cursor only holds keys, so the fingerprint must include the paths in their order.
            text.push_str(&format!("\u{0}{:x}", plan.fingerprint()));
            partitions.push(partition);
        }
        let fingerprint = text_fingerprint(&text);
        let after = match cursor {
            None => None,
            Some(Cursor { fingerprint: found, at, .. }) => match &at.row_key {
                Some(row_key) if *found == fingerprint => Some((&at.partition_key, row_key)),
                _ => {
                    let message = "the cursor belongs to another query; use the same paths and conditions in the same \
                                   order";
                    return Err(Error::new(ErrorKind::InvalidCursor, message));
                }
            },
        };
        let mut sources = Vec::with_capacity(self.queries.len());
        for (query, partition) in self.queries.iter().zip(partitions) {
            let rest = query.clone().page_size(page_size).edit_request(|request| {
                if let Some((after_partition, row_key)) = after {
                    // Items are ordered by RowKey, then by PartitionKey. A later partition may still
                    // contain the last RowKey.
                    let rows = match compare_utf16(&partition, after_partition) {
                        Ordering::Greater => Filter::ge("RowKey", row_key.as_str()),
                        Ordering::Less | Ordering::Equal => Filter::gt("RowKey", row_key.as_str()),
                    };
                    request.add_condition(Ok(rows));
                }
            });
            if let Some(run) = rest.plan(None).await? {
                sources.push(MergedQuery {
                    run,
                    items: VecDeque::new(),
                    pages: PageLoop::from_start(),
                });
            }
        }
        Ok(Merge { fingerprint, sources, last: None })
    }
}

/// The queries of a merge that is running.
struct Merge<E> {
    fingerprint: u64,
    sources: Vec<MergedQuery<E>>,
    /// The keys of the last returned item.
    last: Option<(String, String)>,
}

/// One query of a merge, and its items that were read but not yet returned.
struct MergedQuery<E> {
    run: PlannedQuery<Stored<E>>,
    items: VecDeque<Stored<E>>,
    /// The pages that have not been read yet.
    pages: PageLoop<Cursor>,
}

impl<E: TableEntity> MergedQuery<E> {
    /// Reads pages until an item is available or nothing is left.
    async fn read_until_item(&mut self) -> Result<()> {
        while self.items.is_empty()
            && let Some(cursor) = self.pages.take_position()
        {
            let page = self.run.page_of_results(cursor).await?;
            self.items = page.items.into_iter().collect::<Result<_>>()?;
            self.pages.continue_at(page.next);
        }
        Ok(())
    }
}

impl<E: TableEntity> Merge<E> {
    /// Returns whether more items may follow.
    fn has_more(&self) -> bool {
        self.sources.iter().any(|source| !source.items.is_empty() || !source.pages.is_over())
    }

    /// Removes and returns the item with the smallest keys. Returns `None` at the end.
    async fn next_item(&mut self) -> Result<Option<Stored<E>>> {
        loop {
            // The smallest item is known only if every unfinished query has an item in memory.
            try_join_all(self.sources.iter_mut().map(MergedQuery::read_until_item)).await?;
            let least = self
                .sources
                .iter_mut()
                .filter(|source| !source.items.is_empty())
                .min_by(|a, b| cmp_items(a.items.front(), b.items.front()));
            let Some(item) = least.and_then(|source| source.items.pop_front()) else {
                return Ok(None);
            };
            let keys = (item.partition_key().to_owned(), item.row_key().to_owned());
            if self.last.as_ref() != Some(&keys) {
                self.last = Some(keys);
                return Ok(Some(item));
            }
        }
    }
}

/// Compares items by RowKey, then by PartitionKey.
fn cmp_items<E>(a: Option<&Stored<E>>, b: Option<&Stored<E>>) -> Ordering {
    match (a, b) {
        (Some(a), Some(b)) => compare_utf16(a.row_key(), b.row_key())
            .then_with(|| compare_utf16(a.partition_key(), b.partition_key())),
        _ => a.is_none().cmp(&b.is_none()),
    }
}
