//! Defines [`TableSas`], a signature for one table or some of its rows.

use std::ops::Range;

use entable_core::{access::Keys, error::Result, limits};

use super::{
    SasToken,
    bounds::{self, RangeEnd},
    letters::letters,
    terms::{SasTerms, terms},
    token::{DELEGATED_VERSION, VERSION, invalid_signature_terms_error, query_string_of_members},
};
use crate::{
    account_key::AccountKey,
    delegation_key::UserDelegationKey,
    wire::{member_of, table_text_to_sign},
};

letters! {
    /// The operations that a signature permits in a table. Insert-or-replace and insert-or-merge
    /// need both `ADD` and `UPDATE`.
    TablePermissions;
    /// Reads and queries rows.
    READ = 1 'r';
    /// Inserts rows.
    ADD = 2 'a';
    /// Replaces and merges rows.
    UPDATE = 4 'u';
    /// Deletes rows.
    DELETE = 8 'd';
}

/// Describes a signature for one table: operations, times, addresses, keys. `entable::sas::TableSas` takes the paths of
/// entities too.
///
/// ```
/// use entable_azure::{AccountKey, sas::{TablePermissions, TableSas}};
/// use entable_core::Keys;
/// use time::{Duration, OffsetDateTime};
///
/// let key = AccountKey::new("myaccount", "AAECAwQFBgcICQoLDA0ODxAREhMUFRYXGBkaGxwdHh8=")?;
/// let token = TableSas::new("Staff")
///     .permissions(TablePermissions::READ | TablePermissions::ADD)
///     .expires(OffsetDateTime::now_utc() + Duration::hours(1))
///     .keys(&Keys::partition("Sales").rows("empid_000100"..="empid_000199"))?
///     .sign(&key)?;
/// assert!(token.as_query().starts_with("sv=2019-02-02&tn=Staff&sp=ra&se="));
/// # Ok::<(), entable_core::Error>(())
/// ```
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct TableSas {
    table: String,
    permissions: TablePermissions,
    terms: SasTerms,
    policy: String,
    from: Option<RangeEnd>,
    to: Option<RangeEnd>,
}

terms!(TableSas);

impl TableSas {
    /// Describes a signature for this table that permits nothing yet.
    pub fn new(table: impl Into<String>) -> Self {
        Self {
            table: table.into(),
            permissions: TablePermissions::NONE,
            terms: SasTerms::default(),
            policy: String::new(),
            from: None,
            to: None,
        }
    }

    /// Returns the name of the table.
    pub fn table(&self) -> &str {
        &self.table
    }

    /// Permits these operations.
    #[must_use]
    pub fn permissions(mut self, permissions: TablePermissions) -> Self {
        self.permissions = permissions;
        self
    }

    /// Refers to the stored access policy with this name. A start, an end or permissions that the
    /// policy sets must be left out here: the service refuses a signature that repeats them.
    #[must_use]
    pub fn policy(mut self, id: impl Into<String>) -> Self {
        self.policy = id.into();
        self
    }

    /// Limits the signature to the rows with these keys. A signature covers one range from a first to a last key.
    ///
    /// If the range excludes its end, it ends directly below it. It then misses only keys that continue with the
    /// noncharacter U+FFFF at that position.
    ///
    /// # Errors
    ///
    /// `is_invalid` if the PartitionKey is empty or the last row has an empty RowKey, since the service treats an empty
    /// end as no end. Also `is_invalid` for keys that select no row, and for RowKeys across all partitions.
    pub fn keys(mut self, keys: &Keys) -> Result<Self> {
        if let Some(fault) = &keys.fault {
            return Err(fault.to_error());
        }
        (self.from, self.to) = bounds::range_ends(keys)?;
        Ok(self)
    }

    /// Excludes rows before this one, in the order of (PartitionKey, RowKey). Without a RowKey, the
    /// range starts at the partition's first row.
    #[must_use]
    pub fn keys_from(mut self, partition_key: &str, row_key: Option<&str>) -> Self {
        self.from = Some((partition_key.to_owned(), row_key.map(str::to_owned)));
        self
    }

    /// Excludes rows after this one, which is itself included. Without a RowKey, the range ends at
    /// the partition's last row.
    #[must_use]
    pub fn keys_to(mut self, partition_key: &str, row_key: Option<&str>) -> Self {
        self.to = Some((partition_key.to_owned(), row_key.map(str::to_owned)));
        self
    }

