//! Defines facts. A fact is one copy or list entry that is stored, or that a primary derives.
//!
//! A derived copy and an equal stored copy are two facts with one hash. A check keeps the hashes of facts
//! whose counterpart it has not yet read.

use std::{
    collections::{HashMap, HashSet},
    hash::{BuildHasher, BuildHasherDefault, Hasher, RandomState},
};

use crate::{
    address::{Names, TableName},
    entity::{
        CopyAndPrimaryFamily, CopyRow, RowKind, RowVersion, Schema, TableEntity, head_row_key,
    },
    error::Result,
    key::RowFamily,
    maintain::rows::derive_rows_of_primary,
    plan::{
        IdForm, TokenMaker,
        outbox::{
            CopyAddress, ListMembership, OWNER_TABLE, copy_with_owner, is_version_property,
            list_entry_keys, may_be_from_table, names_table, owner_of_copy,
        },
        read_ids_of_row, read_row_keys,
    },
    row::{Row, error_with_row_keys},
    table::Table,
};

/// The keys of a row, either as borrowed strings, or as a borrowed row whose keys are decoded on demand.
#[derive(Debug, Clone, Copy)]
pub(crate) enum RowOrKeyTexts<'r> {
    OfRow(&'r Row),
    /// PartitionKey and RowKey.
    Texts(&'r str, &'r str),
}

impl<'r> RowOrKeyTexts<'r> {
    /// Returns the PartitionKey and RowKey. Decodes them if the value is a row.
    pub(crate) fn partition_and_row_key(self) -> (&'r str, &'r str) {
        match self {
            Self::OfRow(row) => row.keys(),
            Self::Texts(partition_key, row_key) => (partition_key, row_key),
        }
    }
}

/// A copy or list entry that is stored, or that a primary derives.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Fact<'r> {
    /// The index or list that the fact belongs to.
    pub(crate) family: &'static RowFamily,
    /// The keys of the copy, or of the list's head row.
    pub(crate) keys: RowOrKeyTexts<'r>,
    /// The keys of the primary, or `None` if the row does not contain them, as with stored local copies.
    pub(crate) primary: Option<RowOrKeyTexts<'r>>,
    /// Whether the copy or entry is stored. `false` if a primary derives it.
    pub(crate) is_found: bool,
    /// The row that was read: the copy, a row of the list, or the primary.
    pub(crate) row: &'r Row,
    /// The common hash of a stored copy or entry and the one that its primary derives.
    pub(crate) hash: u64,
}

impl<'r> Fact<'r> {
    /// Creates a fact for a copy or list entry that `primary` derives.
    fn from_primary(
        primary: &'r Row,
        family: &'static RowFamily,
        keys: RowOrKeyTexts<'r>,
        hash: u64,
    ) -> Self {
        let by = Some(RowOrKeyTexts::OfRow(primary));
        Self { family, keys, primary: by, is_found: false, row: primary, hash }
    }

    /// Returns the RowKey of the list entry's primary, or `None` for a copy.
    pub(crate) fn entry_id(&self) -> Option<&str> {
        self.primary.filter(|_| self.family.is_list()).map(|keys| keys.partition_and_row_key().1)
    }

    /// Returns the address of the remote copy or list. `primary_table` is the table of its primaries.
    pub(crate) fn remote_address(
        &self,
        schema: &Schema,
        primary_table: TableName<'_>,
    ) -> CopyAddress {
        match self.keys {
            RowOrKeyTexts::OfRow(copy) => {
                CopyAddress::for_copy_in_family(primary_table, self.family, copy)
            }
            // Only keys of lists are strings.
            RowOrKeyTexts::Texts(partition_key, row_key) => {
                let keys = (partition_key, row_key);
                CopyAddress::for_list_at(schema, primary_table, self.family, keys)
            }
        }
    }
}

