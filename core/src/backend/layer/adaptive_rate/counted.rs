//! Counts requests and loads while they run. Each count ends with its request or load, even if that is dropped early.

use std::sync::{Arc, Mutex};

use super::{RateState, lock};

/// Adds one to a count of the layer, and subtracts it again when this value is dropped.
#[derive(Debug)]
pub(super) struct Counted {
    state: Arc<Mutex<RateState>>,
    count: fn(&mut RateState) -> &mut usize,
}

impl Counted {
    pub(super) fn new(
        state: &Arc<Mutex<RateState>>,
        count: fn(&mut RateState) -> &mut usize,
    ) -> Self {
        *count(&mut lock(state)) += 1;
        Self { state: state.clone(), count }
    }

    /// Returns the state that the count is in.
    pub(super) fn state(&self) -> &Mutex<RateState> {
        &self.state
    }
}

impl Drop for Counted {
    fn drop(&mut self) {
        let mut state = lock(&self.state);
        let count = (self.count)(&mut state);
        *count = count.saturating_sub(1);
    }
}
