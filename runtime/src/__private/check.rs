//! Checks that the compiler makes of the types in a declaration before generated code uses them.

use crate::entity::{
    TableEntity,
    set::{
        SetMember,
        aggregate::{ManyField, OneField, OtherField},
    },
};

/// An array. Generated code writes a type as the element of an array whose length is the result of a check.
/// If the check fails, the compiler reports the check, and ignores what follows from the type.
pub trait Array {
    /// The type of the elements.
    type Element;
}

impl<T, const N: usize> Array for [T; N] {
    type Element = T;
}

/// Returns 0. A call compiles only if the type is an entity.
pub const fn check_is_entity<E: TableEntity>() -> usize {
    0
}

/// Returns 0. A call compiles only if `F` can be a `one` field.
pub const fn check_one_field<F: OneField>() -> usize
where
    F::Value: SetMember,
{
    0
}

/// Returns 0. A call compiles only if `F` can be a `many` field.
pub const fn check_many_field<F: ManyField>() -> usize
where
    F::Value: SetMember,
{
    0
}

/// Returns 0. A call compiles only if `F` can be an `other` field.
pub const fn check_other_field<F: OtherField>() -> usize {
    0
}
