//! Generates what a compiler's message needs to say which step of a path is missing.
//!
//! A builder state implements `NotOneRow<T>`, and `PartitionPathBuilder<T>` if it lacks a part of the
//! PartitionKey, for any `T` that meets the bound of its next step. No type meets one, and the compiler
//! reports the bound's message: "the path ends before `id_of_Employee`". The bound is a trait of the runtime, since an
//! attribute such as `#[diagnostic::..]` does not compile in a module with `no_implicit_prelude`. Its
//! parameter is a type that is named after the method: `id_of_Employee`.

use proc_macro2::{Ident, TokenStream};
use quote::{format_ident, quote};

use super::path_builder::{FamilyPathBuilder, GivenFlags};
use crate::names;

/// Returns the module `__step`, which contains an empty type for each step that a path may lack, such as
/// `id_of_Employee`. Compiler messages show the name of the type. The names do not begin with `__`, so only the module
/// keeps them from clashing with names of the user. Returns nothing if no path lacks a step.
pub(super) fn emit_missing_steps(
    builders: &[FamilyPathBuilder<'_>],
    vis: &TokenStream,
) -> TokenStream {
    let mut steps: Vec<Ident> = Vec::new();
    for builder in builders {
        for step in builder.states.iter().filter_map(|given| builder.missing_step(given)) {
            if !steps.contains(&step) {
                steps.push(step);
            }
        }
    }
    if steps.is_empty() {
        return TokenStream::new();
    }
    quote! {
        #vis mod __step { #(pub enum #steps {})* }
    }
}

impl FamilyPathBuilder<'_> {
    /// Returns a bound that no type meets, so the compiler reports that the path does not lead to one row. The bound
    /// says which step comes next, except after a window of times, where none would help. Returns `None` for a
    /// refused entity, to add no further errors.
    pub(super) fn missing_bound(&self, given: &GivenFlags) -> Option<TokenStream> {
        if self.is_refused {
            return None;
        }
        Some(match (self.missing_step(given), self.is_path(given)) {
            (Some(step), true) => quote! { _rt::HasPointStep<__step::#step> },
            (Some(step), false) => quote! { _rt::HasPathStep<__step::#step> },
            // After a window of times, a path leads to many rows whatever is added.
            (None, _) => quote! { _rt::LeadsToOneRow },
        })
    }

    /// Returns the type that stands for the method which the builder state lacks. `None` after a window of times.
    fn missing_step(&self, given: &GivenFlags) -> Option<Ident> {
        if self.is_refused || self.is_window_given(given) && self.is_path(given) {
            return None;
        }
        let field = self.next_field(given)?;
        // The value that only names a dated table comes first, and has one method.
        let is_exact = !self.begins_with_time(given) && self.has_method_for_exact_value(given);
        let exact = if is_exact { "_exact" } else { "" };
        // With the entity's name, since the compiler shows the whole path of a type whose name is not unique.
        let entity = names::ident_text(&self.entity.ident);
        Some(format_ident!("{}{exact}_of_{entity}", field.name))
    }
}
