//! Makes shared access signatures (SAS): signed permissions to use one table, or all tables of an
//! account. No request is sent.
//!
//! For what it permits, a signature is as powerful as the account's key. Transmit it over a secure
//! channel and limit its lifetime. `Debug` never prints one.

mod account;
mod bounds;
mod cache;
mod table;
mod terms;
mod token;

pub use account::{AccountPermissions, AccountSas, ResourceTypes};
pub use cache::SasCache;
pub use table::{TablePermissions, TableSas};
pub use token::SasToken;

/// Defines a set of permission letters, written in the order in which the service signs them.
macro_rules! letters {
    (
        $(#[$doc:meta])* $name:ident;
        $($(#[$one:meta])* $constant:ident = $bit:literal $letter:literal;)*
    ) => {
        $(#[$doc])*
        #[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
        pub struct $name(u8);

        impl $name {
            /// The empty set.
            pub const NONE: Self = Self(0);
            $($(#[$one])* pub const $constant: Self = Self($bit);)*
            /// The set of all members.
            pub const ALL: Self = Self(0 $(| $bit)*);

            pub(super) fn letters(self) -> String {
                let all = [$(($bit, $letter)),*];
                all.into_iter().filter(|(bit, _)| self.0 & bit != 0).map(|(_, l)| l).collect()
            }
        }

        impl std::ops::BitOr for $name {
            type Output = Self;

            fn bitor(self, other: Self) -> Self {
                Self(self.0 | other.0)
            }
        }
    };
}
use letters;
