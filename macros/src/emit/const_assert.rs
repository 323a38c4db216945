//! Generates const assertions for rules that depend on the types of fields. The compiler reports a failure at the token
//! concerned.

use proc_macro2::{Span, TokenStream};
use quote::{quote, quote_spanned};
use syn::spanned::Spanned;

use super::{field, key_part::type_as_trait_item, schema::family_constant_name};
use crate::{
    model::{AbsenceRule, Entity, Field, KeyTemplate, RowFamily, Segment, Storage, TemplatePart},
    names::runtime_item,
    template::Form,
};

/// The number of properties of a remote copy for its primary: `Src`, `SrcP`, `SrcR`, `SrcT`.
const OWNER_PROPERTIES: usize = 4;

/// Returns the assertions of an entity.
pub(super) fn emit_const_asserts(entity: &Entity) -> TokenStream {
    let separated = entity.families.iter().map(|family| assert_parts_separated(entity, family));
    let covers = entity.families.iter().flat_map(|family| {
        family.parts().filter_map(move |part| assert_form_covers_type(entity, family, part))
    });
    let marker =
        usize::from(entity.discriminator_property().is_some()) + usize::from(entity.is_sealed);
    let has_many =
        |field: &Field| field.storage.has_known_names() && field.known_property_names().len() > 1;
    let hint = if entity.fields.iter().any(has_many) {
        "use fewer slots or pieces, or write"
    } else {
        "write"
    };
    let message = format!(
        "`{}` has more properties than a row can store (252): {hint} `wide` on the struct to store the entity in several rows",
        crate::names::ident_text(&entity.ident)
    );
    let is_checked = entity.wide.is_none() && !is_surely_narrow(&entity.fields);
    let parts = assert_part_sizes(entity);
    let properties = is_checked.then(|| {
        quote_spanned! { entity.span =>
            const _: () = _rt::assert_property_count(__SCHEMA.columns, #marker, #message);
        }
    });
    let copies = entity.primary_and_copies().filter(|family| !family.is_primary());
    let copies = copies.filter(|_| !is_surely_narrow(&entity.fields)).map(|family| {
        let owner = if family.is_remote { OWNER_PROPERTIES } else { 0 };
        copy_properties(entity, family, marker + owner)
    });
    let apart = assert_keys_apart(entity);
    let lists = entity.families.iter().filter(|family| family.in_blob);
    let blobs = lists.filter_map(|family| entity.declaration(family)).map(|declaration| {
        quote_spanned! { declaration.in_blob_span() => const _: () = _rt::assert_blob_feature(); }
    });
    let in_blobs = entity.fields.iter().filter_map(|field| field.attr.blob.span()).map(|span| {
        quote_spanned! { span => const _: () = _rt::assert_blob_feature(); }
    });
    let older = assert_older_version(entity);
    let expires = assert_expires_is_time(entity);
    let hidden = assert_hide_none_is_optional(&entity.fields);
    let defaulted = assert_defaulted_are_required(&entity.fields);
    let flattened = entity.fields.iter().filter_map(|field| assert_flattened_names(entity, field));
    quote! { #(#separated)* #(#covers)* #properties #parts #(#copies)* #apart #(#blobs)* #(#in_blobs)* #older #expires #hidden #defaulted #(#flattened)* }
}

/// Returns the assertions that each part of a wide entity has at most 252 properties, including two of the
/// library's own.
fn assert_part_sizes(entity: &Entity) -> Option<TokenStream> {
    let span = entity.wide?;
    let asserts = (1..=entity.wide_part_count()).map(|part| {
        let message = format!(
            "part {part} of `{}` has more properties than a part can store (250): move some of its fields to another part with a higher `part = n`",
            crate::names::ident_text(&entity.ident)
        );
        quote_spanned! { span =>
            const _: () = _rt::assert_wide_part_properties(__SCHEMA.columns, #part, #message);
        }
    });
    Some(quote! { #(#asserts)* })
}

/// Returns whether the fields have so few properties that no assertion is needed: no struct is flattened, and two
/// properties per field still fit.
fn is_surely_narrow(fields: &[Field]) -> bool {
    // Each property may have a blind token: 120 properties with tokens and the library's own properties still fit into
    // 252.
    let properties: usize =
        fields.iter().map(|field| field.known_property_names().len().max(1)).sum();
    properties <= 120 && fields.iter().all(|field| field.storage.prefix().is_none())
}

/// Returns assertions that fields with `hide_none` are `Option`s.
pub(super) fn assert_hide_none_is_optional(fields: &[Field]) -> TokenStream {
    let hides = |field: &&Field| {
        field.encrypt_settings().is_some_and(|encrypt_settings| encrypt_settings.hide_none)
    };
    let is_asked =
        |field: &&Field| field.storage.can_be_in_key() || field.series_slot_type().is_some();
    let asserts = fields.iter().filter(hides).filter(is_asked).map(|field| {
        let ty = field.series_slot_type().unwrap_or(&field.ty);
        let message = format!(
            "`hide_none` has no effect on `{}`, which is never absent: write `encrypt`, or make the field an `Option`",
            field.name
        );
        let span = field.attr.encrypt.span().unwrap_or(field.span);
        let property = runtime_item("Property", span);
        quote_spanned! { span =>
            const _: () = _rt::assert_hide_none_is_optional(<#ty as #property>::OPTIONAL, #message);
        }
    });
    quote! { #(#asserts)* }
}

/// Returns assertions that fields with `default = path` are not `Option`s, because a `None` is stored as an absent
/// property and would be read as the default.
pub(super) fn assert_defaulted_are_required(fields: &[Field]) -> TokenStream {
    let asserts = fields.iter().filter_map(|field| {
        let (Storage::Plain, AbsenceRule::Call(path)) = (&field.storage, &field.absent) else {
            return None;
        };
        let (name, ty) = (&field.name, &field.ty);
        let path = crate::names::source_text(path);
        let message = format!(
            "`default = {path}` cannot be used on `{name}`, which is an `Option`: `None` is stored as an absent property and would read back as the result of `{path}`; remove `Option` or `default`"
        );
        let is_optional = type_as_trait_item(ty, "Property", "OPTIONAL");
        let span = field.attr.default.span().unwrap_or(field.span);
        Some(quote_spanned! { span =>
            const _: () = _rt::assert_default_is_of_required(#is_optional, #message);
        })
    });
    quote! { #(#asserts)* }
}

/// Returns assertions that `upgrade_from` refers to an older version of the entity.
fn assert_older_version(entity: &Entity) -> Option<TokenStream> {
    let older = entity.upgrade_from.as_ref()?;
    let (name, version) = (entity.entity_type.value(), entity.version);
    let path = crate::names::source_text(older);
    let same = format!(
        "`{path}` is not an earlier version of `{name}`: write `entity_type = \"{name}\"` and the same `discriminator` on it"
    );
    let (this, other) = match entity.wide {
        Some(_) => ("wide", "one row"),
        None => ("one row", "wide"),
    };
    let rows = format!(
        "`upgrade_from` cannot change the number of rows: this version of `{name}` is {this} and `{path}` is {other}, so their RowKeys differ (parts of a wide entity end in `_01`, `_02`); give the new shape another `entity_type`, and copy the entities to it"
    );
    let lower = format!("`{path}` is not older than version {version}: give it a lower `version`");
    let entity = runtime_item("TableEntity", older.span());
    Some(quote_spanned! { older.span() =>
        const _: () = _rt::assert_same_type(
            <#older as #entity>::SCHEMA,
            __SCHEMA,
            #same,
        );
        const _: () = _rt::assert_same_width(<#older as #entity>::SCHEMA, __SCHEMA, #rows);
        const _: () = _rt::assert_older(<#older as #entity>::SCHEMA, __SCHEMA, #lower);
    })
}

/// Returns the assertion that the field in `expires = field` is a time.
fn assert_expires_is_time(entity: &Entity) -> Option<TokenStream> {
    let expires = entity.expires.as_ref()?;
    let field = entity.fields.get(expires.field)?;
    let ty = &field.ty;
    let message = format!(
        "`expires = {0}` needs a field stored as a DateTime: change the type of `{0}` to a time or an `Option` of a time",
        field.name
    );
    let property = runtime_item("Property", expires.span);
    Some(quote_spanned! { expires.span =>
        const _: () = _rt::assert_expiry_is_time(<#ty as #property>::EDM, #message);
    })
}

/// Returns the assertion that no property of a flattened struct has the name of another property.
fn assert_flattened_names(entity: &Entity, field: &Field) -> Option<TokenStream> {
    let prefix = field.storage.prefix()?;
    let ty = &field.ty;
    let marker = entity.discriminator_property().unwrap_or_default();
    let message = format!(
        "field `{}` has a property with the name of another property: choose a `flatten(prefix = \"..\")` other than \"{prefix}\"",
        field.name
    );
    let properties = runtime_item("Properties", field.span);
    Some(quote_spanned! { field.span =>
        const _: () = _rt::assert_flattened(
            __SCHEMA.columns,
            #marker,
            #prefix,
            <#ty as #properties>::COLUMNS,
            #message,
        );
    })
}

/// Returns the assertion that copies have at most 252 properties. A copy also stores fields of the primary's keys
/// that its own keys do not contain.
fn copy_properties(entity: &Entity, family: &RowFamily, marker: usize) -> TokenStream {
    let fields = entity.fields.iter().enumerate();
    let held = fields.filter(|(at, field)| entity.is_property(family, *at, field));
    let columns: Vec<TokenStream> =
        held.filter_map(|(_, field)| field::column_schemas_of_field(field, true)).collect();
    let message = format!(
        "copies of `{}` have more properties than a row can store (252): leave some out with `except(..)`",
        family.name
    );
    quote_spanned! { family.row.literal.span() =>
        const _: () = _rt::assert_property_count(&[#(#columns),*], #marker, #message);
    }
}

/// Returns assertions that rows of two row families never have equal keys.
fn assert_keys_apart(entity: &Entity) -> TokenStream {
    let families = entity.families.iter().enumerate();
    let pairs = families.flat_map(|(at, later)| {
        let earlier = entity.families.iter().take(at);
        // The primary of a wide entity is compared together with all of its parts.
        let earlier = earlier.filter(|one| !(one.is_primary() && entity.wide.is_some()));
        // A blob is never a row.
        let earlier = earlier.filter(|one| one.in_blob == later.in_blob);
        let earlier = earlier.filter(|one| !one.row.starts_with_different_literal(&later.row));
        earlier.map(move |earlier| (earlier, later))
    });
    let asserts = pairs.map(|(earlier, later)| {
        let (first, second) = (family_constant_name(earlier), family_constant_name(later));
        let message = format!(
            "rows of `{}` (\"{}\") and rows of `{}` (\"{}\") could have the same key: begin each key with a different literal",
            earlier.name, earlier.row.text, later.name, later.row.text
        );
        quote_spanned! { later.row.literal.span() =>
            const _: () = _rt::assert_family_keys_apart(#first, #second, #message);
        }
    });
    let of_parts = apart_from_parts(entity);
    quote! { #(#asserts)* #of_parts }
}

/// Returns assertions that no other row of a wide entity has the key of one of its parts.
fn apart_from_parts(entity: &Entity) -> TokenStream {
    let (Some(_), Some(primary)) = (entity.wide, entity.primary()) else {
        return TokenStream::new();
    };
    let others = entity.families.iter().skip(1).filter(|family| !family.in_blob);
    let others = others.filter(|other| !primary.row.starts_with_different_literal(&other.row));
    let asserts = others.map(|other| {
        let second = family_constant_name(other);
        let message = format!(
            "rows of a part of the entity and rows of `{}` (\"{}\") could have the same key: begin each key with a different literal",
            other.name, other.row.text
        );
        quote_spanned! { other.row.literal.span() =>
            const _: () = _rt::assert_family_keys_apart(__PARTS, #second, #message);
        }
    });
    quote! { #(#asserts)* }
}

/// Returns assertions that a part is followed by a literal, if its type decides whether its width varies.
fn assert_parts_separated(entity: &Entity, family: &RowFamily) -> TokenStream {
    let constant = family_constant_name(family);
    let check = |key: &KeyTemplate, template: TokenStream| {
        let assert = unseparated_part_message(entity, key)?;
        let span: Span = key.literal.span();
        Some(quote_spanned! { span =>
            const _: () = _rt::assert_separated(&#constant.#template, #assert);
        })
    };
    let partition =
        family.declares_partition.then(|| check(&family.partition, quote! { partition })).flatten();
    let row = check(&family.row, quote! { row });
    quote! { #partition #row }
}

/// Returns the error message for the first part of a key whose type, which only the compiler knows, determines whether
/// a literal must follow the part. Returns `None` if no part is like that.
fn unseparated_part_message(entity: &Entity, key: &KeyTemplate) -> Option<String> {
    key.segment_after_each_part(&entity.fields).find_map(|(second, has_fixed_width)| {
        match (second, has_fixed_width) {
            (Segment::Part(next), None) => Some(key.unseparated_message(next)),
            _ => None,
        }
    })
}

/// Returns the assertion that a date form is as precise as the field's type. Returns `None` if the part is not a
/// date, or if the type's name already shows that the field cannot be read back from it. The assertion is needed
/// because an alias may have the name of another type.
fn assert_form_covers_type(
    entity: &Entity,
    family: &RowFamily,
    part: &TemplatePart,
) -> Option<TokenStream> {
    let field = entity.fields.get(part.field)?;
    let Form::Date(form, _) = &part.form else { return None };
    if !part.is_read_back_exactly(field) {
        return None;
    }
    let in_partition = family.partition.parts().any(|other| std::ptr::eq(other, part));
    let key = if in_partition { &family.partition } else { &family.row };
    let ty = &field.ty;
    let message =
        key.template_error_text(&part.place, "the date form is coarser than the type of the field");
    let date = runtime_item("DatePart", key.literal.span());
    Some(quote_spanned! { key.literal.span() =>
        const _: () = _rt::assert_date_form_resolution(#form, <#ty as #date>::RESOLUTION, #message);
    })
}
