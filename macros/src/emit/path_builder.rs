//! Generates path builders: one type for each entity, with a marker type for every set of key parts that may have
//! been given so far. Markers need no code. A number as a const argument would instead be an expression that the
//! compiler evaluates wherever the type is written.
//!
//! The next part is always the first missing one, in the PartitionKey, then in the RowKey. An exact value sets all
//! parts of its field at once. A period only sets its date part, and a bucket (`{f:bucket(16)}`) only its own part.
//! If the keys contain both a period of a field and its value, the method for the value is called `at_exact`,
//! because `.at(midnight)` could mean the day.
//!
//! For an entity with dated tables, a state has two more flags. The first says whether the value that determines
//! the table is given, so one table is read. The second says whether a range of these values is given, so several
//! tables are read.

use proc_macro2::{Ident, TokenStream};
use quote::{format_ident, quote};

use super::{
    entry_doc, first_field, key_part, missing_steps,
    schema::{copied_fields_type_name, family_constant_name},
};
use crate::{
    model::{Entity, FamilyKind, Field, RowFamily, TemplatePart},
    names,
    template::Form,
};

/// One flag for each part, starting with the PartitionKey's: whether it is given.
pub(super) type GivenFlags = Vec<bool>;

/// The path builder of one row family.
pub(super) struct FamilyPathBuilder<'m> {
    pub(super) entity: &'m Entity,
    family: &'m RowFamily,
    parts: Vec<&'m TemplatePart>,
    /// The incomplete states in order of discovery.
    pub(super) states: Vec<GivenFlags>,
    /// The number of this row family's first builder state. Earlier row families have smaller numbers.
    first: usize,
    /// Whether the entity is refused. Its steps then accept anything and do nothing.
    pub(super) is_refused: bool,
}

/// Returns the initial type of a row family's path builder, when no part of the keys is given. This is its first
/// state, or a finished path if nothing has to be given.
pub(super) fn start_type(entity: &Entity, family: &RowFamily) -> TokenStream {
    // `is_refused` changes the methods of the states but not their types, so this is also correct for a refused entity.
    let builder = FamilyPathBuilder::new(entity, family, false);
    builder.state_type(&builder.nothing_given())
}

