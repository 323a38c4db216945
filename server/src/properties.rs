//! Requests about the service as a whole: its properties and its stats.

use entable_azure::wire::http_date_text;
use entable_core::Ticks;

use crate::{
    failure::Failure,
    grant::Action,
    request::{Answer, Request},
    service::Service,
};

/// The most bytes of properties.
const BYTES: usize = 64 * 1024;
/// The most days that data of a section may be kept.
const DAYS: u16 = 365;
/// The properties of a new service, by section.
const SECTIONS: [(&str, &str); 4] = [
    (
        "Logging",
        "<Version>1.0</Version><Delete>false</Delete><Read>false</Read><Write>false</Write><RetentionPolicy><Enabled>false</Enabled></RetentionPolicy>",
    ),
    ("HourMetrics", METRICS),
    ("MinuteMetrics", METRICS),
    ("Cors", ""),
];
const METRICS: &str = "<Version>1.0</Version><Enabled>false</Enabled><RetentionPolicy><Enabled>false</Enabled></RetentionPolicy>";

/// Answers with the properties, or sets the sections that the request contains. Properties are kept and change
/// nothing else: the server neither logs nor measures for them.
pub(crate) async fn answer(
    service: &Service,
    request: &Request,
    verb: &str,
) -> Result<Answer, Failure> {
    request.grant.check(if verb == "PUT" { Action::WriteService } else { Action::ReadService })?;
    let stored = service.backend.settings(None).await?.unwrap_or_default();
    match verb {
        "GET" => Ok(Answer::xml(200, &merged("", &stored))),
        "PUT" => {
            let text = std::str::from_utf8(&request.body).map_err(|_| Failure::malformed_xml())?;
            let is_whole = text.contains("<StorageServiceProperties");
            let is_valid = has_closed_sections(text) && has_valid_days(text);
            if !is_whole || text.len() > BYTES || !is_valid {
                return Err(Failure::malformed_xml());
            }
            if text.contains("<CorsRule>") {
                // Rules that are kept and not followed would mislead.
                return Err(Failure::new(501, "NotImplemented"));
            }
            service.backend.set_settings(None, &merged(text, &stored)).await?;
            Ok(Answer::of_status(202))
        }
        _ => Err(Failure::new(405, "MethodNotAllowed")),
    }
}

/// Answers with the state of the replication, which the address of the secondary serves. There is one store, so it is
/// never behind.
pub(crate) fn stats(request: &Request, is_secondary: bool, now: Ticks) -> Result<Answer, Failure> {
    request.grant.check(Action::ReadService)?;
    if !is_secondary {
        return Err(Failure::new(400, "InvalidQueryParameterValue"));
    }
    let time = http_date_text(now);
    Ok(Answer::xml(
        200,
        &format!(
            "<StorageServiceStats><GeoReplication><Status>live</Status><LastSyncTime>{time}</LastSyncTime></GeoReplication></StorageServiceStats>"
        ),
    ))
}

fn has_closed_sections(text: &str) -> bool {
    let count = |text: &str, part: String| text.matches(&*part).count();
    SECTIONS.iter().all(|(name, _)| {
        let (opened, closed) =
            (count(text, format!("<{name}>")), count(text, format!("</{name}>")));
        opened == closed && opened <= 1
    })
}

/// Returns whether every retention lasts 1 to 365 days, as the service demands also where nothing is kept.
fn has_valid_days(text: &str) -> bool {
    text.split("<Days>").skip(1).all(|rest| {
        let days = rest.split_once("</Days>").and_then(|(days, _)| days.parse().ok());
        days.is_some_and(|days| (1..=DAYS).contains(&days))
    })
}

/// Returns all sections: each from `newer`, else from `older`, else that of a new service.
fn merged(newer: &str, older: &str) -> String {
    let section = |&(name, default): &(&str, &str)| {
        let found = section_of(newer, name).or_else(|| section_of(older, name));
        format!("<{name}>{}</{name}>", found.unwrap_or(default))
    };
    let sections: String = SECTIONS.iter().map(section).collect();
    format!("<StorageServiceProperties>{sections}</StorageServiceProperties>")
}

fn section_of<'a>(text: &'a str, name: &str) -> Option<&'a str> {
    if text.contains(&format!("<{name} />")) || text.contains(&format!("<{name}/>")) {
        return Some("");
    }
    let (_, rest) = text.split_once(&format!("<{name}>"))?;
    rest.split_once(&format!("</{name}>")).map(|(section, _)| section)
}
