//! Defines [`Flush`], which controls when a writer stores its records.

use std::time::Duration;

/// Controls when a [`LogWriter`](crate::LogWriter) stores appended records.
///
/// Each flush is one request for each hour among its records. If the process ends, records that are not stored
/// yet are lost: at most two buffers, one being filled and one being stored.
///
/// ```
/// use std::time::Duration;
/// use entable::Flush;
///
/// let flush = Flush::buffered().bytes(1 << 20).after(Duration::from_secs(5));
/// assert_ne!(flush, Flush::each());
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Flush {
    /// The limits of a buffer. Without them, each record is stored before `append` returns.
    pub(super) limits: Option<BufferLimits>,
}

/// The limits of a buffer. A buffer is stored when it reaches any limit.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct BufferLimits {
    pub(super) bytes: usize,
    pub(super) records: usize,
    pub(super) after: Duration,
}

impl Flush {
    /// Stores each record before `append` returns: one request and one blob per record. Appended records are
    /// never lost.
    ///
    /// ```
    /// use entable::Flush;
    ///
    /// assert_ne!(Flush::each(), Flush::buffered());
    /// assert_eq!(Flush::each().bytes(1), Flush::each(), "it has no buffer to limit");
    /// ```
    pub const fn each() -> Self {
        Self { limits: None }
    }

    /// Stores records together, once they reach 4 MiB or 100,000 records, or once the oldest is 30 s old.
    ///
    /// ```
    /// use entable::Flush;
    ///
    /// assert_eq!(Flush::buffered(), Flush::buffered().bytes(4 << 20).records(100_000));
    /// ```
    pub const fn buffered() -> Self {
        let after = Duration::from_secs(30);
        Self { limits: Some(BufferLimits { bytes: 4 << 20, records: 100_000, after }) }
    }

    /// Stores the buffer once it holds this many bytes. Has no effect on [`each`](Self::each).
    ///
    /// ```
    /// use entable::Flush;
    ///
    /// assert_ne!(Flush::buffered().bytes(1 << 20), Flush::buffered());
    /// ```
    #[must_use]
    pub const fn bytes(mut self, bytes: usize) -> Self {
        if let Some(limits) = &mut self.limits {
            limits.bytes = bytes;
        }
        self
    }

    /// Stores the buffer once it holds this many records. Has no effect on [`each`](Self::each).
    ///
    /// ```
    /// use entable::Flush;
    ///
    /// assert_ne!(Flush::buffered().records(1_000), Flush::buffered());
    /// ```
    #[must_use]
    pub const fn records(mut self, records: usize) -> Self {
        if let Some(limits) = &mut self.limits {
            limits.records = records;
        }
        self
    }

    /// Stores the buffer once its oldest record reaches this age. Has no effect on [`each`](Self::each).
    ///
    /// ```
    /// use std::time::Duration;
    /// use entable::Flush;
    ///
    /// assert_ne!(Flush::buffered().after(Duration::from_secs(5)), Flush::buffered());
    /// ```
    #[must_use]
    pub const fn after(mut self, age: Duration) -> Self {
        if let Some(limits) = &mut self.limits {
            limits.after = age;
        }
        self
    }
}
