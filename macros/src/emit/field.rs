//! Generates the code that depends on how a field is stored. There is one function per question, so a new kind of
//! storage is added here and in [`Storage`].

use proc_macro2::{Ident, Span, TokenStream};
use quote::{format_ident, quote, quote_spanned};
use syn::spanned::Spanned;

use super::{
    first_field,
    key_part::{runtime_function_at, type_as_trait_item},
    unwrap_or_return,
};
use crate::{
    model::{AbsenceRule, Field, Storage},
    names::runtime_item,
};

/// Returns the name of the constant with a field's JSON codec. Only this constant requires serde's traits of the
/// field's type, so a type without them is reported once.
fn json_codec(field: &Field) -> Ident {
    format_ident!("__JSON_{}", field.constant)
}

/// Returns the constants of all JSON codecs.
pub(super) fn json_codec_constants(fields: &[Field]) -> TokenStream {
    let codecs = fields.iter().filter(|field| field.storage == Storage::Json).map(|field| {
        let (name, ty) = (json_codec(field), &field.ty);
        let new = if field.is_secret() { "with_redacted_errors" } else { "new" };
        let new = Ident::new(new, ty.span());
        quote_spanned! { ty.span() =>
            const #name: _rt::JsonCodec<#ty> = <_rt::JsonCodec<#ty>>::#new();
        }
    });
    quote! { #(#codecs)* }
}

/// Returns the statement that writes the field of `self` with the property writer `out`, which is a
/// `PropertyWriter` or a reference to one.
pub(super) fn write_statement(field: &Field, out: &TokenStream) -> TokenStream {
    let (ident, name, ty) = (&field.ident, &field.property, &field.ty);
    match &field.storage {
        Storage::Skipped => TokenStream::new(),
        Storage::Plain => {
            let store = if field.is_secret() {
                quote! { store_secret }
            } else {
                quote! { store }
            };
            quote! { #out.#store(#name, <#ty as _rt_Property>::to_stored(&self.#ident)); }
        }
        Storage::Json => {
            let codec = json_codec(field);
            quote! {
                let __written = (#codec.put)(&mut *#out, #name, &self.#ident);
                #out.keep_error(__written);
            }
        }
        Storage::Series(names) => {
            let is_secret = field.is_secret();
            let to_stored = field
                .series_slot_type()
                .map(|slot| type_as_trait_item(slot, "Property", "to_stored"));
            let store_series = match field.series_slot_type() {
                Some(slot) => runtime_function_at(slot, "store_series"),
                None => quote! { _rt::store_series },
            };
            quote! {
                #store_series(
                    &mut *#out, &[#(#names),*], &self.#ident, #is_secret, #to_stored
                );
            }
        }
        Storage::Split(names) => {
            let pad = padding_of(field);
            let stored = if field.attr.json.is_set() {
                quote! {
                    _rt::store_split_json(&mut *#out, &[#(#names),*], &self.#ident, #pad)
                }
            } else {
                let whole = type_as_trait_item(ty, "SplitValue", "whole");
                quote! {
                    _rt::store_split(&mut *#out, &[#(#names),*], #whole(&self.#ident), #pad)
                }
            };
            quote! {
                let __written = #stored;
                #out.keep_error(__written);
            }
        }
        Storage::Blob(names) => {
            let blob = type_as_trait_item(ty, "BlobField", "blob");
            let names = blob_property_names_expression(names);
            quote! { _rt::write_blob_properties(&mut *#out, &#names, #blob(&self.#ident)); }
        }
        Storage::Flattened(prefix) => quote! {
            let __written = #out.put_nested(#prefix, |__out| {
                <#ty as _rt::Properties>::write(&self.#ident, __out)
            });
            #out.keep_error(__written);
        },
        Storage::Extra => quote! {
            let __written = <#ty as _rt::PropertyBag>::each(&self.#ident, |__name, __value| {
                let __schema = <Self as _rt_TableEntity>::SCHEMA;
                _rt_PropertyWriter::put_extra(&mut *#out, __schema, __name, __value)
            });
            #out.keep_error(__written);
        },
    }
}

/// Returns the tokens for the padding of a field: `Some(pad)`, or `None` if the field is not
/// encrypted.
fn padding_of(field: &Field) -> TokenStream {
    match field.encrypt_settings() {
        Some(encrypt) => {
            let pad = encrypt.pad;
            quote! { _rt_Some(#pad) }
        }
        None => quote! { _rt_None },
    }
}

/// Returns the local variables for the values of a field's properties, each with the name of its property.
pub(super) fn slot_locals_of_field(at: usize, field: &Field) -> Vec<(Ident, &str)> {
    match &field.storage {
        Storage::Series(names) | Storage::Split(names) | Storage::Blob(names) => {
            let slots = (0..names.len()).map(|slot| format_ident!("__f{at}_{slot}"));
            slots.zip(names.iter().map(String::as_str)).collect()
        }
        _ => vec![(slot_local(at), &*field.property)],
    }
}

/// Returns the variables with the values that a decoder read for a field, as an expression for
/// [`finish_expression`]: one variable, or an array of variables for a field with several properties.
pub(super) fn slot_locals_as_expression(at: usize, field: &Field) -> TokenStream {
    match &field.storage {
        Storage::Series(_) | Storage::Split(_) | Storage::Blob(_) => {
            let slots = slot_locals_of_field(at, field).into_iter().map(|(slot, _)| slot);
            quote! { [#(#slots),*] }
        }
        _ => {
            let slot = slot_local(at);
            quote! { #slot }
        }
    }
}

/// Returns the name of the local variable or slot field that holds a field's value until the whole row is read.
pub(super) fn slot_local(at: usize) -> Ident {
    format_ident!("__f{at}")
}

/// Returns the statement that creates the slot of a field with several properties.
pub(super) fn collecting_slot_statement(at: usize, field: &Field) -> Option<TokenStream> {
    let (slot, ty) = (slot_local(at), &field.ty);
    match &field.storage {
        Storage::Skipped
        | Storage::Plain
        | Storage::Json
        | Storage::Series(_)
        | Storage::Split(_)
        | Storage::Blob(_) => None,
        Storage::Flattened(_) => {
            let properties = runtime_item("Properties", ty.span());
            Some(quote_spanned! { ty.span() => let mut #slot = <#ty as #properties>::slots(); })
        }
        Storage::Extra => Some(quote! { let mut #slot: #ty = _rt::Default::default(); }),
    }
}

/// Returns the statement that offers the property `__name` with `__value` to a field with several properties.
/// `taken` leaves the statement's block once the field has taken the property.
pub(super) fn offer_statement(
    field: &Field,
    slot: &TokenStream,
    taken: &TokenStream,
) -> Option<TokenStream> {
    let ty = &field.ty;
    match &field.storage {
        Storage::Skipped
        | Storage::Plain
        | Storage::Json
        | Storage::Series(_)
        | Storage::Split(_)
        | Storage::Blob(_) => None,
        Storage::Flattened(prefix) => {
            let prefix = proc_macro2::Literal::byte_string(prefix.as_bytes());
            Some(quote! {
                if let _rt_Some(__rest) = <[_rt::u8]>::strip_prefix(__name, #prefix) {
                    if <#ty as _rt::Properties>::offer(&mut #slot, __rest, __value) {
                        #taken
                    }
                }
            })
        }
        Storage::Extra => {
            let put = type_as_trait_item(ty, "PropertyBag", "put");
            let kept = unwrap_or_return(
                &quote! { _rt::keep_unknown_property(&mut #slot, __name, __value, #put) },
            );
            Some(quote! { #kept })
        }
    }
}

/// Returns the type and the initial value of a field's slot in a flattened struct, or `None` if the field is skipped.
pub(super) fn empty_slot_with_type(field: &Field) -> Option<(TokenStream, TokenStream)> {
    let ty = &field.ty;
    match field.storage {
        Storage::Skipped => None,
        Storage::Flattened(_) => Some((
            quote! { <#ty as _rt::Properties>::Slots<'__r> },
            quote! { <#ty as _rt::Properties>::slots() },
        )),
        Storage::Plain
        | Storage::Json
        | Storage::Series(_)
        | Storage::Split(_)
        | Storage::Blob(_)
        | Storage::Extra => Some((quote! { _rt_Option<_rt_ValueRef<'__r>> }, quote! { _rt_None })),
    }
}

/// Returns the value of a field that is not in the row.
pub(super) fn default_value(field: &Field) -> TokenStream {
    let ty = &field.ty;
    match &field.absent {
        // An error about the function's type is reported where the function is named.
        AbsenceRule::Call(path) => quote! {{
            let __default: fn() -> #ty = #path;
            __default()
        }},
        AbsenceRule::Default | AbsenceRule::Refused => quote! { <#ty as _rt::Default>::default() },
    }
}

/// Returns the value of a field that can always be read.
pub(super) fn value_if_infallible(field: &Field, slot: &TokenStream) -> Option<TokenStream> {
    match &field.storage {
        Storage::Skipped => Some(default_value(field)),
        Storage::Extra => Some(slot.clone()),
        Storage::Plain
        | Storage::Json
        | Storage::Series(_)
        | Storage::Split(_)
        | Storage::Blob(_)
        | Storage::Flattened(_) => None,
    }
}

/// Returns an expression for the `Result` of reading a field from its slot. `prefix` is only given in a flattened
/// struct: an expression for the prefix of its property names.
pub(super) fn finish_expression(
    field: &Field,
    slot: &TokenStream,
    prefix: Option<&TokenStream>,
) -> TokenStream {
    let (ty, name) = (&field.ty, &field.property);
    let no_prefix = "";
    let before = prefix.map_or_else(|| quote! { #no_prefix }, Clone::clone);
    let found = match &field.storage {
        Storage::Skipped | Storage::Extra => return quote! { _rt_Ok(#slot) },
        Storage::Flattened(inner) => {
            let whole = match prefix {
                Some(prefix) => quote! { &_rt::join_flattened_prefixes(#prefix, #inner) },
                None => quote! { #inner },
            };
            return quote! { <#ty as _rt::Properties>::finish(#slot, #whole) };
        }
        Storage::Series(names) => {
            let is_secret = field.is_secret();
            let Some(slot_type) = field.series_slot_type() else { return TokenStream::new() };
            let from_stored = type_as_trait_item(slot_type, "Property", "from_stored");
            let finish_series = runtime_function_at(slot_type, "finish_series");
            return quote_spanned! { slot_type.span() =>
                #finish_series(#slot, &[#(#names),*], #is_secret, #from_stored)
            };
        }
        Storage::Split(names) => {
            let is_secret = field.is_secret();
            if field.attr.json.is_set() {
                return quote! { _rt::finish_split_json(#slot, &[#(#names),*], #is_secret) };
            }
            let join = type_as_trait_item(ty, "SplitValue", "join");
            let finish_split = runtime_function_at(ty, "finish_split");
            return quote! { #finish_split(#slot, &[#(#names),*], #is_secret, #join) };
        }
        Storage::Blob(names) => {
            let of_blob = type_as_trait_item(&field.ty, "BlobField", "of_blob");
            let names = blob_property_names_expression(names);
            return quote! { _rt::read_blob_properties(#slot, &#names, #of_blob) };
        }
        Storage::Json => {
            let codec = json_codec(field);
            quote! { (#codec.finish)(#slot, #before, #name) }
        }
        Storage::Plain => {
            let read = type_as_trait_item(ty, "Property", "from_stored");
            match (field.is_secret(), prefix) {
                (true, _) => quote! { _rt::finish_secret(#slot, #before, #name, #read) },
                (false, Some(_)) => quote! { _rt::finish_stored(#slot, #before, #name, #read) },
                (false, None) => quote! { _rt_finish_property(#slot, #name, #read) },
            }
        }
    };
    if let AbsenceRule::Refused = field.absent {
        return found;
    }
    let default = default_value(field);
    quote! {
        match #slot {
            _rt_None => _rt_Ok(#default),
            _ => #found,
        }
    }
}

/// Returns the type and the value of the field's column constant. Returns `None` if the field has no column because
/// it is skipped or `extra`.
pub(super) fn column_type_and_value(field: &Field) -> Option<(TokenStream, TokenStream)> {
    let (ty, name, kind) = (&field.ty, &field.property, column_kind(field));
    Some(match &field.storage {
        Storage::Skipped | Storage::Extra => return None,
        Storage::Plain => {
            let read = type_as_trait_item(ty, "Property", "from_stored");
            let read = match field.absent {
                AbsenceRule::Refused => read,
                AbsenceRule::Default | AbsenceRule::Call(_) => {
                    let default = default_value(field);
                    quote! {
                        |__value| match __value {
                            _rt_None => _rt_Ok(#default),
                            _ => #read(__value),
                        }
                    }
                }
            };
            let value = if field.is_secret() {
                quote! { _rt_Column::secret(#name, #read) }
            } else {
                quote! { _rt_stored_column(#name, #read) }
            };
            match field.encrypt_settings() {
                Some(_) => (quote! { _rt_Column<Self, #ty, #kind> }, value),
                None => (quote! { _rt_Column<Self, #ty> }, value),
            }
        }
        Storage::Json => {
            let codec = json_codec(field);
            let read = match field.absent {
                AbsenceRule::Refused => quote! { #codec.read },
                AbsenceRule::Default | AbsenceRule::Call(_) => {
                    let default = default_value(field);
                    quote! {
                        |__row, __name| match __row.get(__name)? {
                            _rt_None => _rt_Ok(#default),
                            _ => (#codec.read)(__row, __name),
                        }
                    }
                }
            };
            let value = quote! { _rt_Column::property(#name, #read) };
            (quote! { _rt_Column<Self, #ty, #kind> }, value)
        }
        Storage::Series(names) => {
            let (series_slot_type, is_secret, length) =
                (field.series_slot_type()?, field.is_secret(), names.len());
            (
                quote! { _rt::Series<Self, #series_slot_type, #kind, #length> },
                quote! { _rt::Series::new(&[#(#names),*], #is_secret) },
            )
        }
        Storage::Split(names) => {
            let is_secret = field.is_secret();
            let read = if field.attr.json.is_set() {
                quote! { _rt::read_split_json(__row, __names, #is_secret) }
            } else {
                let join = type_as_trait_item(ty, "SplitValue", "join");
                let read_split = runtime_function_at(ty, "read_split");
                quote! { #read_split(__row, __names, #is_secret, #join) }
            };
            let length = names.len();
            (
                quote! { _rt::SplitColumn<Self, #ty, #length> },
                quote! { _rt::SplitColumn::new(&[#(#names),*], |__row, __names| #read) },
            )
        }
        Storage::Blob(names) => blob_column(field, names),
        Storage::Flattened(prefix) => {
            (quote! { _rt::Flattened<Self, #ty> }, quote! { _rt::Flattened::new(#prefix) })
        }
    })
}

/// Returns the type and the value of the field's column constant for an entity that is refused. Neither requires a
/// trait of the field's type. Returns `None` for a skipped or `extra` field, and for a series whose type is not an
/// array of literal length.
pub(super) fn refused_type_column(field: &Field) -> Option<(TokenStream, TokenStream)> {
    let (ty, kind) = (&field.ty, column_kind(field));
    Some(match &field.storage {
        Storage::Skipped | Storage::Extra => return None,
        Storage::Plain | Storage::Json => (
            quote! { _rt_Column<Self, #ty, #kind> },
            quote! { _rt_Column::property("", |_, _| loop {}) },
        ),
        Storage::Series(names) => {
            let (series_slot_type, length) = (field.series_slot_type()?, names.len());
            (
                quote! { _rt::Series<Self, #series_slot_type, #kind, #length> },
                quote! { _rt::Series::new(&[""; #length], true) },
            )
        }
        Storage::Split(names) => {
            let length = names.len();
            (
                quote! { _rt::SplitColumn<Self, #ty, #length> },
                quote! { _rt::SplitColumn::new(&[""; #length], |_, _| loop {}) },
            )
        }
        Storage::Blob(names) => blob_column(field, names),
        Storage::Flattened(_) => {
            (quote! { _rt::Flattened<Self, #ty> }, quote! { _rt::Flattened::new("") })
        }
    })
}

/// Returns the type and the value of the column constant of a field that is stored in a blob.
fn blob_column(field: &Field, names: &[String]) -> (TokenStream, TokenStream) {
    let (ty, name, names) = (&field.ty, &field.name, blob_property_names_expression(names));
    (quote! { _rt::BlobColumn<Self, #ty> }, quote! { _rt::BlobColumn::new(#name, &#names) })
}

/// Returns the value with the names of a blob field's properties.
pub(super) fn blob_property_names_expression(names: &[String]) -> TokenStream {
    let fields = ["name", "len", "hash", "content_type"];
    let fields = fields.iter().zip(names).map(|(field, name)| {
        let field = Ident::new(field, Span::call_site());
        quote! { #field: #name }
    });
    let key = match names.get(4) {
        Some(key) => quote! { _rt_Some(#key) },
        None => quote! { _rt_None },
    };
    quote! { _rt::BlobNames { #(#fields,)* key: #key } }
}

/// Returns the statements that append the values of blobs of `self` to the list `values`.
pub(super) fn blob_value_statements(fields: &[Field], values: &TokenStream) -> Vec<TokenStream> {
    let pushed = fields.iter().filter_map(|field| {
        let Storage::Blob(names) = &field.storage else { return None };
        let (ident, name, names) =
            (&field.ident, &field.name, blob_property_names_expression(names));
        let blob = type_as_trait_item(&field.ty, "BlobField", "blob");
        Some(
            quote! { _rt::collect_blob_field_value(#values, #name, &#names, #blob(&self.#ident)); },
        )
    });
    pushed.collect()
}

/// Returns the marker type that decides how filters can compare the column.
fn column_kind(field: &Field) -> TokenStream {
    match (field.encrypt_settings(), field.token_property_and_length(), &field.storage) {
        (Some(_), Some(_), _) => quote! { _rt::Blind },
        (Some(_), None, _) => quote! { _rt::Encrypted },
        (None, _, Storage::Json) => quote! { _rt::Json },
        (None, _, _) => quote! { _rt_Plain },
    }
}

/// Returns the field's column schemas, separated by commas, or `None` if it has none. `is_stored` means that rows
/// store the field as a property because their keys do not contain its value.
pub(super) fn column_schemas_of_field(field: &Field, is_stored: bool) -> Option<TokenStream> {
    let (name, ty) = (&field.property, &field.ty);
    if let Storage::Series(names) | Storage::Split(names) = &field.storage {
        let of_slot = match (&field.storage, field.series_slot_type()) {
            (Storage::Series(_), slot) => type_as_trait_item(slot?, "Property", "SLOT_COLUMN"),
            _ if field.attr.json.is_set() => quote! { (_rt::EdmType::String, true, "json") },
            _ => {
                let edm = type_as_trait_item(ty, "SplitValue", "EDM");
                quote! { (#edm, true, "") }
            }
        };
        let columns = names.iter().enumerate().map(|(at, name)| {
            let column = quote! { _rt_property_schema(#name, #of_slot) };
            column_in_part(field.wide_part_of_property(at), column_with_seal(field, column))
        });
        return Some(quote! { #(#columns),* });
    }
    if let Storage::Blob(names) = &field.storage {
        let optional = type_as_trait_item(ty, "BlobField", "OPTIONAL");
        let columns =
            names.iter().zip(["String", "Int64", "Binary", "String"]).map(|(name, edm)| {
                let edm = Ident::new(edm, Span::call_site());
                quote! { _rt_ColumnSchema::plain(#name, _rt::EdmType::#edm, #optional) }
            });
        // In the row, only the key is encrypted. The content is encrypted in the blob.
        let key = names.get(4).map(|name| {
            let column = quote! { _rt_ColumnSchema::plain(#name, _rt::EdmType::Binary, #optional) };
            column_with_seal(field, column)
        });
        let columns = columns.chain(key);
        return Some(quote! { #(#columns),* });
    }
    let column = match &field.storage {
        Storage::Skipped
        | Storage::Extra
        | Storage::Series(_)
        | Storage::Split(_)
        | Storage::Blob(_) => return None,
        Storage::Plain => {
            let column = type_as_trait_item(ty, "Property", "COLUMN");
            if is_stored {
                quote! { _rt_property_schema(#name, #column) }
            } else {
                quote! { _rt_key_field_schema(#name, #column) }
            }
        }
        Storage::Json => {
            quote! { _rt_property_schema(#name, (_rt::EdmType::String, false, "json")) }
        }
        Storage::Flattened(prefix) => quote! {
            _rt_ColumnSchema::of_flattened_struct(
                #prefix,
                <#ty as _rt::Properties>::COLUMNS,
                #is_stored,
                <#ty as _rt::Properties>::OPTIONAL,
            )
        },
    };
    let default = field.attr.default.is_set().then(|| quote! { .with_default() });
    let column = column_with_seal(field, column);
    Some(column_in_part(field.wide_part_of_property(0), quote! { #column #default }))
}

/// Returns the field's `SeriesSchema`, which lists the properties of a series or a split field. Returns `None` for
/// any other field.
pub(super) fn series_schema(field: &Field) -> Option<TokenStream> {
    let (Storage::Series(names) | Storage::Split(names)) = &field.storage else { return None };
    let (name, first, slots) = (&field.name, names.first()?, names.len());
    let is_split = matches!(field.storage, Storage::Split(_));
    let is_optional = if !is_split {
        quote! { true }
    } else if field.attr.json.is_set() {
        // An absent JSON value is stored as the text `null`.
        quote! { false }
    } else {
        type_as_trait_item(&field.ty, "SplitValue", "OPTIONAL")
    };
    Some(quote! {
        _rt::SeriesSchema {
            field: #name,
            first: #first,
            slots: #slots,
            is_split: #is_split,
            is_optional: #is_optional,
        }
    })
}

/// Returns the column schema with the number of the part that stores the column. Returns `column` unchanged for part 1.
fn column_in_part(part: usize, column: TokenStream) -> TokenStream {
    match u8::try_from(part) {
        Ok(part @ 2..) => quote! { _rt_ColumnSchema::stored_in_part(#column, #part) },
        _ => column,
    }
}

/// Returns the column schema with the encryption settings if the field is encrypted, otherwise `column` unchanged.
fn column_with_seal(field: &Field, column: TokenStream) -> TokenStream {
    let Some(encrypt) = field.encrypt_settings() else { return column };
    let (pad, hide_none) = (encrypt.pad, encrypt.hide_none);
    let blind = match field.token_property_and_length() {
        Some((name, chars)) => {
            quote! { _rt_Some(_rt::TokenProperty { name: #name, chars: #chars }) }
        }
        None => quote! { _rt_None },
    };
    quote! {
        _rt_ColumnSchema::with_encryption(
            #column,
            _rt::ColumnEncryption { pad: #pad, hide_none: #hide_none, blind: #blind },
        )
    }
}

/// Returns the patch method that sets the field.
pub(super) fn patch_setter(field: &Field) -> TokenStream {
    let (ident, ty, name) = (&field.ident, &field.ty, &field.property);
    let (doc, inner) = (format!("Sets `{}`.", field.name), first_field());
    match &field.storage {
        Storage::Skipped | Storage::Extra => TokenStream::new(),
        Storage::Plain => {
            let redact = field.is_secret().then(|| quote! { .redacted(#name) });
            quote! {
                #[doc = #doc]
                pub fn #ident(self, __value: impl _rt_PatchInput<#ty>) -> Self {
                    Self(_rt_set_in_patch(self.#inner, __value, #name)#redact)
                }
            }
        }
        Storage::Json => {
            let codec = json_codec(field);
            setter_of_whole_value(
                field,
                &quote! { Self(self.#inner.set_nested("", |__out| (#codec.put)(__out, #name, &__value))) },
            )
        }
        Storage::Series(names) => {
            let Some(series_slot_type) = field.series_slot_type() else {
                return TokenStream::new();
            };
            let doc = format!("Sets a slot of `{}`, counted from 0.", field.name);
            let redact = field.is_secret().then(|| quote! { .redacted(__name) });
            quote! {
                #[doc = #doc]
                pub fn #ident<__V>(self, __slot: _rt_usize, __value: __V) -> Self
                where
                    __V: _rt_PatchInput<#series_slot_type>,
                {
                    Self(self.#inner.change_series_slot(&[#(#names),*], __slot, |__patch, __name| {
                        <__V as _rt_PatchInput<#series_slot_type>>::set(__value, __patch, __name)#redact
                    }))
                }
            }
        }
        Storage::Split(names) if field.attr.json.is_set() => {
            let pad = padding_of(field);
            setter_of_whole_value(
                field,
                &quote! {
                    Self(self.#inner.set_nested("", |__out| {
                        _rt::store_split_json(__out, &[#(#names),*], &__value, #pad)
                    }))
                },
            )
        }
        Storage::Split(names) => {
            let (pad, whole) = (padding_of(field), type_as_trait_item(ty, "SplitValue", "Whole"));
            quote! {
                #[doc = #doc]
                // The compiler asks for the bound where the method is called: the field has the error of a
                // type that cannot be split.
                pub fn #ident(self, __value: impl _rt::Into<#whole>) -> Self
                where
                    for<'__a> #ty: _rt::SplitValue,
                {
                    let __value: #whole = _rt::Into::into(__value);
                    let __whole = _rt::SplitValue::whole(&__value);
                    Self(self.#inner.set_nested("", |__out| {
                        _rt::store_split(__out, &[#(#names),*], __whole, #pad)
                    }))
                }
            }
        }
        Storage::Blob(names) => blob_setter(field, names),
        Storage::Flattened(prefix) => setter_of_whole_value(
            field,
            &quote! {
                Self(self.#inner.replace_nested(#prefix, <#ty as _rt::Properties>::COLUMNS, |__out| {
                    <#ty as _rt::Properties>::write(&__value, __out)
                }))
            },
        ),
    }
}

/// Emits a setter for a refused entity, which leaves only the real mistake for the compiler to report. The setter
/// of a JSON or flattened field has an empty loop as its body. Setters of other fields are the usual ones.
pub(super) fn setter_of_refused_entity(field: &Field) -> TokenStream {
    match field.storage {
        Storage::Json | Storage::Flattened(_) => setter_of_whole_value(field, &quote! { loop {} }),
        Storage::Skipped
        | Storage::Extra
        | Storage::Plain
        | Storage::Series(_)
        | Storage::Split(_)
        | Storage::Blob(_) => patch_setter(field),
    }
}

/// Returns a setter that takes a value of the field's type, without conversion.
fn setter_of_whole_value(field: &Field, body: &TokenStream) -> TokenStream {
    let (ident, ty) = (&field.ident, &field.ty);
    let doc = format!("Sets `{}`.", field.name);
    quote! {
        #[doc = #doc]
        pub fn #ident(self, __value: #ty) -> Self {
            #body
        }
    }
}

/// Returns the setter of a field that is stored in a blob. It takes the value, never its absence.
fn blob_setter(field: &Field, names: &[String]) -> TokenStream {
    let (ident, of) = (&field.ident, &field.name);
    let (doc, names) = (format!("Sets `{of}`."), blob_property_names_expression(names));
    let inner = first_field();
    quote! {
        #[doc = #doc]
        pub fn #ident(self, __value: _rt::Blob) -> Self {
            Self(self.#inner.set_blob(#of, &#names, __value))
        }
    }
}
