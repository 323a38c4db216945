//! Builds the tokens that the derives emit, and turns them into the compiler's tokens once, at the end.
//!
//! The compiler owns the tokens of a `TokenStream`. The macro calls the compiler to make a stream, to
//! put it into another one, and to drop it. [`Tokens`] are a list that the macro owns, so that it calls
//! the compiler only once for each pair of brackets of the finished code. [`quote!`] and
//! [`quote_spanned!`] write [`Tokens`] as the macros of the crate `quote` write a `TokenStream`.

use std::{rc::Rc, slice};

use proc_macro2::{Delimiter, Group, Ident, Literal, Punct, Spacing, Span, TokenStream, TokenTree};
use quote::ToTokens;
use syn::{GenericArgument, LitStr, Member, Path, PathArguments, Type};

/// Tokens of code that a derive emits.
#[derive(Debug, Clone, Default)]
pub(crate) struct Tokens(Vec<Token>);

/// One token, or a pair of brackets with everything inside.
#[derive(Debug, Clone)]
enum Token {
    /// A name, an operator of one character or a literal, by its text in this crate's source. It becomes
    /// a token of the compiler at the end: until then it is cheaper to copy.
    Text(&'static str, Span),
    /// A character that belongs to the next token, such as the first one of `::`.
    Joint(char, Span),
    /// A token of the user's code, or one with a value that the derive computes.
    Tree(TokenTree),
    /// A pair of brackets. The span is that of both brackets.
    Brackets(Delimiter, Span, Rc<Tokens>),
}

impl Tokens {
    /// Returns no tokens, with room for as many as a statement has.
    pub(crate) fn new() -> Self {
        Self(Vec::with_capacity(16))
    }

    /// Adds a pair of brackets with tokens inside.
    pub(crate) fn push_brackets(&mut self, delimiter: Delimiter, span: Span, inner: Self) {
        self.0.push(Token::Brackets(delimiter, span, Rc::new(inner)));
    }

    /// Adds a token given as its text: a name, an operator of one character, or a literal.
    pub(crate) fn push_text(&mut self, text: &'static str, span: Span) {
        self.0.push(Token::Text(text, span));
    }

    /// Adds a token of which the first character has to be given alone, such as a lifetime or `::`.
    pub(crate) fn push_joint(&mut self, first: char, rest: &'static str, span: Span) {
        self.0.push(Token::Joint(first, span));
        self.0.push(Token::Text(rest, span));
    }

    fn push_tree(&mut self, tree: TokenTree) {
        self.0.push(Token::Tree(tree));
    }