    /// Makes the signature with an account's key. No request is sent.
    ///
    /// # Errors
    ///
    /// `is_invalid` if the service would refuse the table's name, a key or an address, if the end
    /// is before the start, and if a signature without a policy permits nothing or has no end.
    pub fn sign(&self, key: &AccountKey) -> Result<SasToken> {
        self.check_permissions()?;
        let text = self.text_to_sign(key.account(), &[&self.policy], VERSION);
        Ok(self.token(VERSION, &[("si", &*self.policy)], &key.sign_text(&text)))
    }

    /// Makes the signature with a key of an identity, a [`UserDelegationKey`]. No request is sent.
    ///
    /// # Errors
    ///
    /// Fails like [`sign`](Self::sign), and with `is_invalid` for a stored access policy, which only
    /// signatures with the account's key can name, and for a signature that is valid before or after the
    /// key.
    pub fn sign_delegated(&self, key: &UserDelegationKey) -> Result<SasToken> {
        self.check_permissions()?;
        self.check_within_key(key)?;
        let mut lines: Vec<&str> = key.members.iter().map(|(_, value)| &**value).collect();
        // The tenant and the object id of the one user who may use the signature, for signatures that
        // name one.
        lines.extend(["", ""]);
        let text = self.text_to_sign(key.account(), &lines, DELEGATED_VERSION);
        let members = key.members.each_ref().map(|(name, value)| (*name, &**value));
        Ok(self.token(DELEGATED_VERSION, &members, &key.key.sign_text(&text)))
    }

    /// Returns the text that is signed. `key_lines` says which key or stored policy is used.
    fn text_to_sign(&self, account: &str, key_lines: &[&str], version: &str) -> String {
        let terms = &self.terms;
        let (permissions, starts, expires) =
            (self.permissions.permission_letters(), terms.starts(), terms.expires());
        let (spk, srk) = bound_keys(self.from.as_ref());
        let (epk, erk) = bound_keys(self.to.as_ref());
        let members = [
            ("tn", &*self.table),
            ("sp", &permissions),
            ("st", &starts),
            ("se", &expires),
            ("sip", &terms.ip),
            ("spr", terms.protocol),
            ("sv", version),
            ("spk", spk),
            ("srk", srk),
            ("epk", epk),
            ("erk", erk),
        ];
        table_text_to_sign(account, key_lines, |name| member_of(&members, name))
    }

    /// Returns the finished signature. `key_members` says which key or stored policy was used.
    fn token(&self, version: &str, key_members: &[(&str, &str)], signature: &str) -> SasToken {
        let terms = &self.terms;
        let (permissions, starts, expires) =
            (self.permissions.permission_letters(), terms.starts(), terms.expires());
        let (spk, srk) = bound_keys(self.from.as_ref());
        let (epk, erk) = bound_keys(self.to.as_ref());
        let mut members = vec![
            ("sv", version),
            ("tn", &*self.table),
            ("sp", &*permissions),
            ("st", &*starts),
            ("se", &*expires),
            ("sip", &*terms.ip),
            ("spr", terms.protocol),
        ];
        members.extend(key_members);
        members.extend([
            ("spk", spk),
            ("srk", srk),
            ("epk", epk),
            ("erk", erk),
            ("sig", signature),
        ]);
        SasToken::new(query_string_of_members(&members), terms.expires.and_then(Result::ok))
    }

    /// Fails for terms that a signature of an identity cannot have.
    fn check_within_key(&self, key: &UserDelegationKey) -> Result<()> {
        if !self.policy.is_empty() {
            return Err(invalid_signature_terms_error(
                "a SAS with a user delegation key cannot use a stored policy; set permissions and an expiry time, or \
                 sign with the account's key",
            ));
        }
        let Range { start, end } = key.valid;
        for time in [self.terms.starts, self.terms.expires].into_iter().flatten().flatten() {
            if time < start || time > end {
                return Err(invalid_signature_terms_error(format!(
                    "the user delegation key is valid from {start} to {end}, but the SAS contains {time}; request \
                     another key, or shorten the SAS"
                )));
            }
        }
        Ok(())
    }

