//! Converts names between cases, suggests corrections of misspelt names, and recognises types by name.

use proc_macro2::{Delimiter, Group, Ident, Span, TokenStream, TokenTree};
use quote::{ToTokens, format_ident, quote};

use syn::{
    GenericArgument, PathArguments, PathSegment, Type, Visibility, ext::IdentExt, spanned::Spanned,
};

/// Returns an identifier as text, without `r#`.
pub(crate) fn ident_text(ident: &Ident) -> String {
    ident.unraw().to_string()
}

/// Returns the name of a field's column constant: `FIRST_NAME` for `first_name`, `_1ST` for `_1st`.
pub(crate) fn column_constant_name(field: &Ident) -> Ident {
    let name = Case::Screaming.convert_name(&ident_text(field));
    let begins = name.starts_with(|c: char| c == '_' || c.is_alphabetic());
    let underscore = if begins { "" } else { "_" };
    // A field called `__` has no words.
    let underscore = if name.is_empty() { "__" } else { underscore };
    format_ident!("{underscore}{name}", span = field.span())
}

/// Returns the method that begins the path through an index: `by_email` for `ByEmail`, `r#match` for `Match`.
/// Returns `None` if no method can have this name, as with `Self`.
pub(crate) fn path_method_name(index: &Ident) -> Option<Ident> {
    let name = Case::Snake.convert_name(&ident_text(index));
    let begins = name.starts_with(|c: char| c.is_alphabetic());
    if !begins || ["self", "super", "crate"].contains(&name.as_str()) {
        return None;
    }
    // `gen` is a keyword of later editions, which the derive's user may use.
    let is_keyword = name == "gen" || syn::parse_str::<Ident>(&name).is_err();
    let new = if is_keyword { Ident::new_raw } else { Ident::new };
    Some(new(&name, Span::call_site().located_at(index.span())))
}

/// The number of characters in the runtime's `FieldNamed`.
const NAMED_CHARS: usize = 24;

