//! Collects the lines of records, and makes one part for each hour among them.

use std::{ops::Range, sync::Arc};

use bytes::Bytes;

use super::{hour::LogHour, record::LogRecord};
use crate::{edm::Ticks, error::Result};

/// Lines that are not stored yet.
#[derive(Debug, Default)]
pub(super) struct UnstoredLines {
    text: String,
    /// The time of each line and its range in `text`, in append order.
    lines: Vec<(Ticks, Range<usize>)>,
}

/// The lines of one hour that are stored as one blob.
#[derive(Debug)]
pub(super) struct HourLines {
    pub(super) hour: LogHour,
    pub(super) text: Bytes,
    pub(super) first: Ticks,
    pub(super) last: Ticks,
    /// The random id of the flush that stores this part. If the store keeps metadata, the blob's metadata also
    /// holds the id, and a writer recognises a blob of its own flush by it.
    pub(super) batch: Arc<str>,
    /// The number of a put that was sent and has an unknown outcome. That put may still store the
    /// part. Another number is tried only once the blob of this number is known to be another
    /// writer's.
    pub(super) sent_as: Option<u32>,
}

impl UnstoredLines {
    /// Adds a record.
    ///
    /// # Errors
    ///
    /// `is_invalid` for a time outside of the years 1 to 9999.
    pub(super) fn push(&mut self, record: &LogRecord) -> Result<()> {
        let at = record.ticks()?;
        let start = self.text.len();
        record.append_line_to(&mut self.text);
        self.lines.push((at, start..self.text.len()));
        Ok(())
    }

    /// Returns the number of bytes in all lines.
    pub(super) const fn byte_count(&self) -> usize {
        self.text.len()
    }

    /// Returns the number of records.
    pub(super) const fn record_count(&self) -> usize {
        self.lines.len()
    }

    /// Returns the lines as one part per hour, sorted by time. Lines with equal times keep their append order.
    pub(super) fn into_lines_by_hour(mut self, batch: &str) -> Vec<HourLines> {
        let batch: Arc<str> = batch.into();
        self.lines.sort_by_key(|(at, _)| *at);
        let hours =
            self.lines.chunk_by(|(a, _), (b, _)| LogHour::hour_of(*a) == LogHour::hour_of(*b));
        let parts = hours.filter_map(|lines| {
            let ((first, _), (last, _)) = (lines.first()?, lines.last()?);
            let texts = lines.iter().filter_map(|(_, line)| self.text.get(line.clone()));
            Some(HourLines {
                hour: LogHour::hour_of(*first),
                text: texts.collect::<String>().into(),
                first: *first,
                last: *last,
                batch: batch.clone(),
                sent_as: None,
            })
        });
        parts.collect()
    }
}
