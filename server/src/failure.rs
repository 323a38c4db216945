//! Errors as the service answers them: a status, a code, and the service's own text.

use entable_core::{Error, ErrorKind, ServiceCode, Ticks};

use crate::request::{Answer, Metadata};

/// A refused request.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Failure {
    pub(crate) status: u16,
    pub(crate) code: String,
    pub(crate) text: String,
    /// The operation of a batch that failed.
    pub(crate) index: Option<usize>,
    /// Whether the service finds the failure while it executes an operation, rather than before it executes any.
    pub(crate) is_from_execution: bool,
}

impl Failure {
    /// Makes a failure with the service's text for `code`.
    pub(crate) fn new(status: u16, code: &str) -> Self {
        Self::with_text(status, code, text_of(code))
    }

    pub(crate) fn malformed_xml() -> Self {
        Self::new(400, "InvalidXmlDocument")
    }

    pub(crate) fn with_text(status: u16, code: &str, text: &str) -> Self {
        Self {
            status,
            code: code.to_owned(),
            text: text.to_owned(),
            index: None,
            is_from_execution: false,
        }
    }

    pub(crate) fn of_code(code: &ServiceCode) -> Self {
        Self::new(code.status(), code.as_str())
    }

    /// Makes the failure of an operation that a store refused. Stores look at what a batch has before, and so does the
    /// service, but it looks for the table then too.
    pub(crate) fn of_execution(error: Error) -> Self {
        let failure = Self::from(error);
        Self { is_from_execution: failure.code != "TableNotFound", ..failure }
    }

    /// Returns the answer without headers of the request. `prefix` is the position of the failed operation of a batch.
    pub(crate) fn answer(&self, prefix: Option<usize>, request_id: &str, now: Ticks) -> Answer {
        let body = self.body(prefix, request_id, &service_time(now));
        Answer { body, ..Answer::of_status(self.status) }
            .with("Content-Type", Metadata::Minimal.content_type())
    }

    fn body(&self, prefix: Option<usize>, request_id: &str, time: &str) -> Vec<u8> {
        let prefix = prefix.map(|index| format!("{index}:")).unwrap_or_default();
        let text = format!("{prefix}{}\nRequestId:{request_id}\nTime:{time}", self.text);
        let message = serde_json::json!({ "lang": "en-US", "value": text });
        let body = serde_json::json!({ "odata.error": { "code": self.code, "message": message } });
        body.to_string().into_bytes()
    }
}

/// Returns a time with seven digits of a fraction.
pub(crate) fn service_time(now: Ticks) -> String {
    let text = now.to_string();
    let text = text.trim_end_matches('Z');
    let (seconds, fraction) = text.split_once('.').unwrap_or((text, ""));
    format!("{seconds}.{fraction:0<7}Z")
}

impl From<Error> for Failure {
    fn from(error: Error) -> Self {
        let code = match (error.service_code(), error.kind()) {
            (Some(code), _) => code.clone(),
            (None, ErrorKind::Invalid | ErrorKind::TooLarge) => ServiceCode::InvalidInput,
            (None, ErrorKind::Denied) => {
                return Self::new(403, "InsufficientAccountPermissions");
            }
            (None, ErrorKind::Unsupported) => ServiceCode::NotImplemented,
            (None, ErrorKind::Throttled) => ServiceCode::ServerBusy,
            // The text of such an error may name files of this machine, so it stays here.
            _ => ServiceCode::InternalError,
        };
        Self { index: error.failed_index(), ..Self::of_code(&code) }
    }
}

fn text_of(code: &str) -> &'static str {
    match code {
        "EntityAlreadyExists" => "The specified entity already exists.",
        "TableAlreadyExists" => "The table specified already exists.",
        "TableNotFound" => "The table specified does not exist.",
        "ResourceNotFound" => "The specified resource does not exist.",
        "UpdateConditionNotSatisfied" => {
            "The update condition specified in the request was not satisfied."
        }
        "TooManyProperties" => {
            "The entity contains more properties than allowed. Each entity can include up to 252 properties to store \
             data. Each entity also has 3 system properties."
        }
        "PropertyNameTooLong" => "The property name exceeds the maximum allowed length (255).",
        "PropertiesNeedValue" => "The values are not specified for all properties in the entity.",
        "PropertyValueTooLarge" => {
            "The property value exceeds the maximum allowed size (64KB). If the property value is a string, it is \
             UTF-16 encoded and the maximum number of characters should be 32K or less."
        }
        "EntityTooLarge" => "The entity is larger than the maximum allowed size (1MB).",
        "InvalidResourceName" => "The specifed resource name contains invalid characters.",
        "OutOfRangeInput" => "One of the request inputs is out of range.",
        "InvalidDuplicateRow" => {
            "The batch request contains multiple changes with same row key. An entity can appear only once in a batch \
             request."
        }
        "CommandsInBatchActOnDifferentPartitions" => {
            "All commands in a batch must operate on same entity group."
        }
        "NotImplemented" => "The requested operation is not implemented on the specified resource.",
        "AuthenticationFailed" => {
            "Server failed to authenticate the request. Make sure the value of Authorization header is formed correctly \
             including the signature."
        }
        "AuthorizationFailure" => "This request is not authorized to perform this operation.",
        "AuthorizationPermissionMismatch" => {
            "This request is not authorized to perform this operation using this permission."
        }
        "AuthorizationResourceTypeMismatch" => {
            "This request is not authorized to perform this operation using this resource type."
        }
        "AuthorizationServiceMismatch" => {
            "This request is not authorized to perform this operation using this service."
        }
        "AuthorizationProtocolMismatch" => {
            "This request is not authorized to perform this operation using this protocol."
        }
        "AuthorizationSourceIPMismatch" => {
            "This request is not authorized to perform this operation using this source IP."
        }
        "WriteOperationNotSupportedOnSecondary" => "Write operations are not allowed.",
        "InvalidHeaderValue" => {
            "The value for one of the HTTP headers is not in the correct format."
        }
        "InvalidQueryParameterValue" => {
            "Value for one of the query parameters specified in the request URI is invalid."
        }
        "InvalidXmlDocument" => "XML specified is not syntactically valid.",
        "InsufficientAccountPermissions" => {
            "The account being accessed does not have sufficient permissions to execute this operation."
        }
        "RequestBodyTooLarge" => {
            "The request body is too large and exceeds the maximum permissible limit."
        }
        "MediaTypeNotSupported" => "None of the provided media types are supported",
        "AtomFormatNotSupported" => "Atom format is not supported.",
        "ServerBusy" => "The server is busy.",
        "InternalError" => {
            "Server encountered an internal error. Please try again after some time."
        }
        _ => "One of the request inputs is not valid.",
    }
}
