//! First stage: reads `#[table(..)]` attributes as written.
//!
//! Reports settings that are unknown, malformed or given twice. `check` decides later whether settings are compatible.

mod container;
mod field;
mod index;
mod member;
mod variant;

use proc_macro2::{Ident, Span, TokenStream, TokenTree};
use syn::{
    Attribute, Expr, Lit, LitStr, Path, Token,
    ext::IdentExt,
    parse::{Parse, ParseStream, Parser},
    punctuated::Punctuated,
    spanned::Spanned,
};

pub(crate) use self::{
    container::{
        CrateAttr, Discriminator, EntityAttr, EnumAttr, MessageAttr, ProjectionAttr,
        PropertiesAttr, SetAttr,
    },
    field::{EncryptSettings, FieldAttr},
    index::IndexAttr,
    member::{AggregateFieldAttr, MemberAttr},
    variant::VariantAttr,
};
use crate::{
    errors::Errors,
    names::{self, Case},
};

/// One setting of an attribute, with its name and value, such as `version = 2`.
#[derive(Debug)]
pub(crate) struct Setting {
    key: Ident,
    value: SettingValue,
}

#[derive(Debug)]
enum SettingValue {
    Nothing,
    /// A `=` without a value.
    Missing,
    Value(Box<Expr>),
    List(Span, TokenStream),
}

impl Parse for Setting {
    fn parse(input: ParseStream<'_>) -> syn::Result<Self> {
        if input.peek(LitStr) {
            let text: LitStr = input.parse()?;
            let message =
                format!("expected a name, found a string; write `{}` without quotes", text.value());
            return Err(syn::Error::new(text.span(), message));
        }
        // `crate` is a keyword as well as a setting, and `Ident` alone would refuse it.
        let key = Ident::parse_any(input).map_err(|error| no_name_error(input, error))?;
        let value = if input.peek(Token![=]) {
            input.parse::<Token![=]>()?;
            if input.is_empty() || input.peek(Token![,]) {
                SettingValue::Missing
            } else {
                SettingValue::Value(Box::new(value_of(&key, input)?))
            }
        } else if input.peek(syn::token::Paren) {
            let inner;
            let paren = syn::parenthesized!(inner in input);
            SettingValue::List(paren.span.join(), inner.parse()?)
        } else {
            SettingValue::Nothing
        };
        Ok(Self { key, value })
    }
}

/// Returns the error for something else in place of a setting's name.
fn no_name_error(input: ParseStream<'_>, error: syn::Error) -> syn::Error {
    match input.parse::<TokenTree>() {
        Ok(found) => {
            let text = names::source_text(&found);
            let message = format!("expected the name of a setting, found `{}`", text.trim());
            syn::Error::new(found.span(), message)
        }
        Err(_) => error,
    }
}

/// Reads the value after `=`.
fn value_of(key: &Ident, input: ParseStream<'_>) -> syn::Result<Expr> {
    input.parse().map(without_group).map_err(|error| {
        // The compiler would report the end of the input at the derive.
        if input.is_empty() {
            syn::Error::new(key.span(), format!("the value of `{key}` is incomplete"))
        } else {
            error
        }
    })
}

/// Removes the invisible group around a value that a `macro_rules!` macro passed on.
fn without_group(value: Expr) -> Expr {
    match value {
        Expr::Group(group) => without_group(*group.expr),
        value => value,
    }
}

/// Returns the settings of all `#[table(..)]` attributes of an item.
fn read_settings(attrs: &[Attribute], errors: &mut Errors) -> Vec<Setting> {
    let mut all = Vec::new();
    for attr in attrs.iter().filter(|attr| attr.path().is_ident("table")) {
        match attr.parse_args_with(|input: ParseStream<'_>| Ok(readable_settings(input, errors))) {
            Ok(list) => all.extend(list),
            Err(error) => errors.add_unreadable(error),
        }
    }
    all
}

/// Reports each setting of `#[table(..)]` attributes in a place that has none. `place` describes the place, and `hint`
/// says what to do instead.
pub(crate) fn refuse_settings(attrs: &[Attribute], place: &str, hint: &str, errors: &mut Errors) {
    for setting in read_settings(attrs, errors) {
        let message = format!("`{}` is not allowed on {place}: {hint}", setting.name());
        errors.add_at(setting.key.span(), message);
    }
}

/// Reads the settings of an attribute, separated by commas. Reports each malformed setting and continues after the next
/// comma. Also returns a setting that only lacks the comma after it.
fn readable_settings(input: ParseStream<'_>, errors: &mut Errors) -> Vec<Setting> {
    let mut read = Vec::new();
    while !input.is_empty() {
        match input.parse::<Setting>() {
            Ok(setting) if input.is_empty() || input.peek(Token![,]) => read.push(setting),
            Ok(Setting { value: SettingValue::Nothing, key }) => {
                let expected = if input.peek(Lit) { "`=`" } else { "`,` or `=`" };
                errors.add_unreadable(input.error(format!("expected {expected} after `{key}`")));
            }
            Ok(setting) => {
                let message = format!("expected `,` after the value of `{}`", setting.key);
                errors.add_unreadable(input.error(message));
                read.push(setting);
            }
            Err(error) => errors.add_unreadable(error),
        }
        let is_comma = |input: ParseStream<'_>| matches!(input.parse(), Ok(Some::<Token![,]>(_)));
        // Skip the rest of a malformed setting. The settings after it are then read instead of being reported as
        // missing.
        while !input.is_empty() && !is_comma(input) {
            let _ = input.parse::<TokenTree>();
        }
    }
    read
}

impl Setting {
    fn name(&self) -> String {
        names::ident_text(&self.key)
    }

