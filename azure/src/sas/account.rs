//! Defines [`AccountSas`], a signature for all tables of an account.

use entable_core::error::Result;

use super::{
    SasToken,
    letters::letters,
    terms::{SasTerms, terms},
    token::{VERSION, invalid_signature_terms_error, query_string_of_members},
};
use crate::{
    AccountKey,
    wire::{account_text_to_sign, member_of},
};

letters! {
    /// The operations that a signature permits in an account.
    AccountPermissions;
    /// Reads rows and access policies.
    READ = 1 'r';
    /// Creates tables.
    WRITE = 2 'w';
    /// Deletes tables and rows.
    DELETE = 4 'd';
    /// Lists tables.
    LIST = 8 'l';
    /// Inserts rows.
    ADD = 16 'a';
    /// Creates tables.
    CREATE = 32 'c';
    /// Replaces and merges rows.
    UPDATE = 64 'u';
}

letters! {
    /// The kinds of resources that a signature is valid for. Queries and writes need `OBJECT`;
    /// creating and listing tables needs `CONTAINER`.
    ResourceTypes;
    /// Settings of the service.
    SERVICE = 1 's';
    /// Tables.
    CONTAINER = 2 'c';
    /// Rows.
    OBJECT = 4 'o';
}

/// Describes a signature for the tables of an account: operations, resources,
/// times, addresses.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct AccountSas {
    permissions: AccountPermissions,
    resources: ResourceTypes,
    terms: SasTerms,
}

terms!(AccountSas);

impl AccountSas {
    /// Describes a signature for these operations on resources of these types.
    pub fn new(permissions: AccountPermissions, resources: ResourceTypes) -> Self {
        Self { permissions, resources, terms: SasTerms::default() }
    }

    /// Makes the signature with an account's key. No request is sent.
    ///
    /// # Errors
    ///
    /// `is_invalid` if no operation or no resource type is permitted, the end is missing or not after the start, or the
    /// IP text is not an IPv4 address or range.
    pub fn sign(&self, key: &AccountKey) -> Result<SasToken> {
        let terms = &self.terms;
        terms.check_terms()?;
        if terms.expires.is_none() {
            return Err(invalid_signature_terms_error(
                "an account SAS needs an expiry time; set one with `expires`",
            ));
        }
        let (permissions, resources) =
            (self.permissions.permission_letters(), self.resources.permission_letters());
        if permissions.is_empty() || resources.is_empty() {
            return Err(invalid_signature_terms_error(
                "the SAS permits nothing; give permissions and resource types",
            ));
        }
        let (starts, expires) = (terms.starts(), terms.expires());
        let mut members = vec![
            ("sv", VERSION),
            ("ss", "t"),
            ("srt", &*resources),
            ("sp", &permissions),
            ("st", &starts),
            ("se", &expires),
            ("sip", &terms.ip),
            ("spr", terms.protocol),
        ];
        let text = account_text_to_sign(key.account(), |name| member_of(&members, name));
        let signature = key.sign_text(&text);
        members.push(("sig", &signature));
        let query = query_string_of_members(&members);
        Ok(SasToken::new(query, terms.expires.and_then(Result::ok)))
    }
}

#[cfg(test)]
mod tests {
    use time::macros::datetime;

    use super::*;

    #[test]
    fn the_signature_is_that_of_the_vector() {
        let key = "AAECAwQFBgcICQoLDA0ODxAREhMUFRYXGBkaGxwdHh8gISIjJCUmJygpKissLS4vMDEyMzQ1Njc4OTo7PD0+Pw==";
        let key = AccountKey::new("myaccount", key).unwrap();
        let resources = ResourceTypes::SERVICE | ResourceTypes::OBJECT;
        let sas = AccountSas::new(AccountPermissions::ALL, resources)
            .starts(datetime!(2024-01-01 0:00 UTC))
            .expires(datetime!(2030-01-01 0:00 UTC))
            .allow_http();
        let token = sas.sign(&key).unwrap();
        assert!(token.as_query().ends_with("sig=gUgBkixby3piSyLsrBV601JExSNtES%2BDPCkPvvtw3zM%3D"));
        let nothing = AccountSas::new(AccountPermissions::NONE, resources);
        assert!(nothing.sign(&key).unwrap_err().is_invalid());
    }
}