/// Returns the row families of a remote copy and of its primary, or `None` if no version declares the copy.
pub(crate) fn copy_family_with_primary<E: TableEntity>(
    copy: &'static RowFamily,
) -> Option<CopyAndPrimaryFamily> {
    Some(CopyAndPrimaryFamily {
        copy,
        primary: E::SCHEMA.primary_family_of_copy(copy)?,
        schema: E::SCHEMA,
    })
}

/// Returns the remote copies and lists of one version of an entity. Omits lists in blobs, because no request
/// lists the existing blobs.
fn remote_families(schema: &'static Schema) -> impl Iterator<Item = &'static RowFamily> {
    let families: &'static [RowFamily] = schema.families;
    families.iter().filter(|family| family.is_remote && !family.in_blob)
}

/// Returns whether any version of the entity has remote copies or lists that a check can compare.
pub(crate) fn has_checkable_remote_families(schema: &'static Schema) -> bool {
    schema.versions().any(|schema| remote_families(schema).next().is_some())
}

/// Returns the tables with rows of the entity, starting with its own table.
pub(crate) fn tables_of<E: TableEntity>(table: &Table<E>) -> Vec<String> {
    let names = table.client.store().names();
    let mut all = vec![table.name.to_string()];
    for schema in E::SCHEMA.versions() {
        for family in remote_families(schema).filter(|family| family.table.is_some()) {
            let name = family.table_given_primary_table(&table.name);
            if !all.iter().any(|known| names.is_same_table(known, &name)) {
                all.push(name.into_owned());
            }
        }
    }
    all
}

/// Reads the facts in the rows of one entity's tables. A fact is one copy or list entry that is stored, or that a
/// primary derives.
pub(crate) struct CopyFactReader<'t, E> {
    pub(crate) table: &'t Table<E>,
    hashing: FactHasher,
}

impl<E> Clone for CopyFactReader<'_, E> {
    fn clone(&self) -> Self {
        *self
    }
}

impl<E> Copy for CopyFactReader<'_, E> {}

impl<'t, E: TableEntity> CopyFactReader<'t, E> {
    /// Creates a reader of facts. It hashes facts with its own random keys, and its hashes cannot be compared with
    /// another reader's.
    pub(crate) fn new(table: &'t Table<E>) -> Self {
        Self { table, hashing: FactHasher::new(table.client.store().names()) }
    }