/// Returns a type that spells a field's name, `_rt::FieldNamed<'a', 'g', 'e'>`, for compiler messages. Const
/// parameters cannot be strings, so the name is written as characters.
pub(crate) fn type_spelling_field_name(field: &Ident) -> TokenStream {
    let name = ident_text(field);
    let chars = name.chars().take(NAMED_CHARS);
    let rest = (name.chars().count() > NAMED_CHARS).then(|| {
        let hash = fingerprint(&name);
        quote! { , #hash }
    });
    quote! { _rt::FieldNamed<#(#chars),* #rest> }
}

/// Returns a hash of a name (FNV-1a), which distinguishes long names with the same beginning.
fn fingerprint(name: &str) -> u64 {
    name.bytes().fold(0xcbf2_9ce4_8422_2325, |hash, byte| {
        (hash ^ u64::from(byte)).wrapping_mul(0x0000_0100_0000_01b3)
    })
}

/// The case of property names, which are derived from the names of fields or variants.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Case {
    /// The name as written.
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

    /// Returns the case for a value of `rename_all`.
    pub(crate) fn parse_case(name: &str) -> Option<Self> {
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
    pub(crate) fn convert_name(self, name: &str) -> String {
        let words = split_words(name);
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

/// Splits a name into words at `_`, and where an upper-case letter follows a lower-case one.
fn split_words(name: &str) -> Vec<String> {
    let mut words = vec![String::new()];
    let mut after_lower = false;
    for c in name.chars() {
        if c == '_' || (after_lower && c.is_uppercase()) {
            words.push(String::new());
        }
        if let (Some(word), true) = (words.last_mut(), c != '_') {
            word.push(c);
        }
        // A digit counts as lower case: `Address2Line` consists of the words `Address2` and `Line`.
        after_lower = c.is_lowercase() || c.is_numeric();
    }
    words.retain(|word| !word.is_empty());
    words
}

fn capitalized(word: &str) -> String {
    let mut chars = word.chars();
    chars.next().into_iter().flat_map(char::to_uppercase).chain(chars).collect()
}

/// Returns the known name that is most similar to a misspelt one, regardless of case, or `None` if none is similar.
pub(crate) fn nearest_name<'k>(
    found: &str,
    known: impl IntoIterator<Item = &'k str>,
) -> Option<&'k str> {
    let letters = |name: &str| name.replace(['_', '-'], "").to_lowercase();
    let found_letters = letters(found);
    // Allow one edit in three characters. With more, a short name would match nearly any other.
    let allowed = (found_letters.chars().count() / 3).max(1);
    known
        .into_iter()
        .map(|name| (edit_distance(&found_letters, &letters(name)), name))
        .filter(|(distance, name)| {
            *distance <= allowed
                || (found_letters.len() > 3 && letters(name).starts_with(&found_letters))
        })
        .min_by_key(|(distance, name)| (*distance, edit_distance(found, name)))
        .map(|(_, name)| name)
}

/// Returns the edit distance of two names (Levenshtein).
fn edit_distance(a: &str, b: &str) -> usize {
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
pub(crate) fn join_alternatives<'n>(names: impl IntoIterator<Item = &'n str>) -> String {
    let mut quoted: Vec<String> = names.into_iter().map(|name| format!("`{name}`")).collect();
    match (quoted.pop(), quoted.join(", ")) {
        (Some(last), rest) if rest.is_empty() => last,
        (Some(last), rest) => format!("{rest} or {last}"),
        (None, _) => "nothing".to_owned(),
    }
}

/// Returns the message for an unknown name, with a suggestion or the list of known names.
pub(crate) fn unknown_name_message(what: &str, found: &str, known: &[&str]) -> String {
    match nearest_name(found, known.iter().copied()) {
        Some(name) => format!("unknown {what} `{found}`, did you mean `{name}`?"),
        None => {
            format!(
                "unknown {what} `{found}`, expected {}",
                join_alternatives(known.iter().copied())
            )
        }
    }
}

/// Replaces `Self` in a type by the struct's name, because generated impls of other types repeat the type.
pub(crate) fn replace_self_type(ty: &Type, this: &Ident) -> Type {
    fn has_self(tokens: TokenStream) -> bool {
        tokens.into_iter().any(|token| match token {
            TokenTree::Ident(ident) => ident == "Self",
            TokenTree::Group(group) => has_self(group.stream()),
            _ => false,
        })
    }
    fn replace_self(tokens: TokenStream, this: &Ident) -> TokenStream {
        tokens
            .into_iter()
            .map(|token| match token {
                TokenTree::Ident(ident) if ident == "Self" => {
                    let mut named = this.clone();
                    named.set_span(ident.span());
                    TokenTree::Ident(named)
                }
                TokenTree::Group(group) => {
                    let inner = replace_self(group.stream(), this);
                    let mut replaced = Group::new(group.delimiter(), inner);
                    replaced.set_span(group.span());
                    TokenTree::Group(replaced)
                }
                other => other,
            })
            .collect()
    }
    // Almost no type contains it, and parsing a type again is slow.
    if !has_self(ty.to_token_stream()) {
        return ty.clone();
    }
    // The fallback is unreachable: replacing one identifier by another leaves a valid type.
    syn::parse2(replace_self(ty.to_token_stream(), this)).unwrap_or_else(|_| ty.clone())
}

/// Returns an identifier for a local variable of generated code. It has the derive's own span: a token of the user
/// may have the span of a `macro_rules!` macro, in which the derive's variables are not visible.
pub(crate) fn call_site_ident(name: &str) -> Ident {
    Ident::new(name, Span::call_site())
}

/// Returns an identifier that the derive makes up. Errors about it are shown at `span`, a place in the user's code.
///
/// The span also marks the identifier as written by a macro, which prevents lints about the name, such as
/// `non_snake_case` for `remove__3rd`.
pub(crate) fn generated_ident(name: &str, span: Span) -> Ident {
    Ident::new(name, Span::call_site().located_at(span))
}

/// Returns a user's identifier for generated code: the name of a type, field or variant, or of a method or constant
/// that the derive makes. The span marks the identifier as written by a macro, which prevents lints such as
/// `deprecated` and `dead_code`.
pub(crate) fn generated_ident_of(name: &Ident) -> Ident {
    let mut ident = name.clone();
    ident.set_span(Span::call_site().located_at(name.span()));
    ident
}

/// Returns a visibility for items that the derive makes, with spans that mark the tokens as written by a macro. An
/// item's span begins at its visibility. If a `macro_rules!` macro declared the struct, the user's own tokens would
/// make lints treat the item as the user's code.
pub(crate) fn respanned_visibility(vis: &Visibility) -> TokenStream {
    fn respanned(tokens: TokenStream) -> TokenStream {
        let respan = |mut token: TokenTree| {
            if let TokenTree::Group(group) = &token {
                let mut inner = Group::new(group.delimiter(), respanned(group.stream()));
                inner.set_span(group.span());
                token = TokenTree::Group(inner);
            }
            // `$crate` means the crate of the macro that wrote it.
            if token.to_string() != "$crate" {
                token.set_span(Span::call_site().located_at(token.span()));
            }
            token
        };
        tokens.into_iter().map(respan).collect()
    }
    respanned(vis.to_token_stream())
}

/// Returns a name of the runtime for code that is reported at `span`, a place in the user's code. The name is
/// `_rt_Name`, which `entable::__private::short` contains for every name used here.
///
/// The token is marked as written by a macro. This prevents lints about the path, such as `unused_qualifications`
/// for a trait that the user also imports.
pub(crate) fn runtime_item(name: &str, span: Span) -> Ident {
    generated_ident(&format!("_rt_{name}"), span)
}

/// Returns the type without parentheses and without the invisible group in which a `macro_rules!` macro passes on a
/// type.
pub(crate) fn ungrouped(ty: &Type) -> &Type {
    match ty {
        Type::Group(group) => ungrouped(&group.elem),
        Type::Paren(paren) => ungrouped(&paren.elem),
        ty => ty,
    }
}

/// Returns the last segment of a type's path, such as `Option<u8>` in `std::option::Option<u8>`.
pub(crate) fn last_segment(ty: &Type) -> Option<&PathSegment> {
    match ungrouped(ty) {
        Type::Path(path) => path.path.segments.last(),
        _ => None,
    }
}

/// Returns the type in a path's angle brackets, such as `u8` in `Option<u8>`.
pub(crate) fn first_argument_type(ty: &Type) -> Option<&Type> {
    let PathArguments::AngleBracketed(arguments) = &last_segment(ty)?.arguments else {
        return None;
    };
    match arguments.args.first() {
        Some(GenericArgument::Type(inner)) => Some(inner),
        _ => None,
    }
}

/// Returns the span of a type in the user's code. `ty.span()` writes all tokens of the type, and is only needed for
/// types that are more than a name.
pub(crate) fn type_span(ty: &Type) -> Span {
    match ty {
        Type::Path(path) if path.qself.is_none() => match path.path.get_ident() {
            Some(name) => name.span(),
            None => ty.span(),
        },
        _ => ty.span(),
    }
}

/// Returns the spans of the type's first and last token.
pub(crate) fn type_ends(ty: &Type) -> (Span, Span) {
    let first = type_span(ty);
    match ty {
        Type::Path(path) if path.qself.is_none() && path.path.get_ident().is_some() => {
            (first, first)
        }
        _ => {
            let last = ty.to_token_stream().into_iter().last();
            (first, last.map_or(first, |token| token.span()))
        }
    }
}

/// Returns a part of the user's code as text, such as `Option<[u32; 4]>`.
pub(crate) fn source_text(source: &impl ToTokens) -> String {
    fn push(tokens: TokenStream, text: &mut String) {
        for token in tokens {
            match token {
                TokenTree::Group(group) => {
                    let (open, close) = match group.delimiter() {
                        Delimiter::Parenthesis => ("(", ")"),
                        Delimiter::Bracket => ("[", "]"),
                        Delimiter::Brace => ("{", "}"),
                        Delimiter::None => ("", ""),
                    };
                    text.push_str(open);
                    push(group.stream(), text);
                    text.push_str(close);
                }
                TokenTree::Punct(punct) => match punct.as_char() {
                    separator @ (',' | ';') => text.extend([separator, ' ']),
                    operator @ ('+' | '=') => text.extend([' ', operator, ' ']),
                    other => text.push(other),
                },
                word => {
                    if text.ends_with(|c: char| c == '_' || c.is_alphanumeric()) {
                        text.push(' ');
                    }
                    text.push_str(&word.to_string());
                }
            }
        }
    }
    let mut text = String::new();
    push(source.to_token_stream(), &mut text);
    text
}

/// Returns whether the last segment of the type's path is one of `names`.
pub(crate) fn is_named_one_of(ty: &Type, names: &[&str]) -> bool {
    last_segment(ty).is_some_and(|last| names.iter().any(|name| last.ident == name))
}
