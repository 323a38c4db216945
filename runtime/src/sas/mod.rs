//! Shared access signatures: leave to use a table, or the tables of an account, made without a
//! request.
//!
//! A signature is as good as the key for what it allows: hand it on over a safe way, for a short
//! time. `Debug` never prints one.

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

/// A set of letters in the order that the service signs them in.
macro_rules! letters {
    (
        $(#[$doc:meta])* $name:ident;
        $($(#[$one:meta])* $constant:ident = $bit:literal $letter:literal;)*
    ) => {
        $(#[$doc])*
        #[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
        pub struct $name(u8);

        impl $name {
            /// None of them.
            pub const NONE: Self = Self(0);
            $($(#[$one])* pub const $constant: Self = Self($bit);)*
            /// All of them.
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