    /// Calls `each` for every fact in a row of `at_table`. For a primary of an older version, these are the copies
    /// and entries that this version declares. Returns whether the row is a primary.
    pub(crate) fn read_facts_of_row(
        &self,
        at_table: &str,
        row: &Row,
        tokens: &TokenMaker,
        each: &mut impl FnMut(&Fact<'_>),
    ) -> Result<bool> {
        self.read_row(at_table, row, tokens, each)
            .map_err(|error| error_with_row_keys(row, error).in_table(at_table))
    }

    fn read_row(
        &self,
        at_table: &str,
        row: &Row,
        tokens: &TokenMaker,
        each: &mut impl FnMut(&Fact<'_>),
    ) -> Result<bool> {
        match E::SCHEMA
            .row_kind_among_families(row, |family| self.is_family_compared_in(family, at_table))?
        {
            RowKind::Primary(RowVersion::Known(_)) => {
                self.read_primary(row, tokens, each)?;
                return Ok(true);
            }
            RowKind::Copy(family, RowVersion::Known(_)) if family.is_remote => {
                self.read_remote_copy(at_table, row, family, each)?;
            }
            RowKind::Copy(family, RowVersion::Known(_)) => each(&Fact {
                family,
                keys: RowOrKeyTexts::OfRow(row),
                primary: None,
                is_found: true,
                row,
                hash: self.hashing.hash_local_copy(row)?,
            }),
            RowKind::List(family) if family.is_remote => {
                self.read_remote_entries(row, family, each)?;
            }
            RowKind::List(family) => self.read_local_entries(row, family, each)?,
            // This program does not know which rows an unknown version writes.
            RowKind::Part(_)
            | RowKind::Primary(RowVersion::Unknown(_))
            | RowKind::Copy(_, RowVersion::Unknown(_))
            | RowKind::UnknownCopy(_)
            | RowKind::Framework
            | RowKind::Foreign(_)
            | RowKind::Unmarked => {}
        }
        Ok(false)
    }

    /// Returns whether a check compares rows of this family in this table.
    fn is_family_compared_in(&self, family: &RowFamily, at_table: &str) -> bool {
        let names = self.hashing.names;
        match family.table {
            Some(_) if family.is_remote => {
                names.is_same_table(&family.table_given_primary_table(&self.table.name), at_table)
            }
            _ => names.is_same_table(&self.table.name, at_table) && !family.in_blob,
        }
    }

    /// Calls `each` for every copy and list entry that a primary derives.
    fn read_primary(
        &self,
        primary: &Row,
        tokens: &TokenMaker,
        each: &mut impl FnMut(&Fact<'_>),
    ) -> Result<()> {
        // Use the version that wrote the primary, because it also wrote its copies.
        let Some(rows) = derive_rows_of_primary::<E>(primary, tokens)? else { return Ok(()) };
        let (partition_key, row_key) = primary.keys();
        for CopyRow { family, row } in &rows.local_copies {
            let hash = self.hashing.hash_local_copy(row)?;
            each(&Fact::from_primary(primary, family, RowOrKeyTexts::OfRow(row), hash));
        }
        for entry in &rows.local_list_entries {
            let keys = RowOrKeyTexts::Texts(partition_key, &entry.row_key);
            let hash = self.hashing.hash_local_entry(&entry.row_key, &entry.id, 0);
            each(&Fact::from_primary(primary, entry.family, keys, hash));
        }
        let owner = self.table.row_at(partition_key, row_key);
        for CopyRow { family, row } in &rows.remote_copies {
            let Some(kinds) = copy_family_with_primary::<E>(family) else { continue };
            let row = copy_with_owner(row, kinds, owner, None)?;
            let hash =
                self.hashing.hash_remote_copy(&self.table.name, &self.table.name, family, &row)?;
            each(&Fact::from_primary(primary, family, RowOrKeyTexts::OfRow(&row), hash));
        }
        for list in rows.remote_lists.iter().filter(|list| !list.family.in_blob) {
            let ListMembership { address, entry, .. } =
                ListMembership::new(E::SCHEMA, owner, list, true);
            let keys = RowOrKeyTexts::Texts(&address.row.partition_key, &address.row.row_key);
            let hash = self.hashing.hash_remote_entry(&address, &entry, 0);
            each(&Fact::from_primary(primary, list.family, keys, hash));
        }
        Ok(())
    }

    /// Calls `each` for a stored remote copy, unless its primary is in another table.
    fn read_remote_copy(
        &self,
        at_table: &str,
        row: &Row,
        family: &'static RowFamily,
        each: &mut impl FnMut(&Fact<'_>),
    ) -> Result<()> {
        let Some(kinds) = copy_family_with_primary::<E>(family) else { return Ok(()) };
        if !may_be_from_table(row, family, self.table.table_name())? {
            return Ok(());
        }
        let owner = owner_of_copy(row, kinds, self.table.table_name())?;
        each(&Fact {
            family,
            keys: RowOrKeyTexts::OfRow(row),
            primary: owner.as_ref().map(|to| RowOrKeyTexts::Texts(&to.partition_key, &to.row_key)),
            is_found: true,
            row,
            hash: self.hashing.hash_remote_copy(at_table, &self.table.name, family, row)?,
        });
        Ok(())
    }

    /// Calls `each` for the entries in one row of a local list.
    fn read_local_entries(
        &self,
        row: &Row,
        family: &'static RowFamily,
        each: &mut impl FnMut(&Fact<'_>),
    ) -> Result<()> {
        let (partition_key, head) = (row.partition_key(), head_row_key(row.row_key()));
        let ids = empty_if_damaged(read_row_keys(row))?;
        // An id that occurs twice in a list row must not cancel itself out.
        let mut seen: HashMap<&str, u64> = HashMap::new();
        for id in &ids {
            let repeats = seen.entry(id).or_default();
            each(&Fact {
                family,
                keys: RowOrKeyTexts::Texts(partition_key, head),
                primary: Some(RowOrKeyTexts::Texts(partition_key, id)),
                is_found: true,
                row,
                hash: self.hashing.hash_local_entry(head, id, *repeats),
            });
            *repeats += 1;
        }
        Ok(())
    }

    /// Calls `each` for the entries in a row of a remote list whose primaries are in this table.
    fn read_remote_entries(
        &self,
        row: &Row,
        family: &'static RowFamily,
        each: &mut impl FnMut(&Fact<'_>),
    ) -> Result<()> {
        let (keys, table) =
            ((row.partition_key(), head_row_key(row.row_key())), self.table.table_name());
        let address = CopyAddress::for_list_at(E::SCHEMA, table, family, keys);
        let mut seen: HashMap<String, u64> = HashMap::new();
        for entry in empty_if_damaged(read_ids_of_row(row, IdForm::KeyArrays))? {
            let primary = list_entry_keys(&entry, table, E::SCHEMA, family);
            // Several types and tables may share a list.
            let Some((partition_key, row_key)) = primary else { continue };
            let repeats = seen.entry(entry.clone()).or_default();
            each(&Fact {
                family,
                keys: RowOrKeyTexts::Texts(keys.0, keys.1),
                primary: Some(RowOrKeyTexts::Texts(&partition_key, &row_key)),
                is_found: true,
                row,
                hash: self.hashing.hash_remote_entry(&address, &entry, *repeats),
            });
            *repeats += 1;
        }
        Ok(())
    }
}

/// Replaces the error of a damaged list by an empty value, which lets the check continue. The check then
/// reports the entries that primaries derive as `Missing`.
pub(crate) fn empty_if_damaged<T: Default>(list: Result<T>) -> Result<T> {
    match list {
        Err(error) if error.is_decode() => Ok(T::default()),
        list => list,
    }
}

/// Hashes of facts whose counterpart has not been read.
pub(crate) type Hashes = HashSet<u64, BuildHasherDefault<IdentityHasher>>;

/// A hasher that returns the given hash.
#[derive(Debug, Default, Clone, Copy)]
pub(crate) struct IdentityHasher(u64);

impl Hasher for IdentityHasher {
    fn finish(&self) -> u64 {
        self.0
    }

    fn write(&mut self, bytes: &[u8]) {
        for byte in bytes {
            self.0 = self.0.rotate_left(8) ^ u64::from(*byte);
        }
    }

    fn write_u64(&mut self, hash: u64) {
        self.0 = hash;
    }
}

/// Distinguishes the hashes of remote copies from the hashes of remote entries.
const REMOTE_COPY: u64 = 3;
const REMOTE_ENTRY: u64 = 4;

/// The lowest of the bits that number the repetitions of an entry in its list.
const REPEATS_BIT: u32 = 32;

/// Hashes facts with a random seed. Rows with equal properties have equal hashes, whatever the order of the
/// properties. The low 16 bits of a hash depend only on the keys of the copy or list.
#[derive(Debug, Clone, Copy)]
struct FactHasher {
    seed: u64,
    names: Names,
}

impl FactHasher {
    fn new(names: Names) -> Self {
        // Each check has its own seed, so nobody can choose values whose hashes collide.
        Self { seed: RandomState::new().hash_one(0), names }
    }

    /// Returns the hash of a copy in its primary's partition.
    fn hash_local_copy(self, copy: &Row) -> Result<u64> {
        let (_, row_key) = copy.key_bytes().unwrap_or_default();
        self.hash_copy(self.hash_bytes(row_key, 0), copy, |_| true)
    }

    /// Returns the hash of a remote copy of a primary in `owner_table`. Ignores the primary's ETag and the name of
    /// the primary's table, which may be spelled in several ways.
    fn hash_remote_copy(
        self,
        at_table: &str,
        owner_table: &str,
        family: &RowFamily,
        copy: &Row,
    ) -> Result<u64> {
        let table = family.table_given_primary_table(at_table);
        let table = self.names.name(&table).form();
        let is_of_owner = names_table(copy, Some(self.names.name(owner_table)))?;
        let (partition_key, row_key) = copy.key_bytes().unwrap_or_default();
        let keys = self.hash_bytes(row_key, self.hash_text(&table, REMOTE_COPY));
        self.hash_copy(self.hash_bytes(partition_key, keys), copy, |name| {
            // The copy's `Src` changes with each write of the primary, even if the copy's content does not.
            !is_version_property(name) && (!is_of_owner || name != OWNER_TABLE.as_bytes())
        })
    }

    /// Returns the hash of the keys and of the properties for which `is_compared` returns `true`.
    fn hash_copy(self, keys: u64, copy: &Row, is_compared: impl Fn(&[u8]) -> bool) -> Result<u64> {
        let mut all = keys;
        let mut properties = copy.properties();
        while let Some((name, edm, value)) = properties.next_undecoded()? {
            if is_compared(name) {
                // Include the type: an Int32 and an Int64 of equal value differ.
                let name = Mixer(self.seed ^ u64::from(edm as u8)).fold_bytes(name);
                // A sum is independent of the order in which the service returns properties.
                all = all.wrapping_add(name.fold_bytes(value).finish());
            }
        }
        Ok(combine_hashes(keys, all))
    }

    /// Returns the hash of an entry in a local list. `repeats` is the number of equal entries before it in
    /// the list.
    fn hash_local_entry(self, head: &str, id: &str, repeats: u64) -> u64 {
        self.hash_entry(self.hash_text(head, 1), id, repeats)
    }

    /// Returns the hash of an entry in a remote list. `entry` is the stored text. `repeats` is the number of
    /// equal entries before it in the list.
    fn hash_remote_entry(self, list: &CopyAddress, entry: &str, repeats: u64) -> u64 {
        let table = self.hash_text(&list.as_row_at().table.form(), REMOTE_ENTRY);
        self.hash_entry(
            self.hash_text(&list.row.row_key, self.hash_text(&list.row.partition_key, table)),
            entry,
            repeats,
        )
    }

    fn hash_entry(self, list: u64, entry: &str, repeats: u64) -> u64 {
        // A repeated entry has a hash of its own and no counterpart.
        combine_hashes(list, self.hash_text(entry, list)) ^ (repeats << REPEATS_BIT)
    }

    fn hash_text(self, text: &str, salt: u64) -> u64 {
        self.hash_bytes(text.as_bytes(), salt)
    }

    fn hash_bytes(self, bytes: &[u8], salt: u64) -> u64 {
        Mixer(self.seed ^ salt).fold_bytes(bytes).finish()
    }
}

/// Combines two hashes: the low 16 bits of `keys` below the bits of `rest`. Facts with equal keys have equal
/// low bits.
const fn combine_hashes(keys: u64, rest: u64) -> u64 {
    keys & 0xffff | rest << 16
}

/// Mixes words by multiplication, as fast hash tables do.
#[derive(Clone, Copy)]
struct Mixer(u64);

impl Mixer {
    fn fold_word(self, word: u64) -> Self {
        let product = u128::from(self.0 ^ word) * 0x9e37_79b9_7f4a_7c15;
        Self((product >> 64) as u64 ^ product as u64)
    }

    fn fold_bytes(self, bytes: &[u8]) -> Self {
        let (words, rest) = bytes.as_chunks::<8>();
        let mixed =
            words.iter().fold(self, |mixer, word| mixer.fold_word(u64::from_le_bytes(*word)));
        let tail = rest.iter().fold(0, |tail, byte| tail << 8 | u64::from(*byte));
        mixed.fold_word(tail).fold_word(bytes.len() as u64)
    }

    fn finish(self) -> u64 {
        self.fold_word(0x2545_f491_4f6c_dd1d).0
    }
}