/// Returns an expression for the path builder before any part of the keys is set.
pub(super) fn new_builder_value(entity: &Entity, family: &RowFamily) -> TokenStream {
    let builder = FamilyPathBuilder::new(entity, family, false);
    let constant = family_constant_name(family);
    builder.state_value(&builder.nothing_given(), &quote! { _rt_start_key_path(#constant) })
}

/// Returns an expression for the path to the row of `family` of the entity `self`. All key parts are set from the
/// fields of `self`.
pub(super) fn own_row_path_expression(entity: &Entity, family: &RowFamily) -> TokenStream {
    let constant = family_constant_name(family);
    let fixes = family.parts().enumerate().filter_map(|(at, part)| {
        let field = entity.fields.get(part.field)?;
        let ident = &field.ident;
        Some(key_part::set_part_call(part, at, &field.ty, &quote! { &self.#ident }))
    });
    let table = entity.dated.as_ref().and_then(|dated| entity.fields.get(dated.field));
    let table = table.map(|field| {
        let ident = &field.ident;
        set_table_call(field, &quote! { &self.#ident })
    });
    quote! { _rt_point(_rt_start_key_path(#constant) #(#fixes)* #table) }
}

/// Returns the generated call that selects a path's dated table from the field that determines it. `value` is the
/// expression of a reference to the field's value.
fn set_table_call(field: &Field, value: &TokenStream) -> TokenStream {
    let (name, to_ticks) =
        (&field.name, key_part::type_as_trait_item(&field.ty, "DatePart", "to_ticks"));
    quote! { .in_table_of(#name, #to_ticks(#value)) }
}

/// Emits the type of the entity's path builders, and its methods. Each state of a builder, given by the key parts
/// set so far, has the methods for the parts that may follow.
pub(super) fn emit_path_builders(entity: &Entity) -> TokenStream {
    builders_of_families(entity, false)
}

/// Emits path builders for a refused entity, which accept any value and do nothing. If a part of a template refers
/// to an unknown field, the builders accept any field next.
pub(super) fn emit_for_refused_entity(entity: &Entity) -> TokenStream {
    builders_of_families(entity, true)
}

fn builders_of_families(entity: &Entity, is_refused: bool) -> TokenStream {
    let new = |family| FamilyPathBuilder::new(entity, family, is_refused);
    let builders: Vec<FamilyPathBuilder<'_>> = entity.families.iter().map(new).collect();
    if builders.iter().all(|builder| builder.states.is_empty()) {
        return TokenStream::new();
    }
    let states = builders
        .iter()
        .flat_map(|builder| builder.states.iter().map(move |state| builder.state_impl(state)));
    let (name, vis, ident) = (builder_type_name(entity), &entity.vis, &entity.ident);
    let markers = builders
        .iter()
        .flat_map(|builder| (0..builder.states.len()).map(|at| builder.state_marker(at)));
    let markers = markers.map(|marker| quote! { #vis enum #marker {} });
    let missing_steps = missing_steps::emit_missing_steps(&builders, vis);
    let inner = first_field();
    let doc = format!("Keys of `{ident}`, not all of them given yet.");
    quote! {
        #(#markers)*
        #missing_steps

        #[doc = #doc]
        #vis struct #name<__Next>(
            _rt_PathDraft,
            _rt_PhantomData<fn() -> __Next>,
        );

        #[automatically_derived]
        impl<__Next> _rt_Clone for #name<__Next> {
            fn clone(&self) -> Self {
                Self(_rt_Clone::clone(&self.#inner), _rt_PhantomData)
            }
        }

        #[automatically_derived]
        impl<__Next> _rt_Debug for #name<__Next> {
            fn fmt(&self, __f: &mut _rt_Formatter<'_>) -> _rt_FmtResult {
                _rt_Debug::fmt(&self.#inner, __f)
            }
        }

        #[automatically_derived]
        impl<__Next> _rt_PathBuilder for #name<__Next> {
            type Entity = #ident;

            fn into_draft(self) -> _rt_PathDraft {
                self.#inner
            }
        }

        #(#states)*
    }
}

/// Returns the name of the type of the entity's path builders.
fn builder_type_name(entity: &Entity) -> Ident {
    format_ident!("__{}Path", names::ident_text(&entity.ident))
}

impl<'m> FamilyPathBuilder<'m> {
    fn new(entity: &'m Entity, family: &'m RowFamily, is_refused: bool) -> Self {
        let earlier = entity.families.iter().take(family.index);
        let first =
            earlier.map(|family| Self::builder_of_family(entity, family).states.len()).sum();
        Self { first, is_refused, ..Self::builder_of_family(entity, family) }
    }

    fn builder_of_family(entity: &'m Entity, family: &'m RowFamily) -> Self {
        let parts: Vec<&TemplatePart> = family.parts().collect();
        let mut builder =
            Self { entity, family, parts, states: Vec::new(), first: 0, is_refused: false };
        if builder.has_lost_part() {
            builder.states.push(builder.nothing_given());
            return builder;
        }
        let mut open = vec![builder.nothing_given()];
        while let Some(state) = open.pop() {
            if !builder.is_complete(&state) && !builder.states.contains(&state) {
                open.extend(builder.next_states(&state));
                builder.states.push(state);
            }
        }
        builder
    }

    fn nothing_given(&self) -> GivenFlags {
        // Parts with an unknown field are never all given.
        vec![false; self.parts.len() + usize::from(self.has_lost_part()) + self.table_flags()]
    }

    /// Returns the field that determines the table, if tables are dated.
    fn dated_field(&self) -> Option<(usize, &'m Field)> {
        let at = self.entity.dated.as_ref()?.field;
        Some((at, self.entity.fields.get(at)?))
    }

    /// Returns how many entries after the key parts in a builder state ([`GivenFlags`]) concern the choice of tables: 2
    /// for dated tables (one table is given; a time window is given). Returns 0 without dated tables, or if a part
    /// of the keys refers to an unknown field.
    fn table_flags(&self) -> usize {
        if self.dated_field().is_some() && !self.has_lost_part() { 2 } else { 0 }
    }

    /// Returns whether the builder state determines a single table to read. Returns `true` if the entity does not
    /// have dated tables, or if a part of the keys refers to an unknown field.
    fn has_table(&self, given: &GivenFlags) -> bool {
        self.table_flags() == 0 || given.get(self.parts.len()).copied().unwrap_or_default()
    }

    /// Returns whether the builder state contains a window of times, which determines the tables to read.
    pub(super) fn is_window_given(&self, given: &GivenFlags) -> bool {
        self.table_flags() > 0 && given.get(self.parts.len() + 1).copied().unwrap_or_default()
    }

    /// Returns whether the keys contain the value of the field that determines the table. A path to one row then
    /// needs no other value to find the table. Returns `true` if the entity does not have dated tables.
    fn keys_hold_time(&self) -> bool {
        self.dated_field().is_none_or(|(at, _)| {
            self.family.exact_part_of_field(at, &self.entity.fields).is_some()
        })
    }

    /// Returns whether a path builder with the parts in `given` has the methods that choose dated tables, which
    /// come before the methods that set parts of the keys.
    fn begins_with_table(&self, given: &GivenFlags) -> bool {
        self.table_flags() > 0 && given.iter().all(|given| !given)
    }

    /// Returns whether a time window can limit the tables to read: the tables are dated, and the PartitionKey does
    /// not contain the field that determines the table.
    fn takes_window(&self) -> bool {
        let dated = self.dated_field();
        dated.is_some_and(|(at, _)| self.family.partition.parts().all(|part| part.field != at))
    }

    /// Returns whether a part of the keys refers to an unknown field. The derive then does not know which field
    /// comes next.
    fn has_lost_part(&self) -> bool {
        self.family.partition.has_lost_part || self.family.row.has_lost_part
    }

    fn is_complete(&self, given: &GivenFlags) -> bool {
        let parts = self.parts.len() + usize::from(self.has_lost_part());
        given.iter().take(parts).all(|given| *given)
            && (self.has_table(given) || self.is_window_given(given))
    }

    /// Returns whether the builder state fixes the whole PartitionKey, which makes it usable as a path.
    pub(super) fn is_path(&self, given: &GivenFlags) -> bool {
        self.is_refused
            || (given.iter().take(self.family.partition.parts().count()).all(|given| *given)
                && (self.has_table(given) || self.is_window_given(given)))
    }

    /// Returns the first key part without a value, with its number and its field.
    fn next_part(&self, given: &GivenFlags) -> Option<(usize, &'m TemplatePart, &'m Field)> {
        let at = given.iter().position(|given| !given)?;
        let part: &'m TemplatePart = self.parts.get(at)?;
        // After a window of times, a single time must not be given.
        let is_dated = self.dated_field().is_some_and(|(field, _)| field == part.field);
        if self.is_window_given(given) && is_dated {
            return None;
        }
        Some((at, part, self.entity.fields.get(part.field)?))
    }

    /// Returns the builder state after a field's value is set: its parts are given, and also the table if the field
    /// determines it.
    fn after_value(&self, given: &GivenFlags, field: usize) -> GivenFlags {
        let mut fixed = self.missing_parts(given, field);
        if self.dated_field().is_some_and(|(dated, _)| dated == field) && self.table_flags() > 0 {
            fixed.push(self.parts.len());
        }
        with_parts(given, &fixed)
    }

    /// Returns the numbers of the key parts of a field that have no value yet.
    fn missing_parts(&self, given: &GivenFlags, field: usize) -> Vec<usize> {
        let parts = self.parts.iter().zip(given).enumerate();
        parts
            .filter(|(_, (part, given))| part.field == field && !**given)
            .map(|(at, _)| at)
            .collect()
    }

    fn next_states(&self, given: &GivenFlags) -> Vec<GivenFlags> {
        let mut states = Vec::new();
        if self.begins_with_table(given) {
            if self.takes_window() {
                states.push(with_parts(given, &[self.parts.len() + 1]));
            }
            if let (false, Some((field, _))) = (self.keys_hold_time(), self.dated_field()) {
                states.push(self.after_value(given, field));
                return states;
            }
        }
        let Some((at, part, _)) = self.next_part(given) else { return states };
        let whole = self.after_value(given, part.field);
        if part.is_period(&self.entity.fields) {
            states.push(self.after_period(given, at, part));
        } else if self.is_bucket(at, part) {
            states.push(with_parts(given, &[at]));
        }
        states.push(whole);
        states
    }

    /// Returns whether a period of the part is within the period of one dated table and thereby determines it, as a
    /// day determines the table of its month.
    fn is_period_of_table(&self, part: &TemplatePart) -> bool {
        match (&part.form, &self.entity.dated) {
            (Form::Date(_, finest), Some(dated)) => {
                self.table_flags() > 0 && dated.field == part.field && *finest >= dated.finest
            }
            _ => false,
        }
    }

    /// Returns the builder state after a period of part number `at` is set. The table is also set if the period
    /// determines it.
    fn after_period(&self, given: &GivenFlags, at: usize, part: &TemplatePart) -> GivenFlags {
        let table = self.is_period_of_table(part).then_some(self.parts.len());
        with_parts(given, &std::iter::once(at).chain(table).collect::<Vec<_>>())
    }

    /// Returns whether the part is in the PartitionKey and has the form `{f:bucket(16)}`, a hash of the field.
    fn is_bucket(&self, at: usize, part: &TemplatePart) -> bool {
        matches!(part.form, Form::Bucket(_)) && at < self.family.partition.parts().count()
    }

    fn view_type(&self) -> TokenStream {
        match self.family.kind {
            FamilyKind::Primary => quote! { _rt_PrimaryRow },
            FamilyKind::Copy if self.family.has_every_field() => quote! { _rt_FullCopy },
            FamilyKind::Copy => {
                let marker = copied_fields_type_name(self.entity, self.family);
                quote! { _rt::PartialCopy<#marker> }
            }
            FamilyKind::List => quote! { _rt::ListRows },
        }
    }

    /// Returns the view type of a path to many rows, which is a range or a partition. Primaries and full copies
    /// share the view `FullRow`. Other row families have the same view as for a point.
    fn view_of_many(&self) -> TokenStream {
        match self.family.kind {
            FamilyKind::Primary => quote! { _rt_FullRow },
            FamilyKind::Copy if self.family.has_every_field() => quote! { _rt_FullRow },
            FamilyKind::Copy | FamilyKind::List => self.view_type(),
        }
    }

    /// Returns the type of a builder state: a point path if no part of the keys is missing.
    fn state_type(&self, given: &GivenFlags) -> TokenStream {
        let (entity, view, name) =
            (&self.entity.ident, self.view_type(), builder_type_name(self.entity));
        let many = self.view_of_many();
        match self.state_position(given) {
            Some(at) => {
                let marker = self.state_marker(at);
                quote! { #name<#marker> }
            }
            None if self.is_window_given(given) => quote! { _rt_Range<#entity, #many> },
            None => quote! { _rt_Point<#entity, #view> },
        }
    }

    /// Returns the position of a builder state in `states`. Returns `None` for a state without missing key parts,
    /// because the builder then returns a finished path.
    fn state_position(&self, given: &GivenFlags) -> Option<usize> {
        self.states.iter().position(|state| state == given)
    }

    /// Returns the name of the type that represents the builder state at this position of `states`. In compiler
    /// messages, it shows which field comes next: `__id_comes_next`. A number distinguishes states with the same next
    /// field: `__id_comes_next_3`.
    fn state_marker(&self, at: usize) -> Ident {
        let next = |state| self.name_of_next(state).unwrap_or("any_field");
        let name = self.states.get(at).map_or("any_field", next);
        let is_first = self.family.is_primary()
            && self.states.iter().take(at).all(|state| next(state) != name);
        if is_first {
            format_ident!("__{name}_comes_next")
        } else {
            format_ident!("__{name}_comes_next_{}", self.first + at)
        }
    }

    /// Returns the name of the field whose value the next step of the path sets.
    fn name_of_next(&self, given: &GivenFlags) -> Option<&'m str> {
        self.next_field(given).map(|field| &*field.name)
    }

    /// Returns whether the next step of the path is the time that chooses its dated table. This is the first step of a
    /// path whose keys do not contain that time.
    pub(super) fn begins_with_time(&self, given: &GivenFlags) -> bool {
        self.begins_with_table(given) && !self.keys_hold_time()
    }

    /// Returns the field whose value the next step of the path sets. Returns `None` if every part is given.
    pub(super) fn next_field(&self, given: &GivenFlags) -> Option<&'m Field> {
        let first = self.dated_field().map(|(_, field)| field);
        let first = first.filter(|_| self.begins_with_time(given));
        first.or_else(|| self.next_part(given).map(|(_, _, field)| field))
    }

    /// Returns an expression that builds a value of a builder state from `draft`, the unfinished path.
    fn state_value(&self, given: &GivenFlags, draft: &TokenStream) -> TokenStream {
        let name = builder_type_name(self.entity);
        match self.state_position(given) {
            Some(_) => quote! { #name(#draft, _rt_PhantomData) },
            None if self.is_window_given(given) => quote! { _rt_Range::from_path_draft(#draft) },
            None => quote! { _rt_point(#draft) },
        }
    }

    /// Returns the impls of a builder state: its methods, and also those of a path if the whole PartitionKey is given.
    fn state_impl(&self, given: &GivenFlags) -> TokenStream {
        let (ty, methods) = (self.state_type(given), self.state_methods(given));
        let (view, entity) = (self.view_of_many(), &self.entity.ident);
        let missing = self.missing_bound(given);
        let path = match (self.is_path(given), &missing) {
            (true, _) | (_, None) => quote! { impl _rt_PartitionPathBuilder for #ty },
            (false, Some(missing)) => {
                quote! { impl<__T: #missing> _rt_PartitionPathBuilder<__T> for #ty }
            }
        };
        let bound = missing.map(|missing| quote! { : #missing });
        quote! {
            impl #ty { #methods }
            #path { type View = #view; }
            impl<__T #bound> _rt::NotOneRow<__T> for #ty { type Entity = #entity; }
        }
    }

    fn state_methods(&self, given: &GivenFlags) -> TokenStream {
        if self.has_lost_part() {
            let fields = self.entity.fields.iter().filter(|field| field.storage.can_be_in_key());
            let methods = fields.map(|field| self.takes_anything(given, given, field, true));
            return quote! { #(#methods)* };
        }
        let begins_with_table = self.begins_with_table(given) && !self.is_refused;
        let window = begins_with_table.then(|| self.window_method(given));
        if let (true, false, Some((at, field))) =
            (begins_with_table, self.keys_hold_time(), self.dated_field())
        {
            let after = self.after_value(given, at);
            let exact =
                self.exact_method(given, &after, field, &field.ident, "Selects the table of");
            return quote! { #window #exact };
        }
        let Some((at, part, field)) = self.next_part(given) else { return quote! { #window } };
        let after = self.after_value(given, part.field);
        if self.is_refused {
            let is_open = self.is_path(given);
            return self.takes_anything(given, &after, field, is_open);
        }
        let period = part.is_period(&self.entity.fields).then(|| {
            let method = names::generated_ident(&format!("{}_period", field.name), field.span);
            let after = self.after_period(given, at, part);
            self.exact_method(given, &after, field, &method, "Sets the period that holds")
        });
        let exact = if self.has_method_for_exact_value(given) {
            self.exact_method_beside_period(given, &after, field)
        } else {
            self.exact_method(given, &after, field, &field.ident, "Sets")
        };
        let buckets = self.is_bucket(at, part).then(|| self.buckets_method(given, at, part, field));
        let is_open = self.is_path(given) && self.missing_parts(given, part.field).len() == 1;
        let bounds = is_open.then(|| {
            let range = self.range_method(given, at, part, field);
            let prefix = self.prefix_method(given, at, part, field);
            quote! { #range #prefix }
        });
        quote! { #window #period #exact #buckets #bounds }
    }

    /// Returns whether the method that gives the value of the next part is called `at_exact`, since the keys
    /// hold a period of the field too.
    pub(super) fn has_method_for_exact_value(&self, given: &GivenFlags) -> bool {
        let next = self.next_part(given).map(|(_, part, _)| part.field);
        next.is_some_and(|field| self.family.has_period_and_value_of(field, &self.entity.fields))
    }

    /// Returns the method that sets a window of times for the field that determines the table.
    fn window_method(&self, given: &GivenFlags) -> TokenStream {
        let dated = self.dated_field().filter(|_| self.takes_window());
        let Some((_, field)) = dated else { return TokenStream::new() };
        let (ty, name, inner) = (&field.ty, &field.name, first_field());
        let to_ticks = key_part::type_as_trait_item(ty, "DatePart", "to_ticks");
        let method = names::generated_ident(&format!("{name}_between"), field.span);
        let after = with_parts(given, &[self.parts.len() + 1]);
        let next = self.state_type(&after);
        let made = self.state_value(
            &after,
            &quote! { self.#inner.between_tables(#name, #to_ticks(&__from), #to_ticks(&__until)) },
        );
        let doc = format!(
            "Reads the tables of a window of `{name}`, whose end is not part of it{}",
            self.example_after(given, &format!("{name}_between(from..until)"))
        );
        quote! {
            #[doc = #doc]
            pub fn #method<__V>(self, __window: _rt::ops::Range<__V>) -> #next
            where
                __V: _rt_Input<#ty>,
            {
                let __from: #ty = _rt_Input::input(__window.start);
                let __until: #ty = _rt_Input::input(__window.end);
                #made
            }
        }
    }

    /// Returns the method that fixes parts of one field to a value and leads to the builder state `after`.
    fn exact_method(
        &self,
        given: &GivenFlags,
        after: &GivenFlags,
        field: &Field,
        method: &Ident,
        verb: &str,
    ) -> TokenStream {
        let ty = &field.ty;
        let names_table = self.has_table(after) && !self.has_table(given);
        let next = self.state_type(after);
        let parts = self.parts.iter().zip(given.iter().zip(after)).enumerate();
        let fixed = parts.filter(|(_, (_, (was_given, is_given)))| **is_given && !**was_given);
        let fixed: Vec<(usize, &TemplatePart)> = fixed.map(|(at, (part, _))| (at, *part)).collect();
        // A value that is used once needs no local.
        let only = match fixed[..] {
            [only] if !names_table => Some(only),
            _ => None,
        };
        let (local, draft) = match only {
            Some((at, part)) => (None, key_part::set_input_part_call(part, at, ty)),
            None => {
                let value = quote! { &__value };
                let table = names_table.then(|| set_table_call(field, &value));
                let fixes =
                    fixed.iter().map(|(at, part)| key_part::set_part_call(part, *at, ty, &value));
                let local = quote! { let __value: #ty = _rt_Input::input(__value); };
                (Some(local), quote! { #(#fixes)* #table })
            }
        };
        let inner = first_field();
        let made = self.state_value(after, &quote! { self.#inner #draft });
        let doc = self.step_doc(given, after, &format!("{verb} `{}`", field.name));
        quote! {
            #[doc = #doc]
            pub fn #method(self, __value: impl _rt_Input<#ty>) -> #next {
                #local
                #made
            }
        }
    }

    /// Returns the documentation of a step: what it does, an example in the entity's own names, and what the builder
    /// is afterwards.
    fn step_doc(&self, given: &GivenFlags, after: &GivenFlags, does: &str) -> String {
        let mut doc = match entry_doc::example_calls(self.entity, self.family, after) {
            Some(calls) => format!("{does}: `{calls}`."),
            None => format!("{does}."),
        };
        if self.is_complete(after) && !self.is_window_given(after) {
            doc.push_str("\n\nThis completes the key.");
        } else if self.is_path(after) && !self.is_path(given) {
            doc.push_str(
                "\n\nThe result is a path: a query of it reads every row with these parts.",
            );
        }
        doc
    }

    /// Returns an example of a step that follows the builder state: the calls that lead there, and `step`.
    fn example_after(&self, given: &GivenFlags, step: &str) -> String {
        match entry_doc::example_calls(self.entity, self.family, given) {
            Some(calls) => format!(": `{calls}.{step}`."),
            None => ".".to_owned(),
        }
    }

    /// Returns the method `at_exact`, which fixes a field whose keys also contain a period of it. A method with the
    /// field's own name, which could mean either, never compiles, and the message of its bound names both.
    fn exact_method_beside_period(
        &self,
        given: &GivenFlags,
        after: &GivenFlags,
        field: &Field,
    ) -> TokenStream {
        let method = names::generated_ident(&format!("{}_exact", field.name), field.span);
        let exact = self.exact_method(
            given,
            after,
            field,
            &method,
            "Sets one value, rather than a period, of",
        );
        let (name, next) = (&field.ident, self.state_type(after));
        quote! {
            #exact
            #[doc(hidden)]
            pub fn #name<__V>(self, _: __V) -> #next
            where
                __V: _rt::PeriodOrExact,
            {
                loop {}
            }
        }
    }

    /// Returns the methods for a field of a refused entity, which accept any argument and do nothing. If `is_open` is
    /// set, also returns methods for a range and a prefix.
    fn takes_anything(
        &self,
        given: &GivenFlags,
        after: &GivenFlags,
        field: &Field,
        is_open: bool,
    ) -> TokenStream {
        let (exact, entity) = (&field.ident, &self.entity.ident);
        let (view, next) = (self.view_of_many(), self.state_type(after));
        let made =
            |suffix| names::generated_ident(&format!("{}{suffix}", field.name), exact.span());
        let (period, buckets) = (made("_period"), made("_buckets"));
        let one_value = (0..self.entity.fields.len())
            .filter(|at| self.entity.fields.get(*at).is_some_and(|other| other.name == field.name))
            .any(|at| self.family.has_period_and_value_of(at, &self.entity.fields))
            .then(|| {
                let method = made("_exact");
                quote! { pub fn #method<__V>(self, _: __V) -> #next { loop {} } }
            });
        let bound = |suffix| {
            let method = made(suffix);
            quote! { pub fn #method<__V>(self, _: __V) -> _rt_Range<#entity, #view> { loop {} } }
        };
        let bounds = is_open.then(|| {
            let (range, prefix) = (bound("_range"), bound("_prefix"));
            quote! { #range #prefix }
        });
        // After a bucket or period of a part, the field itself may still be given.
        let rest = self.state_type(given);
        quote! {
            pub fn #exact<__V>(self, _: __V) -> #next { loop {} }
            #one_value
            pub fn #period<__V>(self, _: __V) -> #rest { loop {} }
            pub fn #buckets(self) -> _rt::Vec<#rest> { loop {} }
            #bounds
        }
    }

    /// Returns the method that makes one path for each bucket of a part `{f:bucket(16)}`. Returns no tokens for any
    /// other part.
    fn buckets_method(
        &self,
        given: &GivenFlags,
        at: usize,
        part: &TemplatePart,
        field: &Field,
    ) -> TokenStream {
        let Form::Bucket(count) = part.form else { return TokenStream::new() };
        let method = names::generated_ident(&format!("{}_buckets", field.name), field.span);
        let after = with_parts(given, &[at]);
        let next = self.state_type(&after);
        let inner = first_field();
        let draft = quote! {
            _rt_Clone::clone(&self.#inner).set_bucket_number_part(#at, __bucket, #count)
        };
        let made = self.state_value(&after, &draft);
        let step = format!("{}_buckets()", field.name);
        let doc = format!(
            "Returns a path for each bucket of `{}`, for `query_many`{}",
            field.name,
            self.example_after(given, &step)
        );
        quote! {
            #[doc = #doc]
            pub fn #method(self) -> _rt::Vec<#next> {
                _rt::map_bucket_numbers(#count, |__bucket| #made)
            }
        }
    }

    /// Returns the method that sets bounds on a part, if keys sort like the part's values.
    fn range_method(
        &self,
        given: &GivenFlags,
        at: usize,
        part: &TemplatePart,
        field: &Field,
    ) -> Option<TokenStream> {
        let between = key_part::range_call(part, at, field)?;
        let (entity, view, ty) = (&self.entity.ident, self.view_of_many(), &field.ty);
        let (last, inner) = (self.family.row.is_last_segment(part), first_field());
        let method = names::generated_ident(&format!("{}_range", field.name), field.span);
        let step = format!("{}_range(from..=to)", field.name);
        let doc = format!(
            "Reads the rows with `{}` in a range{}",
            field.name,
            self.example_after(given, &step)
        );
        Some(quote! {
            #[doc = #doc]
            pub fn #method(
                self,
                __range: impl _rt_RangeInput<#ty, #last>,
            ) -> _rt_Range<#entity, #view> {
                self.#inner #between
            }
        })
    }

    /// Returns the method that restricts a text part to a prefix.
    fn prefix_method(
        &self,
        given: &GivenFlags,
        at: usize,
        part: &TemplatePart,
        field: &Field,
    ) -> Option<TokenStream> {
        let lower = match part.form {
            Form::Lower => true,
            Form::Plain | Form::Width(_) => false,
            Form::Descending | Form::Date(..) | Form::Bucket(_) | Form::Hmac => return None,
        };
        let (entity, view, ty) = (&self.entity.ident, self.view_of_many(), &field.ty);
        let inner = first_field();
        let method = names::generated_ident(&format!("{}_prefix", field.name), field.span);
        let step = format!("{}_prefix(\"a\")", field.name);
        let doc = format!(
            "Reads the rows whose `{}` begins with a text{}",
            field.name,
            self.example_after(given, &step)
        );
        Some(quote! {
            #[doc = #doc]
            pub fn #method(
                self,
                __prefix: impl _rt_PrefixInput<#ty>,
            ) -> _rt_Range<#entity, #view> {
                self.#inner.starting_with(#at, __prefix, #lower)
            }
        })
    }
}

/// Returns the builder state with the parts `fixed` also given.
fn with_parts(given: &GivenFlags, fixed: &[usize]) -> GivenFlags {
    given.iter().enumerate().map(|(at, given)| *given || fixed.contains(&at)).collect()
}
