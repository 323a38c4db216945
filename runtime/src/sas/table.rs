//! Leave to use one table.

use time::OffsetDateTime;

use super::{
    SasToken, letters,
    token::{Terms, VERSION, invalid, query, ticks},
};
use crate::{backend::azure::AccountKey, error::Result, limits};

letters! {
    /// What a signature allows in a table. An upsert needs both `ADD` and `UPDATE`.
    TablePermissions;
    /// Read and query rows.
    READ = 1 'r';
    /// Insert rows.
    ADD = 2 'a';
    /// Replace and merge rows.
    UPDATE = 4 'u';
    /// Delete rows.
    DELETE = 8 'd';
}

/// Leave to use one table: which operations, when, from where, and which keys.
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
pub struct TableSas {
    table: String,
    permissions: TablePermissions,
    terms: Terms,
    policy: String,
    from: Option<(String, Option<String>)>,
    to: Option<(String, Option<String>)>,
}

impl TableSas {
    /// Leave to use that table, for nothing yet.
    pub fn new(table: impl Into<String>) -> Self {
        Self {
            table: table.into(),
            permissions: TablePermissions::NONE,
            terms: Terms::default(),
            policy: String::new(),
            from: None,
            to: None,
        }
    }

    /// Allows these operations.
    #[must_use]
    pub fn permissions(mut self, permissions: TablePermissions) -> Self {
        self.permissions = permissions;
        self
    }

    /// From that time on; left out: at once. Clocks differ: begin some minutes early or leave it
    /// out.
    #[must_use]
    pub fn starts(mut self, time: OffsetDateTime) -> Self {
        self.terms.starts = ticks(time);
        self
    }

    /// Until that time, in whole seconds.
    #[must_use]
    pub fn expires(mut self, time: OffsetDateTime) -> Self {
        self.terms.expires = ticks(time);
        self
    }

    /// From that IPv4 address or range, `168.1.5.60-168.1.5.70`, alone.
    #[must_use]
    pub fn ip(mut self, addresses: impl Into<String>) -> Self {
        self.terms.ip = addresses.into();
        self
    }

    /// Over https alone.
    #[must_use]
    pub fn https_only(mut self) -> Self {
        self.terms.protocol = "https";
        self
    }

    /// By the stored access policy of that name: what the policy says must not be said here again.
    #[must_use]
    pub fn policy(mut self, id: impl Into<String>) -> Self {
        self.policy = id.into();
        self
    }

    /// For no rows before this one, in the order of (PartitionKey, RowKey). Without a RowKey: from the
    /// partition's first row on.
    #[must_use]
    pub fn keys_from(mut self, partition_key: &str, row_key: Option<&str>) -> Self {
        self.from = Some((partition_key.to_owned(), row_key.map(str::to_owned)));
        self
    }

    /// For no rows after this one, which is allowed itself. Without a RowKey: up to the partition's
    /// last row.
    #[must_use]
    pub fn keys_to(mut self, partition_key: &str, row_key: Option<&str>) -> Self {
        self.to = Some((partition_key.to_owned(), row_key.map(str::to_owned)));
        self
    }

    /// The signature, made with an account's key. Nothing is sent.
    ///
    /// # Errors
    ///
    /// `is_invalid` for a table name, key or address that the service would refuse, an end before
    /// the beginning, and for a signature without a policy that allows nothing or has no end.
    pub fn sign(&self, key: &AccountKey) -> Result<SasToken> {
        self.check()?;
        let terms = &self.terms;
        let (starts, expires) = (terms.starts(), terms.expires());
        let permissions = self.permissions.letters();
        let resource = format!("/table/{}/{}", key.account(), self.table.to_ascii_lowercase());
        let (spk, srk) = bound(self.from.as_ref());
        let (epk, erk) = bound(self.to.as_ref());
        let text = [
            &permissions,
            &starts,
            &expires,
            &*resource,
            &self.policy,
            &terms.ip,
            terms.protocol,
            VERSION,
            spk,
            srk,
            epk,
            erk,
        ]
        .join("\n");
        let query = query(&[
            ("sv", VERSION),
            ("tn", &self.table),
            ("sp", &permissions),
            ("st", &starts),
            ("se", &expires),
            ("sip", &terms.ip),
            ("spr", terms.protocol),
            ("si", &self.policy),
            ("spk", spk),
            ("srk", srk),
            ("epk", epk),
            ("erk", erk),
            ("sig", &key.sign(&text)),
        ]);
        Ok(SasToken::new(query, terms.expires))
    }

