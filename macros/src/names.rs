//! Names: cases, suggestions, and the types that a field may name.

use proc_macro2::{Group, Ident, Span, TokenStream, TokenTree};
use quote::{ToTokens, format_ident};
use syn::{Type, ext::IdentExt};

/// The name without `r#`.
pub(crate) fn unraw(ident: &Ident) -> String {
    ident.unraw().to_string()
}

/// The name of a field's column constant.
pub(crate) fn constant(field: &Ident) -> Ident {
    format_ident!("{}", Case::Screaming.apply(&unraw(field)), span = field.span())
}

/// A field's name as a number: constants can be parameters of traits, texts cannot (FNV-1a).
pub(crate) fn fingerprint(field: &Ident) -> u64 {
    unraw(field).bytes().fold(0xcbf2_9ce4_8422_2325, |hash, byte| {
        (hash ^ u64::from(byte)).wrapping_mul(0x0000_0100_0000_01b3)
    })
}

/// How property names follow from the names of fields or variants.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Case {
    /// As it is written.
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
    /// What `rename_all` may say.
    pub(crate) const NAMES: [&'static str; 7] = [
        "PascalCase",
        "camelCase",
        "snake_case",
        "SCREAMING_SNAKE_CASE",
        "lowercase",
        "UPPERCASE",
        "none",
    ];

    /// The case of that name.
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

    /// The name in this case.
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

/// Words end at `_` and where an upper-case letter follows a lower-case one.
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

/// The known name that was probably meant.
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

/// Levenshtein's distance, one row of the table at a time.
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

/// `` `a`, `b` or `c` ``
pub(crate) fn one_of<'n>(names: impl IntoIterator<Item = &'n str>) -> String {
    let mut quoted: Vec<String> = names.into_iter().map(|name| format!("`{name}`")).collect();
    match (quoted.pop(), quoted.join(", ")) {
        (Some(last), rest) if rest.is_empty() => last,
        (Some(last), rest) => format!("{rest} or {last}"),
        (None, _) => "nothing".to_owned(),
    }
}

/// What is wrong with an unknown name, and what was probably meant.
pub(crate) fn unknown(what: &str, found: &str, known: &[&str]) -> String {
    match nearest(found, known.iter().copied()) {
        Some(name) => format!("unknown {what} `{found}`, did you mean `{name}`?"),
        None => {
            format!("unknown {what} `{found}`, expected {}", one_of(known.iter().copied()))
        }
    }
}

/// The type with the struct's name for `Self`: generated methods stand in other types' impls.
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

/// A local of generated code, to be put into code that is shown at a user's token: that token may
/// come from a `macro_rules!` macro, whose names do not see the derive's locals.
pub(crate) fn local(name: &str) -> Ident {
    Ident::new(name, Span::call_site())
}

/// The last segment of a type's path: all that a macro sees of a type.
pub(crate) fn last_segment(ty: &Type) -> Option<&Ident> {
    match ty {
        Type::Path(path) => path.path.segments.last().map(|segment| &segment.ident),
        Type::Group(group) => last_segment(&group.elem),
        Type::Paren(paren) => last_segment(&paren.elem),
        _ => None,
    }
}

/// Whether the type's name is one of those.
pub(crate) fn is_named(ty: &Type, names: &[&str]) -> bool {
    last_segment(ty).is_some_and(|ident| names.iter().any(|name| ident == name))
}
