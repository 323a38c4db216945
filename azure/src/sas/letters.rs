//! Defines the macro for sets of permission letters.

/// Defines a set of permission letters, written in the order that the service signs them.
macro_rules! letters {
    (
        $(#[$doc:meta])* $name:ident;
        $($(#[$one:meta])* $constant:ident = $bit:literal $letter:literal;)*
    ) => {
        $(#[$doc])*
        #[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
        pub struct $name(u8);

        impl $name {
            /// Contains no permission or resource type.
            pub const NONE: Self = Self(0);
            $($(#[$one])* pub const $constant: Self = Self($bit);)*
            /// Contains every permission or resource type.
            pub const ALL: Self = Self(0 $(| $bit)*);

            pub(super) fn permission_letters(self) -> String {
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
pub(super) use letters;