    /// The same with other times, for a cache.
    pub(super) fn between(&self, starts: OffsetDateTime, expires: OffsetDateTime) -> Self {
        self.clone().starts(starts).expires(expires)
    }

    fn check(&self) -> Result<()> {
        limits::check_table_name(&self.table)?;
        self.terms.check()?;
        for (partition_key, row_key) in self.from.iter().chain(&self.to) {
            limits::check_key("PartitionKey", partition_key)?;
            limits::check_key("RowKey", row_key.as_deref().unwrap_or_default())?;
            if partition_key.is_empty() {
                return Err(invalid("a key range cannot begin or end at the empty PartitionKey"));
            }
        }
        if self.policy.is_empty() && self.permissions == TablePermissions::NONE {
            return Err(invalid(
                "the signature allows nothing; give permissions or a stored policy",
            ));
        }
        if self.policy.is_empty() && self.terms.expires.is_none() {
            return Err(invalid("the signature has no end; give one or a stored policy"));
        }
        Ok(())
    }
}

fn bound(bound: Option<&(String, Option<String>)>) -> (&str, &str) {
    bound.map_or(("", ""), |(partition_key, row_key)| {
        (partition_key, row_key.as_deref().unwrap_or_default())
    })
}

#[cfg(test)]
mod tests {
    use time::macros::datetime;

    use super::*;

    fn key() -> AccountKey {
        let key = "AAECAwQFBgcICQoLDA0ODxAREhMUFRYXGBkaGxwdHh8gISIjJCUmJygpKissLS4vMDEyMzQ1Njc4OTo7PD0+Pw==";
        AccountKey::new("myaccount", key).unwrap()
    }

    fn signature(sas: &TableSas) -> String {
        let token = sas.sign(&key()).unwrap();
        let (_, signature) = token.as_query().rsplit_once("&sig=").unwrap();
        signature.replace("%2F", "/").replace("%2B", "+").replace("%3D", "=")
    }

    #[test]
    fn signatures_are_those_of_the_vectors() {
        let all = TableSas::new("MyTable")
            .permissions(TablePermissions::ALL)
            .starts(datetime!(2024-01-01 0:00 UTC))
            .expires(datetime!(2030-01-01 0:00 UTC));
        assert_eq!(signature(&all), "/3Hb/R7XRx9Oyvm0ptuagq4MFLrmJZiuWPnyJ1GMJSU=");
        let range = TableSas::new("mytable")
            .permissions(TablePermissions::READ)
            .expires(datetime!(2030-01-01 0:00 UTC))
            .ip("168.1.5.60-168.1.5.70")
            .https_only()
            .keys_from("a", Some("1"))
            .keys_to("b", Some("9"));
        assert_eq!(signature(&range), "9sIKYanudBj5VTrdXWrwqK7nHrJw963x7DyEwmSG5Xo=");
        let policy = TableSas::new("mytable").policy("pol1");
        assert_eq!(signature(&policy), "jVL8yGiUxYgm0nQqYYbAvJHmViklFd7M9bAT0UNWh3k=");
    }

    #[test]
    fn what_the_service_would_refuse_is_not_signed() {
        let good = TableSas::new("Staff")
            .permissions(TablePermissions::READ)
            .expires(datetime!(2030-01-01 0:00 UTC));
        assert!(good.sign(&key()).is_ok());
        for wrong in [
            TableSas::new("no-table").policy("p"),
            TableSas::new("Staff"),
            TableSas::new("Staff").permissions(TablePermissions::READ),
            good.clone().starts(datetime!(2031-01-01 0:00 UTC)),
            good.clone().ip("here"),
            good.clone().keys_from("a/b", None),
            good.clone().keys_to("", None),
        ] {
            assert!(wrong.sign(&key()).unwrap_err().is_invalid(), "{wrong:?}");
        }
    }

    #[test]
    fn values_are_percent_encoded_and_never_printed() {
        let token = TableSas::new("Staff")
            .permissions(TablePermissions::READ)
            .expires(datetime!(2030-01-01 0:00:00.5 UTC))
            .keys_from("o'b é", None)
            .sign(&key())
            .unwrap();
        assert!(token.as_query().contains("&se=2030-01-01T00%3A00%3A00Z&spk=o%27b%20%C3%A9&sig="));
        assert!(!format!("{token:?}").contains("sig"));
    }
}
