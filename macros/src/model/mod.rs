//! Second stage: finds out what the attributes mean. Fills in defaults and looks up names.

mod dated;
mod edm_enum;
mod entity;
mod field;
mod key;
mod message;
mod newtype;
mod projection;
mod properties;
pub(crate) mod series;
mod set;

use proc_macro2::{Ident, Span};
use syn::{Data, DeriveInput, Fields, Path, spanned::Spanned};

pub(crate) use self::{
    dated::{DatedTableName, is_table_name_template},
    edm_enum::EdmEnum,
    entity::Entity,
    field::{AbsenceRule, Field, Storage},
    key::{Family, FamilyKind, KeyTemplate, Part, Segment},
    message::Message,
    newtype::Newtype,
    projection::Projection,
    properties::Properties,
    set::{Member, RowsPerMember, Set, Shape},
};
use crate::{errors::Errors, manifest, slot::Slot};

/// Returns the path of the crate `entable`: `::entable`, or the path in `crate = ".."`. If the
/// package's manifest depends on entable under another name and `crate` is not given, returns that
/// name as the path and reports the missing `crate`.
fn runtime_path(given: &Slot<Path>, input: &DeriveInput, errors: &mut Errors) -> Path {
    runtime_called(manifest::other_name_of_entable(), given, input, errors)
}

/// Returns the path in `crate = ".."`, else `::name`, else `::entable`. `name` is another name under
/// which the package depends on entable. Reports the missing `crate` if `name` is used.
fn runtime_called(
    name: Option<&str>,
    given: &Slot<Path>,
    input: &DeriveInput,
    errors: &mut Errors,
) -> Path {
    if let Some(path) = given.get() {
        return path.clone();
    }
    let name = name.filter(|_| !given.is_set());
    let Some(name) = name.and_then(|name| syn::parse_str::<Ident>(name).ok()) else {
        return syn::parse_quote!(::entable);
    };
    let message =
        format!("this package calls entable `{name}`: write `#[table(crate = \"{name}\")]`");
    errors.add_unless_incomplete(input.ident.span(), message);
    syn::parse_quote!(::#name)
}

/// Returns the fields of a struct with named fields. Reports any other type and returns no fields. No
/// missing field is reported then, since the type would be at fault.
fn named_fields(input: &DeriveInput, errors: &mut Errors) -> Vec<syn::Field> {
    let wrong = |what: &str, span: Span| {
        let message = format!("expected a struct with named fields, found {what}");
        Err(syn::Error::new(span, message))
    };
    let fields = match &input.data {
        Data::Struct(data) => match &data.fields {
            Fields::Named(fields) => Ok(fields.named.iter().cloned().collect()),
            Fields::Unnamed(fields) => wrong("a tuple struct", fields.span()),
            Fields::Unit => wrong("a unit struct", input.ident.span()),
        },
        Data::Enum(data) => wrong("an enum", data.enum_token.span),
        Data::Union(data) => wrong("a union", data.union_token.span),
    };
    fields.unwrap_or_else(|error| {
        errors.add_unreadable(error);
        Vec::new()
    })
}

/// Reports type parameters and lifetimes: a row holds owned values of known types.
fn refuse_generics(input: &DeriveInput, derive: &str, errors: &mut Errors) {
    if !input.generics.params.is_empty() {
        errors.add_at(
            input.generics.params.span(),
            format!(
                "`{derive}` is for types without parameters: rows hold owned values of known types"
            ),
        );
    }
}

#[cfg(test)]
mod tests {
    use proc_macro2::Span;
    use quote::ToTokens;
    use syn::{DeriveInput, Ident, Path, parse_quote};

    use super::runtime_called;
    use crate::{errors::Errors, slot::Slot};

    /// Returns the crate path from `runtime_called` and the text of the errors that it reported,
    /// for a package that depends on the crate under `name`.
    fn path_and_messages(name: Option<&str>, given: &Slot<Path>) -> (String, String) {
        let input: DeriveInput = parse_quote! { struct Employee { id: u32 } };
        let mut errors = Errors::default();
        let path = runtime_called(name, given, &input, &mut errors);
        let messages = errors.into_result().err().map(|error| error.to_string());
        (path.to_token_stream().to_string().replace(' ', ""), messages.unwrap_or_default())
    }

    #[test]
    fn a_package_that_calls_the_crate_otherwise_is_told_what_to_write() {
        let (path, messages) = path_and_messages(Some("tables"), &Slot::default());
        assert_eq!(path, "::tables");
        assert_eq!(
            messages,
            "this package calls entable `tables`: write `#[table(crate = \"tables\")]`"
        );
    }

    #[test]
    fn a_given_path_is_taken_and_a_lost_one_is_not_asked_for() {
        let key = Ident::new("crate_path", Span::call_site());
        let mut given = Slot::default();
        given.set_once(&key, Ok(parse_quote!(tables::inner))).unwrap();
        let own = ("tables::inner".to_owned(), String::new());
        assert_eq!(path_and_messages(Some("tables"), &given), own);
        let mut lost = Slot::default();
        lost.mark_misspelt();
        let default = ("::entable".to_owned(), String::new());
        assert_eq!(path_and_messages(Some("tables"), &lost), default);
        assert_eq!(path_and_messages(None, &Slot::default()), default);
    }
}
