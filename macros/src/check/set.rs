//! Checks sets of entities.

use std::collections::HashMap;

use quote::ToTokens;

use crate::{errors::Errors, model::Set};

/// Reports two members of one type: a row could go to either.
pub(super) fn report_equal_member_types(set: &Set, errors: &mut Errors) {
    let mut seen = HashMap::new();
    for member in &set.members {
        // `syn` types are compared as text, and spaces depend on how the tokens were written.
        let ty = member.ty.to_token_stream().to_string().replace(' ', "");
        if let Some(first) = seen.insert(ty.clone(), &member.ident) {
            let message =
                format!("`{first}` and `{}` both hold `{ty}`, expected one of them", member.ident);
            errors.add_at(member.ident.span(), message);
        }
    }
}
