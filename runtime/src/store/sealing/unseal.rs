//! Sealed rows made plain.

use super::{
    PlaintextPolicy, Vault,
    fetch::Keyring,
    index::IndexKeys,
    keyless,
    open::{Known, Reading, Sheet},
    plan::text_of,
};
use crate::{
    edm::{Value, ValueRef},
    entity::SEAL,
    error::{Error, Result, SealFault},
    key::{Family, FamilyKind},
    row::Row,
    seal::{ValueBinding, is_envelope, key_id_of, properties_of, seal_key_id_of},
};

impl Vault {
    /// Rows as programs see them, one by one: a row that does not open is an error of its own.
    ///
    /// Keys are asked for first, each once; then nothing waits any more.
    pub(crate) async fn open(
        &self,
        table: &str,
        rows: Vec<Row>,
        reading: Reading,
        select: Option<&[String]>,
    ) -> Vec<Result<Row>> {
        let has_tokens = reading.has_tokens();
        if self.keys.is_none() && !reading.has_sealed() && !has_tokens {
            return rows.into_iter().map(Ok).collect();
        }
        let sheets = reading.sheets();
        let mut keys = Keyring::default();
        let mut known = Vec::with_capacity(rows.len());
        for row in &rows {
            let what = reading.know(row).and_then(|what| {
                if !matches!(what, Known::Foreign) {
                    keys.note(self, row)?;
                }
                Ok(what)
            });
            known.push(what);
        }
        keys.fetch(self).await;
        let page = Page { vault: self, table, sheets: &sheets, keys: &keys, select };
        let mut index = IndexKeys::of(self);
        let mut opened = Vec::with_capacity(rows.len());
        for (row, known) in rows.into_iter().zip(known) {
            let (partition_key, row_key) =
                (row.partition_key().to_owned(), row.row_key().to_owned());
            let mut plain = known.and_then(|known| page.open(row, known).map(|row| (row, known)));
            if let (Ok((row, Known::Declared(at, Some(family)))), true) = (&plain, has_tokens)
                && let Some(sheet) = sheets.get(*at)
                && let Err(error) = index.check(sheet.schema, family, row).await
            {
                plain = Err(error);
            }
            opened.push(plain.map(|(row, _)| row).map_err(|e| e.at_keys(&partition_key, &row_key)));
        }
        opened
    }
}

/// What is declared of a row.
#[derive(Clone, Copy)]
struct Of<'p> {
    sheet: Option<&'p Sheet>,
    family: Option<&'static Family>,
}

/// What the rows of a page are opened with.
struct Page<'p> {
    vault: &'p Vault,
    table: &'p str,
    sheets: &'p [Sheet],
    keys: &'p Keyring,
    select: Option<&'p [String]>,
}

