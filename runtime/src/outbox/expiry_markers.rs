//! Remembers which expiry markers a client has written, and when it last asked for the store's date.

use std::sync::Arc;

use tokio::time::Instant;

use crate::{
    plan::outbox::ExpiryMarker,
    single_flight::{FlightSlot, SingleFlight},
};

/// The number of written markers that a client remembers.
const MAX_KNOWN_MARKERS: usize = 65_536;

/// The expiry markers that a client knows to exist.
#[derive(Debug, Default)]
pub(crate) struct ExpiryMarkers {
    written: SingleFlight<ExpiryMarker, bool>,
    /// When the client last asked the store for its time.
    pub(crate) asked: FlightSlot<Option<Instant>>,
}

impl ExpiryMarkers {
    /// Returns the cached state of a marker: `true` once the marker is known to exist. At 65,536 markers, the client
    /// forgets all markers that no task uses. A forgotten marker is inserted again.
    pub(crate) fn flight_slot_of_marker(&self, marker: ExpiryMarker) -> Arc<FlightSlot<bool>> {
        self.written.flight_slot_of_key(marker, MAX_KNOWN_MARKERS, |_, _| false)
    }
}