    fn error<T>(&self, message: String) -> syn::Result<T> {
        Err(syn::Error::new(self.span(), message))
    }

    /// Returns the span for reporting a malformed setting: its value, or its name if it has no value.
    fn span(&self) -> Span {
        match &self.value {
            SettingValue::Nothing | SettingValue::Missing => self.key.span(),
            SettingValue::Value(value) => value.span(),
            SettingValue::List(span, _) => *span,
        }
    }

    /// Reads a setting without a value, such as `skip`.
    fn flag(&self) -> syn::Result<()> {
        match self.value {
            SettingValue::Nothing => Ok(()),
            _ => self.error(format!("`{0}` does not take a value; write `{0}`", self.key)),
        }
    }

    /// Reads a setting with a string, such as `rename = "Age"`.
    fn string(&self) -> syn::Result<LitStr> {
        if let SettingValue::Value(value) = &self.value
            && let Expr::Lit(lit) = &**value
            && let Lit::Str(text) = &lit.lit
        {
            return Ok(text.clone());
        }
        let meant = self.meant_text().unwrap_or_else(|| "..".to_owned());
        self.error(format!("`{0}` expects a string; write `{0} = \"{meant}\"`", self.key))
    }

    /// Guesses the string that the user meant, for the suggestion in an error message. `row_key = id` without quotes gives
    /// `{id}`, and `rename("Id")` in parentheses gives `Id`. Returns `None` for anything else.
    fn meant_text(&self) -> Option<String> {
        match &self.value {
            SettingValue::Value(value) if matches!(&**value, Expr::Path(_)) => {
                let name = names::source_text(value);
                Some(if self.is_template() { format!("{{{name}}}") } else { name })
            }
            SettingValue::List(_, inner) => {
                syn::parse2::<LitStr>(inner.clone()).ok().map(|text| text.value())
            }
            SettingValue::Nothing | SettingValue::Missing | SettingValue::Value(_) => None,
        }
    }

    /// Returns whether the value is a key template, in which fields are in braces.
    fn is_template(&self) -> bool {
        self.name().ends_with("_key")
    }

    /// Reads a setting with a path, such as `validate = check_it`. `place` describes what the path refers to.
    fn path(&self, place: &str) -> syn::Result<Path> {
        if let SettingValue::Value(value) = &self.value
            && let Expr::Path(path) = &**value
        {
            return Ok(path.path.clone());
        }
        let quoted = match &self.value {
            SettingValue::Value(value) if let Expr::Lit(lit) = &**value => match &lit.lit {
                Lit::Str(text) => text.parse::<Path>().ok(),
                _ => None,
            },
            _ => None,
        };
        let what_to_write = match &quoted {
            Some(path) => format!("{} = {}` without quotes", self.key, names::source_text(path)),
            None => format!("{} = path`", self.key),
        };
        self.error(format!("`{}` expects the path of {place}; write `{what_to_write}", self.key))
    }

    /// Reads a setting with one path in parentheses, such as `upgrade_from(Employee1)`.
    fn path_in_parentheses(&self) -> syn::Result<Path> {
        let path = match &self.value {
            SettingValue::List(_, inner) => syn::parse2::<Path>(inner.clone()).ok(),
            _ => None,
        };
        match path {
            Some(path) => Ok(path),
            None => {
                self.error(format!("`{0}` expects exactly one path; write `{0}(path)`", self.key))
            }
        }
    }

    /// Reads a setting with a path in quotes, such as `crate = "path"`, in the style of serde.
    fn quoted_path(&self) -> syn::Result<Path> {
        let text = self.string()?;
        text.parse_with(Path::parse_mod_style).map_err(|_| {
            let message = format!(
                "`{0}` expects a path in quotes, found `{1}`; write `{0} = \"::entable\"`",
                self.key,
                text.value()
            );
            syn::Error::new(text.span(), message)
        })
    }

    /// Reads a setting that is a list of settings, such as `encrypt(..)`. `example` shows one.
    fn list(&self, example: &str) -> syn::Result<Punctuated<Setting, Token![,]>> {
        match &self.value {
            SettingValue::List(_, inner) => Punctuated::parse_terminated.parse2(inner.clone()),
            _ => self.no_list(example),
        }
    }

    /// Reads a setting that is a list of settings, such as `index(..)`. `example` shows one. Reports the settings
    /// in the list that cannot be read, and returns the others.
    fn readable_list(&self, example: &str, errors: &mut Errors) -> syn::Result<Vec<Setting>> {
        match &self.value {
            SettingValue::List(_, inner) => {
                let parse = |input: ParseStream<'_>| Ok(readable_settings(input, errors));
                parse.parse2(inner.clone())
            }
            _ => self.no_list(example),
        }
    }

    fn no_list<T>(&self, example: &str) -> syn::Result<T> {
        self.error(format!("`{}` expects a list; write `{example}`", self.key))
    }

    /// Returns the known name that a misspelt setting means.
    fn guess_known_name<'k>(&self, known: &[&'k str]) -> Option<&'k str> {
        names::nearest_name(&self.name(), known.iter().copied())
    }

    /// Reads `rename_all = "case"`.
    fn read_case(&self) -> syn::Result<Case> {
        let text = self.string()?;
        Case::parse_case(&text.value()).ok_or_else(|| {
            syn::Error::new(
                text.span(),
                names::unknown_name_message("case", &text.value(), &Case::NAMES),
            )
        })
    }

    /// Returns the error for a setting that does not exist here, with a suggestion from `known`.
    fn refuse_unknown(&self, place: &str, known: &[&str]) -> syn::Result<()> {
        let message = names::unknown_name_message(&format!("{place} setting"), &self.name(), known);
        Err(syn::Error::new(self.key.span(), message))
    }
}
