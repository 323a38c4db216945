//! What is known about every failure of one kind: one table, without a catch-all arm. A new kind of failure does not
//! compile until it has a line.

use super::kind::ErrorKind;

/// Whether a failed request can succeed when it is sent again unchanged.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum RetryChance {
    /// The obstacle goes away by itself: throttling, network, missing keys or permissions, other
    /// writers.
    PassesAlone,
    /// The request fails every time.
    Never,
    /// The error does not show which.
    Unclear,
}

/// Whether a failed write was carried out.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Certainty {
    /// It was not, and never will be.
    NotExecuted,
    /// It was refused, but a proxy on the way may answer so after it passed the request on.
    Refused,
    /// Unknown: its answer was lost, or the backend failed.
    AnswerLost,
}

/// Whose fault a failure is. A set, because a failure can have several causes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Fault(u8);

impl Fault {
    /// Nobody's in particular: the request, the store or the network.
    const NONE: Self = Self(0);
    /// A stored row cannot be decrypted or read as its type.
    pub(super) const ROW: Self = Self(1);
    /// One entity cannot be rewritten because of its row, its blobs or another entity.
    pub(super) const ENTITY: Self = Self(2);
    /// The store refuses one row of a transaction, and would take the others.
    pub(super) const OPERATION: Self = Self(4);
    /// The target of a move refuses the entity permanently.
    pub(super) const TARGET: Self = Self(8);

    const fn and(self, other: Self) -> Self {
        Self(self.0 | other.0)
    }

    /// Returns whether the set contains `other`.
    pub(super) const fn contains(self, other: Self) -> bool {
        self.0 & other.0 == other.0
    }
}

/// The facts about one kind of failure.
#[derive(Debug, Clone, Copy)]
pub(super) struct KindFacts {
    pub(super) retry: RetryChance,
    pub(super) certainty: Certainty,
    /// Whether another writer changed, created or deleted the row or its table first.
    pub(super) is_lost_race: bool,
    pub(super) fault: Fault,
}

impl KindFacts {
    /// A request that fails every time and was not carried out.
    const FAILS: Self = Self {
        retry: RetryChance::Never,
        certainty: Certainty::NotExecuted,
        is_lost_race: false,
        fault: Fault::NONE,
    };
    /// A failure that passes alone. The request was not carried out.
    const PASSES: Self = Self { retry: RetryChance::PassesAlone, ..Self::FAILS };
    /// A failure that may pass or not. The request was not carried out.
    const UNCLEAR: Self = Self { retry: RetryChance::Unclear, ..Self::FAILS };
    /// A failure of the way to the store or of the store itself.
    const ANSWER_LOST: Self = Self { certainty: Certainty::AnswerLost, ..Self::PASSES };

    const fn with_lost_race(self) -> Self {
        Self { is_lost_race: true, ..self }
    }

    const fn by(self, fault: Fault) -> Self {
        Self { fault, ..self }
    }
}

impl ErrorKind {
    /// Returns the facts about failures of this kind.
    pub(super) const fn facts(self) -> KindFacts {
        let refused = Fault::OPERATION.and(Fault::TARGET);
        let unreadable = Fault::ROW.and(Fault::ENTITY);
        match self {
            Self::NotFound => KindFacts::FAILS.with_lost_race().by(refused),
            Self::Conflict => KindFacts::UNCLEAR.with_lost_race().by(refused.and(Fault::ENTITY)),
            Self::PreconditionFailed => KindFacts::PASSES.with_lost_race().by(Fault::OPERATION),
            Self::UniqueViolation => KindFacts::FAILS.by(Fault::TARGET),
            Self::TooLarge => KindFacts::FAILS.by(refused.and(Fault::ENTITY)),
            Self::Throttled => KindFacts { certainty: Certainty::Refused, ..KindFacts::PASSES },
            Self::UnrecognizedEntity => KindFacts::UNCLEAR.by(unreadable),
            Self::Decode => KindFacts::FAILS.by(unreadable.and(Fault::TARGET)),
            Self::Decrypt => KindFacts::FAILS.by(unreadable),
            Self::KeyUnavailable => KindFacts::PASSES.by(unreadable),
            Self::Ambiguous | Self::Backend => KindFacts::ANSWER_LOST,
            Self::Contended | Self::Denied | Self::Locked => KindFacts::PASSES,
            Self::LeaseLost | Self::ScanRefused | Self::InvalidCursor => KindFacts::UNCLEAR,
            Self::Invalid => KindFacts::FAILS.by(refused),
            Self::Rejected | Self::Unsupported | Self::Lossy | Self::RolledBack => KindFacts::FAILS,
            Self::Stale => KindFacts::FAILS.by(Fault::ENTITY),
            Self::Corrupt => KindFacts::FAILS.by(Fault::ENTITY.and(Fault::OPERATION)),
        }
    }
}
