//! The command `check-service`.

use std::{
    fs::OpenOptions,
    io::Write as _,
    panic,
    path::{Path, PathBuf},
    sync::Arc,
};

use entable::{Azure, RetryPolicy, backend::layer::Retry};

use crate::{
    args::CheckService,
    check::{self, CheckPart, Report, Scrubber, Service},
    failure::Failure,
    output::{Output, Progress},
    store,
};

pub(crate) async fn check_service(output: &Output, args: CheckService) -> Result<(), Failure> {
    let parts = if args.only.is_empty() { CheckPart::ALL.to_vec() } else { args.only };
    let report_files = args.report.as_deref().map(new_report_files).transpose()?;
    let options = store::service_options(&args.store)?;
    let azure = Azure::new(options.clone())?;
    let (described, scrubber) =
        (describe(azure.endpoint()), scrubber(&args.store, azure.endpoint()));
    let backend = Arc::new(Retry::around(azure, RetryPolicy::default()));
    let prefix = check::random_prefix();
    output.remark(&format!(
        "checking {described} in tables whose names begin with `{prefix}`; the command deletes them afterwards. It \
         sends about 7,000 requests and 80 MiB, which cost less than a cent at the public prices of table storage"
    ));
    let progress = Progress::new(output);
    let service = Service { backend, options: Some(options) };
    // A broken promise is a panic, whose message goes into the report and not to the terminal.
    let former = panic::take_hook();
    panic::set_hook(Box::new(|_| {}));
    let checked =
        check::run(&service, &prefix, &parts, |what| progress.show(|| what.to_owned())).await;
    panic::set_hook(former);
    progress.end();
    let report = checked.map_err(|error| {
        let mut failure = Failure::from(error);
        failure.message = format!(
            "{}; tables whose names begin with `{prefix}` may remain",
            scrubber.scrub(&failure.message)
        );
        failure
    })?;
    if let Some(files) = report_files {
        files.write(&report, &described, &scrubber)?;
    }
    say(output, &report, &described, &scrubber)
}

fn say(
    output: &Output,
    report: &Report,
    described: &str,
    scrubber: &Scrubber,
) -> Result<(), Failure> {
    output
        .say(|| report.to_markdown(described, scrubber), || report.to_json(described, scrubber))?;
    match report.differences().count() {
        0 => Ok(()),
        1 => Err(Failure::bad_data("the service differs from the promises in 1 point")),
        count => Err(Failure::bad_data(format!(
            "the service differs from the promises in {count} points"
        ))),
    }
}

/// Describes the kind of service without the account's name.
fn describe(endpoint: &str) -> String {
    let host = endpoint
        .split("://")
        .nth(1)
        .unwrap_or(endpoint)
        .split(['/', ':'])
        .next()
        .unwrap_or_default();
    if matches!(host, "127.0.0.1" | "localhost" | "[") {
        return "a service on this machine".to_owned();
    }
    match host.split_once('.') {
        Some((_, zone)) => format!("an account of {zone}"),
        None => "a service in this network".to_owned(),
    }
}

/// Returns what a report must not show: the account's name, its host, and the secrets of its credential.
fn scrubber(store: &str, endpoint: &str) -> Scrubber {
    let rest = endpoint.split("://").nth(1).unwrap_or(endpoint);
    let (host, path) = rest.split_once('/').unwrap_or((rest, ""));
    let account = if path.is_empty() { host.split('.').next().unwrap_or_default() } else { path };
    let names = [host.to_owned(), account.to_owned()];
    Scrubber::new(names.into_iter().chain(store::secrets(store)))
}

/// The two files of a report.
struct ReportFiles {
    markdown: std::fs::File,
    json: std::fs::File,
}

/// Creates both files before anything is sent: a report must not be lost to a name that is taken.
fn new_report_files(stem: &Path) -> Result<ReportFiles, Failure> {
    let create = |extension: &str| {
        let path = PathBuf::from(format!("{}.{extension}", stem.display()));
        let created = OpenOptions::new().write(true).create_new(true).open(&path);
        created.map_err(|error| Failure::io(&format!("creating `{}`", path.display()), &error))
    };
    Ok(ReportFiles { markdown: create("md")?, json: create("json")? })
}

impl ReportFiles {
    fn write(
        mut self,
        report: &Report,
        described: &str,
        scrubber: &Scrubber,
    ) -> Result<(), Failure> {
        let failed = |error: std::io::Error| Failure::io("writing the report", &error);
        self.markdown
            .write_all(report.to_markdown(described, scrubber).as_bytes())
            .map_err(failed)?;
        writeln!(self.json, "{:#}", report.to_json(described, scrubber)).map_err(failed)
    }
}
