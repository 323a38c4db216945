//! Converts names between cases, suggests names for misspelt ones, recognizes types by their names.

use proc_macro2::{Group, Ident, Span, TokenStream, TokenTree};
use quote::{ToTokens, format_ident};
use syn::{Type, ext::IdentExt};

/// Returns an identifier as text, without `r#`.
pub(crate) fn unraw(ident: &Ident) -> String {
    ident.unraw().to_string()
}

/// Returns the name of a field's column constant: `FIRST_NAME` for `first_name`.
pub(crate) fn constant(field: &Ident) -> Ident {
    format_ident!("{}", Case::Screaming.apply(&unraw(field)), span = field.span())
}

/// Returns a hash of a field's name (FNV-1a), for const parameters of traits, which cannot be text.
pub(crate) fn fingerprint(field: &Ident) -> u64 {
    unraw(field).bytes().fold(0xcbf2_9ce4_8422_2325, |hash, byte| {
        (hash ^ u64::from(byte)).wrapping_mul(0x0000_0100_0000_01b3)
    })
}

/// The case of property names: how they follow from the names of fields or variants.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Case {
    /// The name as it is written.
    Verbatim,
    /// `FirstName`
    Pascal,
    /// `firstName`
    Camel,
    /// `first_name`
    Snake,
    /// `FIRST_NAME`
    Screaming,
    /// `firstname`
    Lower,
    /// `FIRSTNAME`
    Upper,
}

impl Case {
    /// The values that `rename_all` accepts.
    pub(crate) const NAMES: [&'static str; 7] = [
        "PascalCase",
        "camelCase",
        "snake_case",
        "SCREAMING_SNAKE_CASE",
        "lowercase",
        "UPPERCASE",
        "none",
    ];

    /// Returns the case that a value of `rename_all` names.
    pub(crate) fn parse(name: &str) -> Option<Self> {
        Some(match name {
            "PascalCase" => Self::Pascal,
            "camelCase" => Self::Camel,
            "snake_case" => Self::Snake,
            "SCREAMING_SNAKE_CASE" => Self::Screaming,
            "lowercase" => Self::Lower,
            "UPPERCASE" => Self::Upper,
            "none" => Self::Verbatim,
            _ => return None,
        })
    }

    /// Converts a name to this case.
    pub(crate) fn apply(self, name: &str) -> String {
        let words = words(name);
        let join = |separator: &str| words.join(separator);
        match self {
            Self::Verbatim => name.to_owned(),
            Self::Pascal => words.iter().map(|word| capitalized(word)).collect(),
            Self::Camel => {
                let mut words = words.iter();
                let first = words.next().map(|word| word.to_lowercase());
                first.into_iter().chain(words.map(|word| capitalized(word))).collect()
            }
            Self::Snake => join("_").to_lowercase(),
            Self::Screaming => join("_").to_uppercase(),
            Self::Lower => join("").to_lowercase(),
            Self::Upper => join("").to_uppercase(),
        }
    }
}

/// Splits a name into words: at `_`, and where an upper-case letter follows a lower-case one.
fn words(name: &str) -> Vec<String> {
    let mut words = vec![String::new()];
    let mut after_lower = false;
    for c in name.chars() {
        if c == '_' || (after_lower && c.is_uppercase()) {
            words.push(String::new());
        }
        if let (Some(word), true) = (words.last_mut(), c != '_') {
            word.push(c);
        }
        after_lower = c.is_lowercase() || c.is_numeric();
    }
    words.retain(|word| !word.is_empty());
    words
}

fn capitalized(word: &str) -> String {
    let mut chars = word.chars();
    chars.next().into_iter().flat_map(char::to_uppercase).chain(chars).collect()
}

/// Returns the known name that is most like a misspelt one; `None` if none is close.
pub(crate) fn nearest<'k>(
    found: &str,
    known: impl IntoIterator<Item = &'k str>,
) -> Option<&'k str> {
    let allowed = (found.chars().count() / 3).max(1);
    known
        .into_iter()
        .map(|name| (distance(found, name), name))
        .filter(|(distance, name)| {
            *distance <= allowed || (found.len() > 3 && name.starts_with(found))
        })
        .min_by_key(|(distance, _)| *distance)
        .map(|(_, name)| name)
}

/// Returns the edit distance of two names (Levenshtein).
fn distance(a: &str, b: &str) -> usize {
    let mut row: Vec<usize> = (0..=b.chars().count()).collect();
    for (i, from) in a.chars().enumerate() {
        let mut diagonal = i;
        let mut left = i + 1;
        let mut next = vec![left];
        for (to, above) in b.chars().zip(row.iter().skip(1)) {
            let replaced = diagonal + usize::from(from != to);
            left = replaced.min(above + 1).min(left + 1);
            diagonal = *above;
            next.push(left);
        }
        row = next;
    }
    row.last().copied().unwrap_or_default()
}

/// Joins names for a message: `` `a`, `b` or `c` ``.
pub(crate) fn one_of<'n>(names: impl IntoIterator<Item = &'n str>) -> String {
    let mut quoted: Vec<String> = names.into_iter().map(|name| format!("`{name}`")).collect();
    match (quoted.pop(), quoted.join(", ")) {
        (Some(last), rest) if rest.is_empty() => last,
        (Some(last), rest) => format!("{rest} or {last}"),
        (None, _) => "nothing".to_owned(),
    }
}

/// Returns the message for an unknown name, with a suggestion or the list of known names.
pub(crate) fn unknown(what: &str, found: &str, known: &[&str]) -> String {
    match nearest(found, known.iter().copied()) {
        Some(name) => format!("unknown {what} `{found}`, did you mean `{name}`?"),
        None => {
            format!("unknown {what} `{found}`, expected {}", one_of(known.iter().copied()))
        }
    }
}

/// Replaces `Self` in a type by the struct's name: generated impls of other types repeat the type.
pub(crate) fn without_self(ty: &Type, this: &Ident) -> Type {
    fn replace(tokens: TokenStream, this: &Ident) -> TokenStream {
        tokens
            .into_iter()
            .map(|token| match token {
                TokenTree::Ident(ident) if ident == "Self" => {
                    TokenTree::Ident(Ident::new(&this.to_string(), ident.span()))
                }
                TokenTree::Group(group) => {
                    let inner = replace(group.stream(), this);
                    let mut replaced = Group::new(group.delimiter(), inner);
                    replaced.set_span(group.span());
                    TokenTree::Group(replaced)
                }
                other => other,
            })
            .collect()
    }
    syn::parse2(replace(ty.to_token_stream(), this)).unwrap_or_else(|_| ty.clone())
}

/// Returns an identifier for a local variable of generated code.
///
/// Code that is reported at a user's token has that token's span, and the token may come from a
/// `macro_rules!` macro, whose names do not see the derive's locals.
pub(crate) fn local(name: &str) -> Ident {
    Ident::new(name, Span::call_site())
}

/// Returns the last segment of a type's path, such as `Option` of `std::option::Option<u8>`.
pub(crate) fn last_segment(ty: &Type) -> Option<&Ident> {
    match ty {
        Type::Path(path) => path.path.segments.last().map(|segment| &segment.ident),
        Type::Group(group) => last_segment(&group.elem),
        Type::Paren(paren) => last_segment(&paren.elem),
        _ => None,
    }
}

/// Returns whether the last segment of the type's path is one of `names`.
pub(crate) fn is_named(ty: &Type, names: &[&str]) -> bool {
    last_segment(ty).is_some_and(|ident| names.iter().any(|name| ident == name))
}