impl Page<'_> {
    fn open(&self, row: Row, known: Known) -> Result<Row> {
        let (sheet, family) = match known {
            Known::Foreign => return Ok(row),
            Known::Untyped => (None, None),
            Known::Declared(at, family) => (self.sheets.get(at), family),
        };
        // Without keys, a row that nothing is declared of is handed out as it is stored.
        if self.vault.keys.is_none() && !sheet.is_some_and(|sheet| sheet.schema.is_sealed()) {
            return Ok(row);
        }
        if let Some(sheet) = sheet {
            self.verify(sheet, family, &row)?;
            self.check_plain(sheet, family, &row)?;
        }
        self.unseal(row, Of { sheet, family })
    }

    fn place<'r>(&'r self, of: Of<'_>, row: &'r Row, property: &'r str) -> ValueBinding<'r> {
        ValueBinding {
            table: of.sheet.map_or(self.table, |sheet| sheet.schema.bound_table(of.family)),
            partition_key: row.partition_key(),
            row_key: row.row_key(),
            property,
        }
    }

    /// What vouches for the row is looked at before anything else is.
    fn verify(&self, sheet: &Sheet, family: Option<&'static Family>, row: &Row) -> Result<()> {
        if !sheet.schema.sealed {
            return Ok(());
        }
        let seal = match row.get(SEAL)? {
            Some(ValueRef::Binary(seal)) => seal,
            _ if self.vault.plaintext == PlaintextPolicy::Allow => return Ok(()),
            _ => {
                let message = "the entity is declared `seal`, and the row has no seal: another program wrote it, or somebody took the seal away";
                return Err(Error::seal(SealFault::NotEncrypted, message).in_property(SEAL));
            }
        };
        let Some(id) = seal_key_id_of(seal)? else {
            return Err(
                Error::seal(SealFault::Malformed, "the row's seal is none").in_property(SEAL)
            );
        };
        let key = self.keys.key(row.partition_key(), id)?;
        let of = Of { sheet: Some(sheet), family };
        key.verify_seal(&self.place(of, row, SEAL), &properties_of(row)?, seal)
    }

    /// A declared property is sealed, and one whose absence is hidden is there.
    fn check_plain(&self, sheet: &Sheet, family: Option<&'static Family>, row: &Row) -> Result<()> {
        if self.vault.plaintext == PlaintextPolicy::Allow {
            return Ok(());
        }
        for column in &sheet.columns {
            let name: &str = &column.name;
            match row.get(name)? {
                Some(ValueRef::Binary(bytes)) if is_envelope(bytes) => {}
                Some(_) => {
                    let message = "the property is declared `encrypt`, and the stored value is plain: another program wrote it, or somebody put it there; `PlaintextPolicy::Allow` reads plain values during a migration";
                    return Err(Error::seal(SealFault::NotEncrypted, message).in_property(name));
                }
                None if column.sealed.hide_none && self.is_asked(family, name) => {
                    let message = "the property is declared `encrypt(hide_none)`, and the row has none: an absent value is stored encrypted too, so that another program wrote the row or somebody took the value away";
                    return Err(Error::seal(SealFault::NotEncrypted, message).in_property(name));
                }
                None => {}
            }
        }
        self.check_chosen(sheet, family, row)
    }

    /// What the client chooses to encrypt is sealed too.
    fn check_chosen(
        &self,
        sheet: &Sheet,
        family: Option<&'static Family>,
        row: &Row,
    ) -> Result<()> {
        let Some(family) = family.filter(|family| family.kind != FamilyKind::List) else {
            return Ok(());
        };
        if self.vault.encrypt_if.is_none() {
            return Ok(());
        }
        let mut properties = row.properties();
        while let Some((name, value)) = properties.next()? {
            let name = text_of(name)?;
            let is_sealed = matches!(value, ValueRef::Binary(bytes) if is_envelope(bytes));
            if !is_sealed
                && !is_ours(name, Some(sheet))
                && self.vault.chooses_of(sheet.schema, family, row, name)
            {
                let message = "the client's `encrypt_if` chooses the property, and the stored value is plain: a client without it wrote the row, or somebody put the value there; `PlaintextPolicy::Allow` reads plain values during a migration";
                return Err(Error::seal(SealFault::NotEncrypted, message).in_property(name));
            }
        }
        Ok(())
    }

    /// Whether the row, as it was asked for, has to hold the property.
    fn is_asked(&self, family: Option<&'static Family>, name: &str) -> bool {
        let is_selected = self.select.is_none_or(|names| names.iter().any(|known| known == name));
        is_selected && !family.is_some_and(|family| family.leaves_out(name))
    }

    fn unseal(&self, row: Row, of: Of<'_>) -> Result<Row> {
        let sheet = of.sheet;
        if !needs_work(&row, sheet)? {
            return Ok(row);
        }
        let mut out = Row::build(row.partition_key(), row.row_key());
        let mut chosen: Vec<Box<str>> = Vec::new();
        let mut properties = row.properties();
        while let Some((name, value)) = properties.next()? {
            let name = text_of(name)?;
            match value {
                _ if is_ours(name, sheet) => {}
                ValueRef::Binary(bytes) if is_envelope(bytes) => {
                    if !sheet.is_some_and(|s| s.columns.iter().any(|column| column.name == name)) {
                        chosen.push(name.into());
                    }
                    if let Some(value) = self.decrypt(&row, of, name, bytes)? {
                        out.put(name, value.as_ref());
                    }
                }
                value => out.put(name, value),
            }
        }
        let plain = match row.timestamp() {
            Some(timestamp) => out.finish_at(timestamp)?,
            None => out.finish()?,
        };
        let plain = match row.etag() {
            Some(etag) => plain.with_etag(etag),
            None => plain,
        };
        Ok(plain.with_encrypted_names(chosen))
    }

    fn decrypt(&self, row: &Row, of: Of<'_>, name: &str, envelope: &[u8]) -> Result<Option<Value>> {
        if self.vault.keys.is_none() {
            return Err(keyless("the property is encrypted").in_property(name));
        }
        let key = match key_id_of(envelope).map_err(|error| error.in_property(name))? {
            Some(id) => self.keys.key(row.partition_key(), id),
            None => Err(keyless("the value is encrypted")),
        };
        let key = key.map_err(|error| error.in_property(name))?;
        key.decrypt(&self.place(of, row, name), envelope)
    }
}

/// Whether the row holds something that programs do not see as it is.
fn needs_work(row: &Row, sheet: Option<&Sheet>) -> Result<bool> {
    let mut properties = row.properties();
    while let Some((name, value)) = properties.next()? {
        let is_sealed = matches!(value, ValueRef::Binary(bytes) if is_envelope(bytes));
        if is_sealed || is_ours(text_of(name)?, sheet) {
            return Ok(true);
        }
    }
    Ok(false)
}

/// Whether the property is the framework's: a token, or what vouches for the row.
pub(crate) fn is_ours(name: &str, sheet: Option<&Sheet>) -> bool {
    sheet.is_some_and(|sheet| sheet.unseen.iter().any(|unseen| unseen == name))
}
