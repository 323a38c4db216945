//! Connection strings: `AccountName=..;AccountKey=..`, `TableEndpoint=..;SharedAccessSignature=..`,
//! `UseDevelopmentStorage=true`.

use super::{AccountKey, endpoint::Endpoint};
use crate::error::{Error, ErrorKind, Result};

/// The settings of a connection string.
#[derive(Default)]
pub(super) struct Settings {
    pub(super) account: Option<String>,
    account_key: Option<String>,
    pub(super) sas: Option<String>,
    protocol: Option<String>,
    suffix: Option<String>,
    table_endpoint: Option<String>,
    pub(super) emulator: bool,
    proxy: Option<String>,
}

impl Settings {
    /// Reads the text. Names are compared without case, values may hold `=`; settings of other
    /// services are passed over. Errors name a setting and never quote a value.
    pub(super) fn parse(text: &str) -> Result<Self> {
        let mut settings = Self::default();
        for part in text.split(';').map(str::trim).filter(|part| !part.is_empty()) {
            let (name, value) = part
                .split_once('=')
                .ok_or_else(|| invalid("a part of the connection string is not `Name=value`"))?;
            let value = Some(value.trim().to_owned());
            match name.trim().to_ascii_lowercase().as_str() {
                "accountname" => settings.account = value,
                "accountkey" => settings.account_key = value,
                "sharedaccesssignature" => settings.sas = value,
                "defaultendpointsprotocol" => settings.protocol = value,
                "endpointsuffix" => settings.suffix = value,
                "tableendpoint" => settings.table_endpoint = value,
                "usedevelopmentstorage" => {
                    settings.emulator = value.is_some_and(|v| v.eq_ignore_ascii_case("true"));
                }
                "developmentstorageproxyuri" => settings.proxy = value,
                _ => {}
            }
        }
        Ok(settings)
    }

    /// The account's key, if there is one.
    pub(super) fn key(&self) -> Result<Option<AccountKey>> {
        match (&self.account, &self.account_key) {
            _ if self.emulator => AccountKey::emulator().map(Some),
            (Some(account), Some(key)) => AccountKey::new(account, key).map(Some),
            (None, Some(_)) => {
                Err(invalid("the connection string has an AccountKey and no AccountName"))
            }
            _ => Ok(None),
        }
    }

    /// Where the tables are.
    pub(super) fn endpoint(&self) -> Result<Endpoint> {
        if self.emulator {
            let host = self.proxy.as_deref().unwrap_or("http://127.0.0.1");
            return Endpoint::emulator(&format!("{}:10002", host.trim_end_matches('/')));
        }
        match (&self.table_endpoint, &self.account) {
            (Some(endpoint), _) => Endpoint::parse(endpoint),
            (None, Some(account)) => {
                let protocol = self.protocol.as_deref().unwrap_or("https");
                let suffix = self.suffix.as_deref().unwrap_or(super::endpoint::PUBLIC);
                Endpoint::of_account(protocol, account, suffix)
            }
            (None, None) => {
                Err(invalid("the connection string has neither AccountName nor TableEndpoint"))
            }
        }
    }
}

fn invalid(message: &str) -> Error {
    Error::new(ErrorKind::Invalid, message)
}
