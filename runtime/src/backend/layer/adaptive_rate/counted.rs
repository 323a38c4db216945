//! A count that ends with its request, also if the request is dropped.

use super::{AdaptiveRate, RateState};

/// Adds one to a count of the layer until it is dropped.
pub(super) struct Counted<'a> {
    rate: &'a AdaptiveRate,
    count: fn(&mut RateState) -> &mut usize,
}

impl<'a> Counted<'a> {
    pub(super) fn new(rate: &'a AdaptiveRate, count: fn(&mut RateState) -> &mut usize) -> Self {
        *count(&mut rate.lock()) += 1;
        Self { rate, count }
    }
}

impl Drop for Counted<'_> {
    fn drop(&mut self) {
        let mut state = self.rate.lock();
        let count = (self.count)(&mut state);
        *count = count.saturating_sub(1);
    }
}