    /// Returns the tokens of a part of the user's code.
    pub(crate) fn of_source(source: &impl ToTokens) -> Self {
        Self(source.to_token_stream().into_iter().map(Token::Tree).collect())
    }
}

impl From<Tokens> for TokenStream {
    fn from(tokens: Tokens) -> Self {
        tokens.0.into_iter().map(TokenTree::from).collect()
    }
}

impl From<Token> for TokenTree {
    fn from(token: Token) -> Self {
        match token {
            Token::Text(text, span) => match text.as_bytes() {
                [b'a'..=b'z' | b'A'..=b'Z' | b'_', ..] => Ident::new(text, span).into(),
                [char] if char.is_ascii_punctuation() => {
                    punct(char::from(*char), Spacing::Alone, span)
                }
                _ => literal(text, span),
            },
            Token::Joint(char, span) => punct(char, Spacing::Joint, span),
            Token::Tree(tree) => tree,
            Token::Brackets(delimiter, span, inner) => {
                let mut group = Group::new(delimiter, Rc::unwrap_or_clone(inner).into());
                group.set_span(span);
                group.into()
            }
        }
    }
}

/// Returns whether a text can be a [`Token::Text`]. Operators of several characters cannot.
pub(crate) const fn is_single_token_text(text: &str) -> bool {
    matches!(
        text.as_bytes(),
        [_] | [b'a'..=b'z' | b'A'..=b'Z' | b'0'..=b'9' | b'_' | b'"', ..]
    )
}

fn punct(char: char, spacing: Spacing, span: Span) -> TokenTree {
    let mut punct = Punct::new(char, spacing);
    punct.set_span(span);
    punct.into()
}

/// Returns the literal with a text of this crate's source. Returns an error of the compiler for a text that
/// is no literal.
fn literal(text: &str, span: Span) -> TokenTree {
    let Ok(mut literal) = text.parse::<Literal>() else {
        let message = format!("`{text}` is not a single token");
        let error = quote::quote_spanned! { span => compile_error!(#message) };
        return Group::new(Delimiter::None, error).into();
    };
    literal.set_span(span);
    literal.into()
}

/// Values that `#value` in [`quote!`] writes.
pub(crate) trait Interpolated {
    /// Adds the value's tokens to `tokens`.
    fn write_to(&self, tokens: &mut Tokens);
}

impl Interpolated for Tokens {
    fn write_to(&self, tokens: &mut Tokens) {
        tokens.0.extend_from_slice(&self.0);
    }
}

impl Interpolated for Ident {
    fn write_to(&self, tokens: &mut Tokens) {
        tokens.push_tree(self.clone().into());
    }
}

impl Interpolated for Literal {
    fn write_to(&self, tokens: &mut Tokens) {
        tokens.push_tree(self.clone().into());
    }
}

impl Interpolated for str {
    fn write_to(&self, tokens: &mut Tokens) {
        tokens.push_tree(Literal::string(self).into());
    }
}

impl Interpolated for String {
    fn write_to(&self, tokens: &mut Tokens) {
        self.as_str().write_to(tokens);
    }
}

impl Interpolated for LitStr {
    fn write_to(&self, tokens: &mut Tokens) {
        tokens.push_tree(self.token().into());
    }
}

impl Interpolated for Member {
    fn write_to(&self, tokens: &mut Tokens) {
        Tokens::of_source(self).write_to(tokens);
    }
}

impl Interpolated for char {
    fn write_to(&self, tokens: &mut Tokens) {
        tokens.push_tree(Literal::character(*self).into());
    }
}

impl Interpolated for bool {
    fn write_to(&self, tokens: &mut Tokens) {
        tokens.push_text(if *self { "true" } else { "false" }, Span::call_site());
    }
}

macro_rules! interpolated_numbers {
    ($($type:ty, $literal:ident;)*) => {
        $(impl Interpolated for $type {
            fn write_to(&self, tokens: &mut Tokens) {
                tokens.push_tree(Literal::$literal(*self).into());
            }
        })*
    };
}

interpolated_numbers! {
    u8, u8_suffixed;
    u32, u32_suffixed;
    u64, u64_suffixed;
    usize, usize_suffixed;
}

impl Interpolated for Type {
    fn write_to(&self, tokens: &mut Tokens) {
        match self {
            Self::Path(path) if path.qself.is_none() => path.path.write_to(tokens),
            _ => Tokens::of_source(self).write_to(tokens),
        }
    }
}

impl Interpolated for Path {
    fn write_to(&self, tokens: &mut Tokens) {
        // Most paths are one name. `Tokens::of_source` calls the compiler.
        match self.get_ident() {
            Some(name) => name.write_to(tokens),
            None => match path_with_types(self) {
                Some(path) => path.write_to(tokens),
                None => Tokens::of_source(self).write_to(tokens),
            },
        }
    }
}

/// Returns the tokens of a path in which all arguments are types, such as `Option<String>`. `None` for
/// another path.
fn path_with_types(path: &Path) -> Option<Tokens> {
    let mut tokens = Tokens::new();
    if let Some(colons) = &path.leading_colon {
        push_colons(&mut tokens, colons);
    }
    for pair in path.segments.pairs() {
        let segment = pair.value();
        segment.ident.write_to(&mut tokens);
        match &segment.arguments {
            PathArguments::None => {}
            PathArguments::AngleBracketed(arguments) if arguments.colon2_token.is_none() => {
                tokens.push_text("<", arguments.lt_token.spans[0]);
                for argument in arguments.args.pairs() {
                    let GenericArgument::Type(ty) = argument.value() else { return None };
                    ty.write_to(&mut tokens);
                    if let Some(comma) = argument.punct() {
                        tokens.push_text(",", comma.spans[0]);
                    }
                }
                tokens.push_text(">", arguments.gt_token.spans[0]);
            }
            PathArguments::AngleBracketed(_) | PathArguments::Parenthesized(_) => return None,
        }
        if let Some(colons) = pair.punct() {
            push_colons(&mut tokens, colons);
        }
    }
    Some(tokens)
}

fn push_colons(tokens: &mut Tokens, colons: &syn::Token![::]) {
    let [first, second] = colons.spans;
    tokens.0.push(Token::Joint(':', first));
    tokens.push_text(":", second);
}

impl<T: Interpolated + ?Sized> Interpolated for &T {
    fn write_to(&self, tokens: &mut Tokens) {
        (**self).write_to(tokens);
    }
}

impl<T: Interpolated> Interpolated for Option<T> {
    fn write_to(&self, tokens: &mut Tokens) {
        if let Some(value) = self {
            value.write_to(tokens);
        }
    }
}

/// Iterators as names in a repetition `#(..)*` of [`quote!`].
pub(crate) trait RepeatedIterator: Iterator + Sized {
    /// Returns the values that the name stands for in turn.
    fn repeated(self) -> Self {
        self
    }
}

impl<I: Iterator> RepeatedIterator for I {}

/// Lists as names in a repetition `#(..)*` of [`quote!`].
pub(crate) trait RepeatedSlice<T> {
    /// Returns the values that the name stands for in turn.
    fn repeated(&self) -> slice::Iter<'_, T>;
}

impl<T> RepeatedSlice<T> for [T] {
    fn repeated(&self) -> slice::Iter<'_, T> {
        self.iter()
    }
}

/// Returns [`Tokens`] with the derive's own span. `#name` writes an [`Interpolated`] value; `#(..)*`
/// and `#(..),*` repeat what is inside for each value of the lists and iterators that it names.
macro_rules! quote_tokens {
    ($($code:tt)*) => {
        $crate::tokens::quote_spanned! { ::proc_macro2::Span::call_site() => $($code)* }
    };
}

/// Returns [`Tokens`] as [`quote!`] does, with the span before `=>`.
macro_rules! quote_tokens_spanned {
    ($span:expr => $($code:tt)*) => {{
        let _span: ::proc_macro2::Span = $span;
        #[allow(unused_mut, reason = "there may be no code")]
        let mut code = $crate::tokens::Tokens::new();
        $crate::tokens::push_code! { code _span $($code)* }
        code
    }};
}

/// Adds code to the [`Tokens`] in a local, token by token.
macro_rules! push_code {
    ($tokens:ident $span:ident) => {};
    ($tokens:ident $span:ident # $name:ident $($rest:tt)*) => {
        $crate::tokens::Interpolated::write_to(&$name, &mut $tokens);
        $crate::tokens::push_code! { $tokens $span $($rest)* }
    };
    ($tokens:ident $span:ident # ($($code:tt)*) * $($rest:tt)*) => {
        $crate::tokens::push_repeated! { ($tokens $span) [] ($($code)*) $($code)* }
        $crate::tokens::push_code! { $tokens $span $($rest)* }
    };
    ($tokens:ident $span:ident # ($($code:tt)*) $separator:tt * $($rest:tt)*) => {
        $crate::tokens::push_repeated! { ($tokens $span $separator) [] ($($code)*) $($code)* }
        $crate::tokens::push_code! { $tokens $span $($rest)* }
    };
    ($tokens:ident $span:ident ($($code:tt)*) $($rest:tt)*) => {
        $tokens.push_brackets(
            ::proc_macro2::Delimiter::Parenthesis,
            $span,
            $crate::tokens::quote_spanned! { $span => $($code)* },
        );
        $crate::tokens::push_code! { $tokens $span $($rest)* }
    };
    ($tokens:ident $span:ident [$($code:tt)*] $($rest:tt)*) => {
        $tokens.push_brackets(
            ::proc_macro2::Delimiter::Bracket,
            $span,
            $crate::tokens::quote_spanned! { $span => $($code)* },
        );
        $crate::tokens::push_code! { $tokens $span $($rest)* }
    };
    ($tokens:ident $span:ident {$($code:tt)*} $($rest:tt)*) => {
        $tokens.push_brackets(
            ::proc_macro2::Delimiter::Brace,
            $span,
            $crate::tokens::quote_spanned! { $span => $($code)* },
        );
        $crate::tokens::push_code! { $tokens $span $($rest)* }
    };
    ($tokens:ident $span:ident :: $($rest:tt)*) => {
        $tokens.push_joint(':', ":", $span);
        $crate::tokens::push_code! { $tokens $span $($rest)* }
    };
    ($tokens:ident $span:ident -> $($rest:tt)*) => {
        $tokens.push_joint('-', ">", $span);
        $crate::tokens::push_code! { $tokens $span $($rest)* }
    };
    ($tokens:ident $span:ident => $($rest:tt)*) => {
        $tokens.push_joint('=', ">", $span);
        $crate::tokens::push_code! { $tokens $span $($rest)* }
    };
    ($tokens:ident $span:ident .. $($rest:tt)*) => {
        $tokens.push_joint('.', ".", $span);
        $crate::tokens::push_code! { $tokens $span $($rest)* }
    };
    ($tokens:ident $span:ident && $($rest:tt)*) => {
        $tokens.push_joint('&', "&", $span);
        $crate::tokens::push_code! { $tokens $span $($rest)* }
    };
    ($tokens:ident $span:ident || $($rest:tt)*) => {
        $tokens.push_joint('|', "|", $span);
        $crate::tokens::push_code! { $tokens $span $($rest)* }
    };
    ($tokens:ident $span:ident >> $($rest:tt)*) => {
        $tokens.push_joint('>', ">", $span);
        $crate::tokens::push_code! { $tokens $span $($rest)* }
    };
    ($tokens:ident $span:ident $lifetime:lifetime $($rest:tt)*) => {
        $tokens.push_joint('\'', stringify!($lifetime).trim_start_matches('\''), $span);
        $crate::tokens::push_code! { $tokens $span $($rest)* }
    };
    ($tokens:ident $span:ident $token:tt $($rest:tt)*) => {
        const { assert!($crate::tokens::is_single_token_text(stringify!($token)), "an operator without a rule") };
        $tokens.push_text(stringify!($token), $span);
        $crate::tokens::push_code! { $tokens $span $($rest)* }
    };
}

/// Adds the code of a repetition: collects the names in it one after the other, then loops over them.
macro_rules! push_repeated {
    ($to:tt [$($names:ident)*] $code:tt # $name:ident $($rest:tt)*) => {
        $crate::tokens::push_repeated! { $to [$($names)* $name] $code $($rest)* }
    };
    ($to:tt $names:tt $code:tt ($($inner:tt)*) $($rest:tt)*) => {
        $crate::tokens::push_repeated! { $to $names $code $($inner)* $($rest)* }
    };
    ($to:tt $names:tt $code:tt [$($inner:tt)*] $($rest:tt)*) => {
        $crate::tokens::push_repeated! { $to $names $code $($inner)* $($rest)* }
    };
    ($to:tt $names:tt $code:tt {$($inner:tt)*} $($rest:tt)*) => {
        $crate::tokens::push_repeated! { $to $names $code $($inner)* $($rest)* }
    };
    ($to:tt $names:tt $code:tt $other:tt $($rest:tt)*) => {
        $crate::tokens::push_repeated! { $to $names $code $($rest)* }
    };
    (($tokens:ident $span:ident) [$($name:ident)+] ($($code:tt)*)) => {{
        #[allow(unused_imports, reason = "a repetition may have lists alone, or iterators alone")]
        use $crate::tokens::{RepeatedIterator as _, RepeatedSlice as _};
        $(let mut $name = $name.repeated();)+
        while let ($(Some($name),)+) = ($($name.next(),)+) {
            $crate::tokens::push_code! { $tokens $span $($code)* }
        }
    }};
    (($tokens:ident $span:ident $separator:tt) [$($name:ident)+] ($($code:tt)*)) => {{
        #[allow(unused_imports, reason = "a repetition may have lists alone, or iterators alone")]
        use $crate::tokens::{RepeatedIterator as _, RepeatedSlice as _};
        $(let mut $name = $name.repeated();)+
        let mut is_first = true;
        while let ($(Some($name),)+) = ($($name.next(),)+) {
            if !is_first {
                $crate::tokens::push_code! { $tokens $span $separator }
            }
            is_first = false;
            $crate::tokens::push_code! { $tokens $span $($code)* }
        }
    }};
}

pub(crate) use {
    push_code, push_repeated, quote_tokens as quote, quote_tokens_spanned as quote_spanned,
};
