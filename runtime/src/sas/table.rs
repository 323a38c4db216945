//! Defines [`TableSas`], a signature for one table or some of its rows.

use std::borrow::Cow;

use entable_azure::sas::TableSas as KeysSas;
use time::OffsetDateTime;

use super::{SasToken, TablePermissions, UserDelegationKey};
use crate::{
    access::Keys,
    backend::azure::AccountKey,
    entity::{Path, TableEntity, UntypedPath, dated::check_home_table, home::table_of_path},
    error::{Error, ErrorKind, Result},
    key::RowFamily,
    plan::wide,
};

/// Describes a signature for one table: operations, times, addresses, keys.
///
/// ```
/// use entable::{AccountKey, sas::{TablePermissions, TableSas}};
/// use time::{Duration, OffsetDateTime};
///
/// let key = AccountKey::new("myaccount", "AAECAwQFBgcICQoLDA0ODxAREhMUFRYXGBkaGxwdHh8=")?;
/// let token = TableSas::new("Staff")
///     .permissions(TablePermissions::READ | TablePermissions::ADD)
///     .expires(OffsetDateTime::now_utc() + Duration::hours(1))
///     .keys_from("Sales", Some("empid_000100"))
///     .keys_to("Sales", Some("empid_000199"))
///     .sign(&key)?;
/// assert!(token.as_query().starts_with("sv=2019-02-02&tn=Staff&sp=ra&se="));
/// # Ok::<(), entable::Error>(())
/// ```
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct TableSas(KeysSas);

impl TableSas {
    /// Describes a signature for this table that permits nothing yet.
    pub fn new(table: impl Into<String>) -> Self {
        Self(KeysSas::new(table))
    }

    /// Describes a signature for the rows of `path` in the table that its entity or index declares.
    /// It permits nothing yet; [`path`](Self::path) says which rows are covered.
    ///
    /// # Errors
    ///
    /// Fails like [`path`](Self::path).
    pub fn for_path<P: Path>(path: P) -> Result<Self> {
        let access = path.access();
        refuse_missing_tokens(&access)?;
        let own = access.family.filter(|family| !family.has_dated_tables());
        let table = match own.and_then(|family| family.table) {
            Some(own) => Cow::Borrowed(own),
            // A signature is for one table: a window of dated tables has none.
            None => {
                let home = table_of_path(&access, P::Entity::SCHEMA)?;
                match access.family.filter(|family| family.has_dated_tables()) {
                    Some(family) => {
                        Cow::Owned(family.table_given_primary_table(&home).into_owned())
                    }
                    None => home,
                }
            }
        };
        Self::new(table).keys(&keys_of_path::<P>(&access)?)
    }

    /// Permits these operations.
    #[must_use]
    pub fn permissions(self, permissions: TablePermissions) -> Self {
        Self(self.0.permissions(permissions))
    }

    /// Refers to the stored access policy with this name. A start, an end or permissions that the
    /// policy sets must be left out here: the service refuses a signature that repeats them.
    #[must_use]
    pub fn policy(self, id: impl Into<String>) -> Self {
        Self(self.0.policy(id))
    }

    /// Limits the signature to the rows of a path: a point, a range or a partition. A scan permits
    /// the whole table.
    ///
    /// A signature limits keys, not types. It covers every row in its range, including rows of other entity types, and
    /// no row outside it. To write an entity with copies or lists, the range must contain their rows as well: pass the
    /// partition to [`keys`](Self::keys).
    ///
    /// The path of a [`wide`](crate::TableEntity) entity covers all of its parts. The path of one list covers only its
    /// first row, because lists with longer keys may sort between that row and the list's further rows. To permit
    /// reading a long list, sign for a prefix of its key or for its partition.
    ///
    /// If the path excludes its end, as a prefix does, the range ends directly below it. The range then misses only
    /// keys that continue with the noncharacter U+FFFF at that position.
    ///
    /// # Errors
    ///
    /// `is_invalid` if the PartitionKey is empty or the last row has an empty RowKey, since the service treats an empty
    /// end as no end. Also `is_invalid` if the path selects no key or another table, holds a value that does not fit
    /// its field, or has keys with the blind token of a secret value. Only a verb can compute that token: read the
    /// entity and pass the keys of its [`Stored`](crate::Stored) to [`keys`](Self::keys).
    ///
    /// ```
    /// use entable::{AccountKey, prelude::*, sas::{TablePermissions, TableSas}};
    /// use time::{Duration, OffsetDateTime};
    ///
    /// #[derive(TableEntity)]
    /// #[table(name = "Staff", partition_key = "{department}", row_key = "empid_{id:06}")]
    /// struct Employee {
    ///     department: String,
    ///     id: u32,
    /// }
    ///
    /// let sas = TableSas::for_path(Employee::primary().department("Sales").id_range(100..=199))?
    ///     .permissions(TablePermissions::READ)
    ///     .expires(OffsetDateTime::now_utc() + Duration::hours(1));
    /// let key = AccountKey::new("myaccount", "AAECAwQFBgcICQoLDA0ODxAREhMUFRYXGBkaGxwdHh8=")?;
    /// let token = sas.sign(&key)?;
    /// let range = "&spk=Sales&srk=empid_000100&epk=Sales&erk=empid_000199&";
    /// assert!(token.as_query().contains(range));
    /// # Ok::<(), Error>(())
    /// ```
    pub fn path<P: Path>(self, path: P) -> Result<Self> {
        let access = path.access();
        refuse_missing_tokens(&access)?;
        let dated = access.family.filter(|family| family.has_dated_tables());
        if access.window.is_some() {
            let mut home = table_of_path(&access, P::Entity::SCHEMA)?;
            if let Some(family) = dated {
                home = Cow::Owned(family.table_given_primary_table(&home).into_owned());
            }
            check_home_table(self.0.table(), &home)?;
        }
        match access.family.filter(|_| dated.is_none()).and_then(|family| family.table) {
            Some(other) if !other.eq_ignore_ascii_case(self.0.table()) => Err(Error::new(
                ErrorKind::Invalid,
                format!(
                    "the rows of the path are in the table `{other}`; sign for that table with \
                     `TableSas::for_path(path)`"
                ),
            )),
            _ => self.keys(&keys_of_path::<P>(&access)?),
        }
    }

