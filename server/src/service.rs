//! The store that is served, and the account under whose name it is.

use std::sync::Arc;

use entable_azure::AccountKey;
use entable_core::{Clock, backend::Backend};

use crate::budget::Budget;

/// The store, and what all requests to it share.
#[derive(Debug)]
pub(crate) struct Service {
    pub(crate) backend: Arc<dyn Backend>,
    pub(crate) key: AccountKey,
    pub(crate) clock: Arc<dyn Clock>,
    pub(crate) budget: Budget,
}
