//! First stage: `#[table(..)]` attributes as they are written.
//!
//! Here every key is known and well formed and given once; what keys mean together is for `check`.

mod container;
mod field;
mod index;
mod member;
mod variant;

use proc_macro2::{Ident, Span, TokenStream};
use syn::{
    Attribute, Expr, Lit, LitStr, Path, Token,
    ext::IdentExt,
    parse::{Parse, ParseStream, Parser},
    punctuated::Punctuated,
    spanned::Spanned,
};

pub(crate) use self::{
    container::{
        Discriminator, EntityAttr, EnumAttr, MessageAttr, ProjectionAttr, PropertiesAttr, SetAttr,
    },
    field::{Encrypt, FieldAttr},
    index::IndexAttr,
    member::{FoldAttr, MemberAttr},
    variant::VariantAttr,
};
use crate::{
    errors::Errors,
    names::{self, Case},
};

/// One key with what follows it.
#[derive(Debug)]
pub(crate) struct Entry {
    key: Ident,
    value: Given,
}

#[derive(Debug)]
enum Given {
    Nothing,
    Value(Box<Expr>),
    List(Span, TokenStream),
}

impl Parse for Entry {
    fn parse(input: ParseStream<'_>) -> syn::Result<Self> {
        let key = Ident::parse_any(input)?;
        let value = if input.peek(Token![=]) {
            input.parse::<Token![=]>()?;
            Given::Value(Box::new(ungrouped(input.parse()?)))
        } else if input.peek(syn::token::Paren) {
            let inner;
            let paren = syn::parenthesized!(inner in input);
            Given::List(paren.span.join(), inner.parse()?)
        } else {
            Given::Nothing
        };
        Ok(Self { key, value })
    }
}

/// A value that a `macro_rules!` macro handed on comes in a group that nobody sees.
fn ungrouped(value: Expr) -> Expr {
    match value {
        Expr::Group(group) => ungrouped(*group.expr),
        value => value,
    }
}

/// The entries of all `#[table(..)]` attributes of an item.
fn entries(attrs: &[Attribute], errors: &mut Errors) -> Vec<Entry> {
    let mut all = Vec::new();
    for attr in attrs.iter().filter(|attr| attr.path().is_ident("table")) {
        let parse = Punctuated::<Entry, Token![,]>::parse_terminated;
        if let Some(list) = errors.take(attr.parse_args_with(parse)) {
            all.extend(list);
        }
    }
    all
}

impl Entry {
    fn name(&self) -> String {
        names::unraw(&self.key)
    }

    fn error<T>(&self, message: String) -> syn::Result<T> {
        Err(syn::Error::new(self.span(), message))
    }

    /// The value where there is one: what was found is there.
    fn span(&self) -> Span {
        match &self.value {
            Given::Nothing => self.key.span(),
            Given::Value(value) => value.span(),
            Given::List(span, _) => *span,
        }
    }

    /// A key without a value.
    fn flag(&self) -> syn::Result<()> {
        match self.value {
            Given::Nothing => Ok(()),
            _ => self.error(format!("`{0}` takes no value, write `{0}`", self.key)),
        }
    }

    /// `key = "text"`
    fn string(&self) -> syn::Result<LitStr> {
        if let Given::Value(value) = &self.value
            && let Expr::Lit(lit) = &**value
            && let Lit::Str(text) = &lit.lit
        {
            return Ok(text.clone());
        }
        self.error(format!("`{0}` expects a string, write `{0} = \"..\"`", self.key))
    }

    /// `key = path`
    fn path(&self) -> syn::Result<Path> {
        match &self.value {
            Given::Value(value) if let Expr::Path(path) = &**value => Ok(path.path.clone()),
            _ => self.error(format!(
                "`{0}` expects a path, write `{0} = path` without quotes",
                self.key
            )),
        }
    }

    /// `key(path)`
    fn only_path(&self) -> syn::Result<Path> {
        let path = match &self.value {
            Given::List(_, inner) => syn::parse2::<Path>(inner.clone()).ok(),
            _ => None,
        };
        match path {
            Some(path) => Ok(path),
            None => self.error(format!("`{0}` expects one path, write `{0}(path)`", self.key)),
        }
    }

    /// `key = "path"`, as serde has it for `crate`.
    fn quoted_path(&self) -> syn::Result<Path> {
        self.string()?.parse_with(Path::parse_mod_style)
    }

    /// `key(..)`
    fn list(&self) -> syn::Result<Punctuated<Entry, Token![,]>> {
        match &self.value {
            Given::List(_, inner) => Punctuated::parse_terminated.parse2(inner.clone()),
            _ => self.error(format!("`{0}` expects a list, write `{0}(..)`", self.key)),
        }
    }

    /// `rename_all = "case"`
    fn case(&self) -> syn::Result<Case> {
        let text = self.string()?;
        Case::parse(&text.value()).ok_or_else(|| {
            syn::Error::new(text.span(), names::unknown("case", &text.value(), &Case::NAMES))
        })
    }

    /// The error for a key that this place does not know.
    fn unknown(&self, place: &str, known: &[&str]) -> syn::Result<()> {
        let message = names::unknown(&format!("{place} key"), &self.name(), known);
        Err(syn::Error::new(self.key.span(), message))
    }

    /// The error for a key that the design has and this version does not.
    fn not_yet(&self) -> syn::Result<()> {
        Err(syn::Error::new(self.key.span(), format!("`{}` is not supported yet", self.key)))
    }
}
