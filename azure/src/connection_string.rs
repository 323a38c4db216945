//! Reads connection strings: `AccountName=..;AccountKey=..`, `TableEndpoint=..;SharedAccessSignature=..`,
//! `UseDevelopmentStorage=true`.

use entable_core::error::{Error, ErrorKind, Result};

use crate::{
    account_key::{AccountKey, EMULATOR_ACCOUNT},
    endpoint::Endpoint,
};

/// The settings of a connection string.
#[derive(Default)]
pub(crate) struct ConnectionSettings {
    pub(crate) account: Option<String>,
    account_key: Option<String>,
    pub(crate) sas: Option<String>,
    protocol: Option<String>,
    suffix: Option<String>,
    table_endpoint: Option<String>,
    queue_endpoint: Option<String>,
    pub(crate) emulator: bool,
    proxy: Option<String>,
}

impl ConnectionSettings {
    /// Reads a connection string. The case of names does not matter, values may contain `=`, and settings
    /// of other services are ignored. Errors name a setting and never quote a value.
    pub(crate) fn parse(text: &str) -> Result<Self> {
        let mut settings = Self::default();
        for part in text.split(';').map(str::trim).filter(|part| !part.is_empty()) {
            let (name, value) = part.split_once('=').ok_or_else(|| {
                invalid_string_error(
                    "a part of the connection string does not have the form `Name=value`",
                )
            })?;
            settings.set_setting(name.trim(), value.trim())?;
        }
        Ok(settings)
    }

    fn set_setting(&mut self, name: &str, value: &str) -> Result<()> {
        let setting = match name.to_ascii_lowercase().as_str() {
            "accountname" => &mut self.account,
            "accountkey" => &mut self.account_key,
            "sharedaccesssignature" => &mut self.sas,
            "defaultendpointsprotocol" => &mut self.protocol,
            "endpointsuffix" => &mut self.suffix,
            "tableendpoint" => &mut self.table_endpoint,
            "queueendpoint" => &mut self.queue_endpoint,
            "developmentstorageproxyuri" => &mut self.proxy,
            "usedevelopmentstorage" => {
                self.emulator = value.eq_ignore_ascii_case("true");
                return if self.emulator || value.eq_ignore_ascii_case("false") {
                    Ok(())
                } else {
                    Err(invalid_string_error("expected true or false for UseDevelopmentStorage"))
                };
            }
            _ => return Ok(()),
        };
        match setting.replace(value.to_owned()) {
            None => Ok(()),
            // This is one of the known names, so the message cannot quote a secret.
            Some(_) => Err(invalid_string_error(&format!(
                "the connection string gives {name} twice; give it once"
            ))),
        }
    }

    /// Returns the account key: the emulator's if the connection string selects the emulator, else the string's own, if
    /// it has one.
    pub(crate) fn key(&self) -> Result<Option<AccountKey>> {
        if self.account_key.is_some() && self.sas.is_some() {
            return Err(invalid_string_error(
                "the connection string has an AccountKey and a SharedAccessSignature; keep one of them",
            ));
        }
        match (&self.account, &self.account_key) {
            _ if self.emulator => Ok(Some(AccountKey::emulator())),
            (Some(account), Some(key)) => AccountKey::new(account, key).map(Some),
            (None, Some(_)) => Err(invalid_string_error(
                "the connection string has an AccountKey but no AccountName; add it",
            )),
            _ => Ok(None),
        }
    }

    /// Returns the queue endpoint, if the connection string has one.
    pub(crate) fn given_queue_endpoint(&self) -> Result<Option<Endpoint>> {
        self.queue_endpoint.as_deref().map(Endpoint::parse).transpose()
    }

    /// Returns the table endpoint: the one that is given, or the one made of protocol, account and suffix.
    pub(crate) fn endpoint(&self) -> Result<Endpoint> {
        if self.emulator {
            let Some(proxy) = &self.proxy else { return Ok(Endpoint::emulator()) };
            // The address of the proxy has no port. Each service of the emulator has its own, and
            // the tables have 10002.
            let proxy = proxy.trim_end_matches('/');
            return Endpoint::parse(&format!("{proxy}:10002/{EMULATOR_ACCOUNT}"));
        }
        match (&self.table_endpoint, &self.account) {
            (Some(endpoint), _) => Endpoint::parse(endpoint),
            (None, Some(account)) => {
                let protocol = self.protocol.as_deref().unwrap_or("https");
                let suffix = self.suffix.as_deref().unwrap_or(crate::endpoint::PUBLIC_CLOUD_SUFFIX);
                Endpoint::for_account(protocol, account, suffix)
            }
            (None, None) => Err(invalid_string_error(
                "the connection string has neither AccountName nor TableEndpoint",
            )),
        }
    }
}

impl AccountKey {
    /// Reads the name and the key of the account from a connection string.
    ///
    /// ```
    /// use entable_azure::AccountKey;
    ///
    /// let key = AccountKey::from_connection_string("AccountName=myaccount;AccountKey=AAECAwQ=")?;
    /// assert_eq!(key.account(), "myaccount");
    /// let emulator = AccountKey::from_connection_string("UseDevelopmentStorage=true")?;
    /// assert_eq!(emulator.account(), "devstoreaccount1");
    /// # Ok::<(), entable_core::Error>(())
    /// ```
    ///
    /// # Errors
    ///
    /// `is_invalid` if the connection string lacks one of them.
    pub fn from_connection_string(text: &str) -> Result<Self> {
        ConnectionSettings::parse(text)?.key()?.ok_or_else(|| {
            Error::new(
                ErrorKind::Invalid,
                "the connection string lacks an AccountName or AccountKey; give both",
            )
        })
    }
}

fn invalid_string_error(message: &str) -> Error {
    Error::new(ErrorKind::Invalid, message)
}
