//! The rules about which work of workers, such as handling a message, needs an authentication code.

/// Whether a client with keys asks for a code on the work that it finds, such as messages and moves.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Authenticity {
    /// Refuses work without a code: whoever can write the store could have put it there.
    #[default]
    Require,
    /// Does work without a code, and refuses a wrong code. For a roll-out only, until every writer
    /// signs and no unsigned work is left.
    Accept,
}

/// Whether messages of a type need a code, as `#[table(..)]` on the message declares.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum MessageAuthenticity {
    /// The type declares nothing: the client's [`Authenticity`] decides.
    #[default]
    ByClient,
    /// Always (`authenticated`): without keys, the message is neither emitted nor handled.
    Required,
    /// Never (`unauthenticated`): for messages of other programs. A wrong code is refused.
    NotRequired,
}

/// Whether a holder of the keys asked for work that was put aside. The worker computes this value. Any
/// other text in the poison table may come from anybody who can write to the store.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum WorkAuthenticity {
    /// The work has no code, and needs none: dirty rows and claims, and messages where neither their type
    /// nor the client asks for one.
    Unsigned,
    /// Somebody with the keys asked for the work, at the place that it names: its code is verified.
    Authentic,
    /// Nobody with the keys asked for the work as it is, at the place that it names: its code is wrong, or
    /// is missing where one is required.
    NotAuthentic,
    /// The code was not verified: the client does not have the key, the key store does not answer, the row
    /// is damaged, or it is a move whose entity cannot be read or is not locked by it any more. Or there is
    /// no code, and this program does not know whether the message's type needs one.
    Unverified,
}
