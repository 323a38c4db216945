//! Path builders: one type for every set of key parts that can be given so far.
//!
//! The next part is always the first that is missing, through the PartitionKey and on through the
//! RowKey. An exact value fixes all parts of its field at once; a period or the buckets fix one.

use proc_macro2::{Ident, TokenStream};
use quote::{format_ident, quote};

use super::{
    key_part,
    schema::{family_constant, marker},
};
use crate::{
    model::{Entity, Family, FamilyKind, Field, Part},
    template::{Fineness, Form},
};

/// Which parts are given: the PartitionKey's, then the RowKey's.
type Given = Vec<bool>;

/// The builder of one family's paths.
struct Builder<'m> {
    entity: &'m Entity,
    family: &'m Family,
    parts: Vec<&'m Part>,
    /// The states in the order in which they were found; each is a type.
    states: Vec<Given>,
}

/// The type of the path builder with nothing given.
pub(super) fn start_type(entity: &Entity, family: &Family) -> TokenStream {
    let builder = Builder::new(entity, family);
    builder.type_of(&builder.nothing())
}

/// The path builder with nothing given.
pub(super) fn start(entity: &Entity, family: &Family) -> TokenStream {
    let builder = Builder::new(entity, family);
    let constant = family_constant(family);
    builder.make(&builder.nothing(), &quote! { _rt::PathDraft::new(#constant) })
}

/// The types of the path builder.
pub(super) fn emit(entity: &Entity, family: &Family) -> TokenStream {
    let builder = Builder::new(entity, family);
    let steps = builder.states.iter().enumerate().map(|(at, state)| builder.step(at, state));
    quote! { #(#steps)* }
}

impl<'m> Builder<'m> {
    fn new(entity: &'m Entity, family: &'m Family) -> Self {
        let parts: Vec<&Part> = family.parts().collect();
        let mut builder = Self { entity, family, parts, states: Vec::new() };
        let mut open = vec![builder.nothing()];
        while let Some(state) = open.pop() {
            if !builder.is_complete(&state) && !builder.states.contains(&state) {
                open.extend(builder.next_states(&state));
                builder.states.push(state);
            }
        }
        builder
    }

    fn nothing(&self) -> Given {
        vec![false; self.parts.len()]
    }

    fn is_complete(&self, given: &Given) -> bool {
        given.iter().all(|given| *given)
    }

    /// Whether the PartitionKey is known, so that the state is a path.
    fn is_path(&self, given: &Given) -> bool {
        given.iter().take(self.family.partition.parts().count()).all(|given| *given)
    }

    /// The part that comes next, with its number and its field.
    fn next(&self, given: &Given) -> Option<(usize, &'m Part, &'m Field)> {
        let at = given.iter().position(|given| !given)?;
        let part: &'m Part = self.parts.get(at)?;
        Some((at, part, self.entity.fields.get(part.field)?))
    }

    /// The numbers of a field's parts that are not given.
    fn missing(&self, given: &Given, field: usize) -> Vec<usize> {
        let parts = self.parts.iter().zip(given).enumerate();
        parts
            .filter(|(_, (part, given))| part.field == field && !**given)
            .map(|(at, _)| at)
            .collect()
    }

    fn next_states(&self, given: &Given) -> Vec<Given> {
        let Some((at, part, _)) = self.next(given) else { return Vec::new() };
        let whole = with(given, &self.missing(given, part.field));
        if self.is_period(at, part) || self.is_bucket(at, part) {
            vec![with(given, &[at]), whole]
        } else {
            vec![whole]
        }
    }

    /// A date form that names a period.
    fn is_period(&self, _at: usize, part: &Part) -> bool {
        let field = self.entity.fields.get(part.field);
        matches!(part.form, Form::Date(_, finest) if finest < Fineness::Tick)
            && field.is_some_and(|field| !part.is_exact(field))
    }

    /// A bucket of the PartitionKey.
    fn is_bucket(&self, at: usize, part: &Part) -> bool {
        matches!(part.form, Form::Bucket(_)) && at < self.family.partition.parts().count()
    }

    fn view(&self) -> TokenStream {
        match self.family.kind {
            FamilyKind::Primary => quote! { _rt::PrimaryRow },
            FamilyKind::Copy if self.family.is_full() => quote! { _rt::FullCopy },
            FamilyKind::Copy => {
                let marker = marker(self.entity, self.family);
                quote! { _rt::PartialCopy<#marker> }
            }
            FamilyKind::List => quote! { _rt::ListRows },
        }
    }

    fn name(&self, at: usize) -> Ident {
        let entity = crate::names::unraw(&self.entity.ident);
        format_ident!("__{entity}{}{at}", crate::names::unraw(&self.family.name))
    }

    /// The type of a state: a point where nothing is missing.
    fn type_of(&self, given: &Given) -> TokenStream {
        let entity = &self.entity.ident;
        let view = self.view();
        match self.states.iter().position(|state| state == given) {
            Some(at) => {
                let name = self.name(at);
                quote! { #name }
            }
            None => quote! { _rt::Point<#entity, #view> },
        }
    }

    /// A value of a state, from its draft.
    fn make(&self, given: &Given, draft: &TokenStream) -> TokenStream {
        match self.states.iter().position(|state| state == given) {
            Some(at) => {
                let name = self.name(at);
                quote! { #name(#draft) }
            }
            None => quote! { _rt::Point::from_draft(#draft) },
        }
    }

    fn step(&self, at: usize, given: &Given) -> TokenStream {
        let (name, vis) = (self.name(at), &self.entity.vis);
        let entity = &self.entity.ident;
        let doc = format!("Keys of `{}`, not all of them given yet.", self.entity.ident);
        let path = self.is_path(given).then(|| self.path(&name));
        let methods = self.methods(given);
        quote! {
            #[doc = #doc]
            #[derive(_rt::Clone, _rt::Debug)]
            #vis struct #name(_rt::PathDraft);

            #[automatically_derived]
            impl #name { #methods }

            #[automatically_derived]
            impl _rt::PathBuilder for #name {
                type Entity = #entity;

                fn family(&self) -> &'static _rt::Family {
                    _rt::PathDraft::family(&self.0)
                }
            }

            #path
        }
    }

    /// A step whose PartitionKey is known is a path, and both kinds of path.
    fn path(&self, name: &Ident) -> TokenStream {
        let (entity, view) = (&self.entity.ident, self.view());
        quote! {
            #[automatically_derived]
            impl _rt::Path for #name {
                type Entity = #entity;
                type View = #view;

                fn access(self) -> _rt::Access {
                    _rt::Path::access(_rt::Partition::<#entity, #view>::from_draft(self.0))
                }
            }

            #[automatically_derived]
            impl _rt::From<#name> for _rt::Partition<#entity, #view> {
                fn from(__step: #name) -> Self {
                    _rt::Partition::from_draft(__step.0)
                }
            }

            #[automatically_derived]
            impl _rt::From<#name> for _rt::Range<#entity, #view> {
                fn from(__step: #name) -> Self {
                    _rt::Range::from_draft(__step.0)
                }
            }
        }
    }

    fn methods(&self, given: &Given) -> TokenStream {
        let Some((at, part, field)) = self.next(given) else { return TokenStream::new() };
        let missing = self.missing(given, part.field);
        let exact = self.exact(given, &missing, field, &field.ident, "Fixes");
        let period = self.is_period(at, part).then(|| {
            let method = format_ident!("{}_period", field.name, span = field.ident.span());
            self.exact(given, &[at], field, &method, "Fixes the period of")
        });
        let buckets = self.is_bucket(at, part).then(|| self.buckets(given, at, part, field));
        let is_open = self.is_path(given) && missing.len() == 1;
        let bounds = is_open.then(|| {
            let range = self.range(at, part, field);
            let prefix = self.prefix(at, part, field);
            quote! { #range #prefix }
        });
        quote! { #exact #period #buckets #bounds }
    }

    /// Fixes parts of one field to what a value says.
    fn exact(
        &self,
        given: &Given,
        fixed: &[usize],
        field: &Field,
        method: &Ident,
        verb: &str,
    ) -> TokenStream {
        let ty = &field.ty;
        let after = with(given, fixed);
        let next = self.type_of(&after);
        let fixes = fixed.iter().filter_map(|at| {
            let part = self.parts.get(*at)?;
            if part.form == Form::Hmac {
                let value = quote! { <#ty as _rt::EdmValue>::to_edm(&__value) };
                return Some(quote! { .fix_to_token(#at, #value) });
            }
            let encode = key_part::encode(part, ty, &quote! { &__value });
            Some(quote! { .fix(#at, |__out| #encode) })
        });
        let made = self.make(&after, &quote! { self.0 #(#fixes)* });
        let doc = format!("{verb} `{}`.", field.name);
        quote! {
            #[doc = #doc]
            pub fn #method<__V>(self, __value: __V) -> #next
            where
                __V: _rt::Input<#ty>,
            {
                let __value: #ty = _rt::Input::input(__value);
                #made
            }
        }
    }

    /// One path for each bucket.
    fn buckets(&self, given: &Given, at: usize, part: &Part, field: &Field) -> TokenStream {
        let Form::Bucket(count) = part.form else { return TokenStream::new() };
        let method = format_ident!("{}_buckets", field.name, span = field.ident.span());
        let after = with(given, &[at]);
        let next = self.type_of(&after);
        let draft = quote! { _rt::Clone::clone(&self.0).fix(#at, |__out| _rt::write_bucket(__bucket, #count, __out)) };
        let made = self.make(&after, &draft);
        let doc = format!("Every bucket of `{}`, for `query_many`.", field.name);
        quote! {
            #[doc = #doc]
            pub fn #method(self) -> _rt::Vec<#next> {
                _rt::each_bucket(#count, |__bucket| #made)
            }
        }
    }

    /// Bounds, where keys sort as the part's values do.
    fn range(&self, at: usize, part: &Part, field: &Field) -> Option<TokenStream> {
        let between = match part.form {
            Form::Descending => quote! { between_descending },
            Form::Plain | Form::Width(_) => quote! { between },
            Form::Date(..) if part.is_exact(field) => quote! { between },
            Form::Date(..) | Form::Lower | Form::Bucket(_) | Form::Hmac => return None,
        };
        let (entity, view, ty) = (&self.entity.ident, self.view(), &field.ty);
        let last = self.family.row.ends_with(part);
        let encode = key_part::encode(part, ty, &quote! { __value });
        let method = format_ident!("{}_range", field.name, span = field.ident.span());
        let doc = format!("Bounds `{}`.", field.name);
        Some(quote! {
            #[doc = #doc]
            pub fn #method<__R>(self, __range: __R) -> _rt::Range<#entity, #view>
            where
                __R: _rt::RangeInput<#ty, #last>,
            {
                _rt::Range::from_draft(self.0.#between(
                    #at,
                    _rt::RangeInput::bounds(__range),
                    &|__value: &#ty, __out: &mut _rt::String| #encode,
                ))
            }
        })
    }

    /// A prefix, of text.
    fn prefix(&self, at: usize, part: &Part, field: &Field) -> Option<TokenStream> {
        let lower = match part.form {
            Form::Lower => true,
            Form::Plain | Form::Width(_) => false,
            Form::Descending | Form::Date(..) | Form::Bucket(_) | Form::Hmac => return None,
        };
        let (entity, view, ty) = (&self.entity.ident, self.view(), &field.ty);
        let method = format_ident!("{}_prefix", field.name, span = field.ident.span());
        let doc = format!("Every `{}` that begins with a text.", field.name);
        Some(quote! {
            #[doc = #doc]
            pub fn #method<__P>(self, __prefix: __P) -> _rt::Range<#entity, #view>
            where
                __P: _rt::PrefixInput<#ty>,
            {
                _rt::Range::from_draft(self.0.starting_with(
                    #at,
                    _rt::PrefixInput::prefix(&__prefix),
                    #lower,
                ))
            }
        })
    }
}

/// The state with those parts given as well.
fn with(given: &Given, fixed: &[usize]) -> Given {
    given.iter().enumerate().map(|(at, given)| *given || fixed.contains(&at)).collect()
}
