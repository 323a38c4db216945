//! The block that contains all code of a derive: the path of the runtime, and the lints of the block.

use proc_macro2::{Ident, TokenTree};
use syn::{Attribute, Data, DeriveInput, Meta, Path};

use crate::{errors::Errors, manifest, once_setting::OnceSetting};

/// The settings of the block around all code of a derive: the path of the runtime, and the lints that it allows.
#[derive(Debug)]
pub(crate) struct CodeBlock {
    /// The path of the crate `entable`.
    pub(crate) runtime: Path,
    /// Whether the path is from `crate = ".."`. Such a path may not exist.
    pub(crate) is_path_given: bool,
    /// Whether the type, one of its fields or one of its variants allows deprecated items. The block repeats the
    /// types of fields, outside the reach of the user's own `allow`.
    pub(crate) allows_deprecated: bool,
}

impl CodeBlock {
    /// Finds the path of the crate `entable`: the path in `crate = ".."`, or else `::entable`. If the package's
    /// manifest depends on entable under another name and `crate` is not given, uses that name and reports the
    /// missing `crate`.
    pub(super) fn new(given: &OnceSetting<Path>, input: &DeriveInput, errors: &mut Errors) -> Self {
        Self {
            runtime: runtime_called(manifest::other_name_of_entable(), given, input, errors),
            is_path_given: given.get().is_some(),
            allows_deprecated: attributes(input).any(allows_deprecated),
        }
    }
}

/// Returns the attributes of the type, of its fields and of its variants.
fn attributes(input: &DeriveInput) -> impl Iterator<Item = &Attribute> {
    let inner: Vec<&Vec<Attribute>> = match &input.data {
        Data::Struct(data) => data.fields.iter().map(|field| &field.attrs).collect(),
        Data::Enum(data) => {
            let fields = data.variants.iter().flat_map(|variant| &variant.fields);
            let variants = data.variants.iter().map(|variant| &variant.attrs);
            variants.chain(fields.map(|field| &field.attrs)).collect()
        }
        Data::Union(_) => Vec::new(),
    };
    input.attrs.iter().chain(inner.into_iter().flatten())
}

/// Returns whether the attribute is an `allow` or `expect` of the lint `deprecated`.
fn allows_deprecated(attr: &Attribute) -> bool {
    let Meta::List(list) = &attr.meta else { return false };
    let is_level = ["allow", "expect"].iter().any(|level| list.path.is_ident(level));
    let is_lint = |token| matches!(token, TokenTree::Ident(lint) if lint == "deprecated");
    is_level && list.tokens.clone().into_iter().any(is_lint)
}

/// Returns the path in `crate = ".."`, or else `::name`, or else `::entable`. `name` is another name under which
/// the package depends on entable. Reports the missing `crate` if `name` is used.
fn runtime_called(
    name: Option<&str>,
    given: &OnceSetting<Path>,
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
    let message = format!(
        "this package depends on entable under the name `{name}`: write `#[table(crate = \"{name}\")]`"
    );
    errors.add_unless_incomplete(input.ident.span(), message);
    syn::parse_quote!(::#name)
}

#[cfg(test)]
mod tests {
    use proc_macro2::Span;
    use quote::ToTokens;
    use syn::{DeriveInput, Ident, Path, parse_quote};

    use super::runtime_called;
    use crate::{errors::Errors, once_setting::OnceSetting};

    /// Returns the crate path from `runtime_called` and the text of the errors that it reported,
    /// for a package that depends on the crate under `name`.
    fn path_and_messages(name: Option<&str>, given: &OnceSetting<Path>) -> (String, String) {
        let input: DeriveInput = parse_quote! { struct Employee { id: u32 } };
        let mut errors = Errors::default();
        let path = runtime_called(name, given, &input, &mut errors);
        let messages = errors.into_result().err().map(|error| error.to_string());
        (path.to_token_stream().to_string().replace(' ', ""), messages.unwrap_or_default())
    }

    #[test]
    fn a_package_that_calls_the_crate_otherwise_is_told_what_to_write() {
        let (path, messages) = path_and_messages(Some("tables"), &OnceSetting::default());
        assert_eq!(path, "::tables");
        assert_eq!(
            messages,
            "this package depends on entable under the name `tables`: write `#[table(crate = \"tables\")]`"
        );
    }

    #[test]
    fn a_given_path_is_taken_and_a_lost_one_is_not_asked_for() {
        let key = Ident::new("crate_path", Span::call_site());
        let mut given = OnceSetting::default();
        given.set_once(&key, Ok(parse_quote!(tables::inner))).unwrap();
        let own = ("tables::inner".to_owned(), String::new());
        assert_eq!(path_and_messages(Some("tables"), &given), own);
        let mut lost = OnceSetting::default();
        lost.mark_misspelt();
        let default = ("::entable".to_owned(), String::new());
        assert_eq!(path_and_messages(Some("tables"), &lost), default);
        assert_eq!(path_and_messages(None, &OnceSetting::default()), default);
    }
}