    /// Limits the signature to the rows with these keys. A signature covers one range from a first
    /// to a last key: [`path`](Self::path) says which forms are allowed.
    ///
    /// # Errors
    ///
    /// Fails like [`path`](Self::path).
    pub fn keys(self, keys: &Keys) -> Result<Self> {
        self.0.keys(keys).map(Self)
    }

    /// Excludes rows before this one, in the order of (PartitionKey, RowKey). Without a RowKey, the
    /// range starts at the partition's first row.
    #[must_use]
    pub fn keys_from(self, partition_key: &str, row_key: Option<&str>) -> Self {
        Self(self.0.keys_from(partition_key, row_key))
    }

    /// Excludes rows after this one, which is itself included. Without a RowKey, the range ends at
    /// the partition's last row.
    #[must_use]
    pub fn keys_to(self, partition_key: &str, row_key: Option<&str>) -> Self {
        Self(self.0.keys_to(partition_key, row_key))
    }

    /// Sets when the signature becomes valid. Without it, it is valid at once. Clocks
    /// differ, so leave it out or set it some minutes early.
    #[must_use]
    pub fn starts(self, time: OffsetDateTime) -> Self {
        Self(self.0.starts(time))
    }

    /// Sets when the signature ends. A fraction of a second is cut off.
    #[must_use]
    pub fn expires(self, time: OffsetDateTime) -> Self {
        Self(self.0.expires(time))
    }

    /// Permits requests only from this IPv4 address or range, such as
    /// `168.1.5.60-168.1.5.70`.
    #[must_use]
    pub fn ip(self, addresses: impl Into<String>) -> Self {
        Self(self.0.ip(addresses))
    }

    /// Permits requests over http too, as an emulator needs it. Whoever sees such a request can use
    /// the signature. A signature permits https only unless this method is called.
    #[must_use]
    pub fn allow_http(self) -> Self {
        Self(self.0.allow_http())
    }

    /// Permits requests over https only, which is the default.
    #[must_use]
    pub fn https_only(self) -> Self {
        Self(self.0.https_only())
    }

    /// Makes the signature with an account's key. No request is sent.
    ///
    /// # Errors
    ///
    /// `is_invalid` if the service would refuse the table's name, a key or an address, if the end
    /// is before the start, and if a signature without a policy permits nothing or has no end.
    pub fn sign(&self, key: &AccountKey) -> Result<SasToken> {
        self.0.sign(key)
    }

    /// Makes the signature with a key of an identity, a [`UserDelegationKey`]. No request is sent.
    ///
    /// ```no_run
    /// # async fn example(client: entable::Client) -> entable::Result<()> {
    /// use entable::sas::{TablePermissions, TableSas};
    /// use time::{Duration, OffsetDateTime};
    ///
    /// // The client of an identity, `AzureOptions::from_token_credential(..)`.
    /// let now = OffsetDateTime::now_utc();
    /// let key = client.user_delegation_key(now - Duration::minutes(5)..now + Duration::DAY).await?;
    /// let sas = TableSas::new("Staff").permissions(TablePermissions::READ);
    /// let url = sas.expires(key.expires()).sign_delegated(&key)?.to_url(&client.table_url("Staff")?);
    /// assert!(url.contains("&skoid="));
    /// # Ok(()) }
    /// ```
    ///
    /// # Errors
    ///
    /// Fails like [`sign`](Self::sign), and with `is_invalid` for a stored access policy, which only
    /// signatures with the account's key can name, and for a signature that is valid before or after the
    /// key.
    pub fn sign_delegated(&self, key: &UserDelegationKey) -> Result<SasToken> {
        self.0.sign_delegated(key)
    }
}

/// Fails with `is_invalid` for a path whose keys lack a blind token. The token needs the blind token key,
/// and a signature is made without a request.
fn refuse_missing_tokens(access: &UntypedPath) -> Result<()> {
    if !access.needs_key_tokens() {
        return Ok(());
    }
    Err(Error::new(
        ErrorKind::Invalid,
        "the path's keys contain the blind token of a secret value, which only a verb can make; read the entity and \
         sign for the keys of its row, `TableSas::new(table).keys(&Keys::point(stored.partition_key(), \
         stored.row_key()))`, or sign for its partition if the PartitionKey contains no token",
    ))
}

/// Returns the keys of the rows that a read of the path asks for: all parts of each wide entity.
fn keys_of_path<P: Path>(access: &UntypedPath) -> Result<Keys> {
    let (schema, keys) = (P::Entity::SCHEMA, access.checked_keys()?);
    // A copy is always one row, even if the entity is wide.
    if schema.is_wide() && access.family.is_none_or(RowFamily::is_primary) {
        Ok(wide::bounds_with_all_parts(schema, keys))
    } else {
        Ok(keys.clone())
    }
}
