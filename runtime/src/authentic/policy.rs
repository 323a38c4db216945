//! The rules that say which work needs a code.

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

/// Whether messages of a type need a code, as `#[table(..)]` on the message says.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum MessageAuthenticity {
    /// As the client's [`Authenticity`] says: nothing is declared.
    #[default]
    ByClient,
    /// Always (`authenticated`): without keys, the message is neither emitted nor handled.
    Required,
    /// Never (`unauthenticated`): for messages of other programs. A wrong code is refused.
    NotRequired,
}