    fn check_permissions(&self) -> Result<()> {
        limits::check_table_name(&self.table)?;
        self.terms.check_terms()?;
        bounds::check_range_ends(self.from.as_ref(), self.to.as_ref())?;
        if self.policy.chars().any(char::is_control) {
            return Err(invalid_signature_terms_error(
                "the name of the stored policy contains a control character",
            ));
        }
        if self.policy.is_empty() && self.permissions == TablePermissions::NONE {
            return Err(invalid_signature_terms_error(
                "the SAS permits nothing; give permissions or a stored policy",
            ));
        }
        if self.policy.is_empty() && self.terms.expires.is_none() {
            return Err(invalid_signature_terms_error(
                "the SAS has no expiry time; give one or a stored policy",
            ));
        }
        Ok(())
    }
}

fn bound_keys(bound: Option<&RangeEnd>) -> (&str, &str) {
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
            .expires(datetime!(2030-01-01 0:00 UTC))
            .allow_http();
        assert_eq!(signature(&all), "/3Hb/R7XRx9Oyvm0ptuagq4MFLrmJZiuWPnyJ1GMJSU=");
        let range = TableSas::new("mytable")
            .permissions(TablePermissions::READ)
            .expires(datetime!(2030-01-01 0:00 UTC))
            .ip("168.1.5.60-168.1.5.70")
            .keys_from("a", Some("1"))
            .keys_to("b", Some("9"));
        assert_eq!(signature(&range), "9sIKYanudBj5VTrdXWrwqK7nHrJw963x7DyEwmSG5Xo=");
        let policy = TableSas::new("mytable").policy("pol1").allow_http();
        assert_eq!(signature(&policy), "jVL8yGiUxYgm0nQqYYbAvJHmViklFd7M9bAT0UNWh3k=");
    }

    #[test]
    fn what_the_service_would_refuse_is_not_signed() {
        let good = TableSas::new("Staff")
            .permissions(TablePermissions::READ)
            .expires(datetime!(2030-01-01 0:00 UTC));
        assert!(good.sign(&key()).is_ok());
        let one = good.clone().ip("168.1.5.60").sign(&key()).unwrap();
        assert!(one.as_query().contains("&sip=168.1.5.60&"));
        for wrong in [
            TableSas::new("no-table").policy("p"),
            TableSas::new("Staff"),
            TableSas::new("Staff").permissions(TablePermissions::READ),
            good.clone().starts(datetime!(2031-01-01 0:00 UTC)),
            good.clone().ip("here"),
            good.clone().keys_from("a/b", None),
            good.clone().keys_from("a", Some("1/2")),
            good.clone().keys_to("a", Some("1\t2")),
            good.clone().keys_to("", None),
            good.clone().keys_to("a", Some("")),
            good.clone().keys_from("b", None).keys_to("a", None),
            good.clone().keys_from("a", Some("2")).keys_to("a", Some("1")),
            good.clone().ip("168.1.5.70-168.1.5.60"),
            good.clone().policy("a\nb"),
            good.clone().starts(datetime!(2030-01-01 0:00 UTC)),
        ] {
            assert!(wrong.sign(&key()).unwrap_err().is_invalid(), "{wrong:?}");
        }
    }

    #[test]
    fn a_range_to_the_end_of_a_partition_is_signed() {
        let sas = TableSas::new("Staff")
            .permissions(TablePermissions::READ)
            .expires(datetime!(2030-01-01 0:00 UTC))
            .keys(&Keys::partition("Sales").rows("a"..))
            .unwrap();
        assert!(sas.sign(&key()).unwrap().as_query().contains("&spk=Sales&srk=a&epk=Sales&sig="));
    }

    /// A key in the documented format with made-up values and the same bytes as `key`.
    fn delegation_key(expiry: &str) -> UserDelegationKey {
        let key = "AAECAwQFBgcICQoLDA0ODxAREhMUFRYXGBkaGxwdHh8gISIjJCUmJygpKissLS4vMDEyMzQ1Njc4OTo7PD0+Pw==";
        let answer = crate::wire::DelegationKeyAnswer {
            object_id: "11111111-2222-3333-4444-555555555555".into(),
            tenant_id: "66666666-7777-8888-9999-aaaaaaaaaaaa".into(),
            start: "2026-04-01T00:00:00Z".into(),
            expiry: expiry.into(),
            service: "t".into(),
            version: "2025-07-05".into(),
            value: key.to_owned().into(),
        };
        UserDelegationKey::new("myaccount", answer).unwrap()
    }

    /// "Create a user delegation SAS" gives the lines of this text for tables, since version 2025-07-05:
    /// signedPermissions, signedStart, signedExpiry, canonicalizedResource, signedKeyObjectId,
    /// signedKeyTenantId, signedKeyStart, signedKeyExpiry, signedKeyService, signedKeyVersion,
    /// signedKeyDelegatedUserTenantId, signedDelegatedUserObjectId, signedIP, signedProtocol, signedVersion,
    /// startingPartitionKey, startingRowKey, endingPartitionKey, endingRowKey.
    #[test]
    fn an_identity_signs_the_lines_of_the_documentation() {
        let delegated = delegation_key("2026-04-02T00:00:00Z");
        let sas = TableSas::new("Employees")
            .permissions(TablePermissions::READ | TablePermissions::ADD)
            .starts(datetime!(2026-04-01 6:00 UTC))
            .expires(datetime!(2026-04-01 18:00 UTC))
            .ip("168.1.5.60-168.1.5.70")
            .keys_from("Jeff", Some("Price"))
            .keys_to("Jeff", Some("Smith"));
        let text = "ra\n2026-04-01T06:00:00Z\n2026-04-01T18:00:00Z\n/table/myaccount/employees\n\
                    11111111-2222-3333-4444-555555555555\n66666666-7777-8888-9999-aaaaaaaaaaaa\n\
                    2026-04-01T00:00:00Z\n2026-04-02T00:00:00Z\nt\n2025-07-05\n\n\n\
                    168.1.5.60-168.1.5.70\nhttps\n2025-07-05\nJeff\nPrice\nJeff\nSmith";
        let query = "sv=2025-07-05&tn=Employees&sp=ra&st=2026-04-01T06%3A00%3A00Z&se=2026-04-01T18%3A00%3A00Z\
                     &sip=168.1.5.60-168.1.5.70&spr=https&skoid=11111111-2222-3333-4444-555555555555\
                     &sktid=66666666-7777-8888-9999-aaaaaaaaaaaa&skt=2026-04-01T00%3A00%3A00Z\
                     &ske=2026-04-02T00%3A00%3A00Z&sks=t&skv=2025-07-05&spk=Jeff&srk=Price&epk=Jeff&erk=Smith&sig=";
        let token = sas.sign_delegated(&delegated).unwrap();
        let (members, signature) = token.as_query().split_at(query.len());
        assert_eq!(members, query);
        assert_eq!(signature, crate::wire::encode_query_value(&key().sign_text(text)));
        assert_eq!(token.expires(), Some(datetime!(2026-04-01 18:00 UTC)));
        // Computed by another program from the text above, to check that the key's bytes are used.
        assert_eq!(signature, "LdqW2%2BhOhD22QeQRvfyNc5nW77gh9L%2Bset82Pmn5Lek%3D");
    }

    #[test]
    fn an_identity_signs_neither_a_policy_nor_beyond_its_key() {
        let delegated = delegation_key("2026-04-02T00:00:00Z");
        let good = TableSas::new("Employees")
            .permissions(TablePermissions::READ)
            .expires(datetime!(2026-04-02 0:00 UTC));
        assert!(good.sign_delegated(&delegated).is_ok());
        for (wrong, why) in [
            (good.clone().policy("readers"), "stored policy"),
            (good.clone().expires(datetime!(2026-04-02 0:00:01 UTC)), "another key"),
            (good.clone().starts(datetime!(2026-03-31 23:59:59 UTC)), "another key"),
            (TableSas::new("Employees").permissions(TablePermissions::READ), "no expiry time"),
            (good.clone().keys_to("", None), "empty PartitionKey"),
        ] {
            let error = wrong.sign_delegated(&delegated).unwrap_err();
            assert!(error.is_invalid() && error.to_string().contains(why), "{error}");
        }
    }

    #[test]
    fn values_are_percent_encoded_and_never_printed() {
        let token = TableSas::new("Staff")
            .permissions(TablePermissions::READ)
            .expires(datetime!(2030-01-01 0:00:00.5 UTC))
            .keys_from("o'b é", None)
            .allow_http()
            .sign(&key())
            .unwrap();
        assert!(token.as_query().contains("&se=2030-01-01T00%3A00%3A00Z&spk=o%27b%20%C3%A9&sig="));
        assert!(!format!("{token:?}").contains("sig"));
    }
}
