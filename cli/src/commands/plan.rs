//! The command that counts what the access patterns of a program cost.

use std::path::Path;

use entable::{Prices, patterns::Plan};
use serde_json::json;

use super::simulate::simulate;
use crate::{args::PlanOptions, failure::Failure, output::Output};

/// Prints the numbers of a plan, or of two plans side by side.
pub(crate) fn plan(output: &Output, options: &PlanOptions) -> Result<(), Failure> {
    let plan = read_plan(&options.file)?.times(options.times);
    if options.simulate {
        return simulate(output, &plan, options);
    }
    let prices = options.prices.as_deref().map(prices_of).transpose()?;
    if let Some(other) = &options.compare {
        let other = read_plan(other)?.times(options.times);
        let text = plan.compare(&other, &prices.unwrap_or_default());
        return output.say(|| text.trim_end().to_owned(), || json!({"markdown": text}));
    }
    let text = prices.map_or_else(|| plan.markdown(), |prices| plan.markdown_priced(&prices));
    let hot: Vec<_> = plan
        .hot_partitions()
        .into_iter()
        .map(|hot| {
            json!({
                "table": hot.table,
                "partition_key": hot.partition_key,
                "entities_per_second": hot.entities_per_second,
                "partitions_needed": hot.partitions_needed,
                "cure": hot.cure,
            })
        })
        .collect();
    output.say(
        || text.trim_end().to_owned(),
        || {
            json!({
                "requests_per_second": plan.requests_per_second(),
                "account_share": plan.account_share(),
                "hot_partitions": hot,
                "stored_bytes": plan.stored_bytes(),
                "price_per_month": prices.map(|prices| plan.price_per_month(&prices)),
                "markdown": text,
            })
        },
    )
}

fn read_plan(file: &Path) -> Result<Plan, Failure> {
    let text = std::fs::read_to_string(file)
        .map_err(|error| Failure::io(&format!("reading `{}`", file.display()), &error))?;
    Plan::from_json(&text)
        .map_err(|error| Failure::bad_data(format!("`{}`: {}", file.display(), error.message())))
}

fn prices_of(prices: &[f64]) -> Result<Prices, Failure> {
    match prices {
        [read, scan, write, transaction, storage] => {
            Ok(Prices::per_10_000(*read, *scan, *write, *transaction).with_storage(*storage))
        }
        _ => Err(Failure::usage(format!(
            "`--prices` takes five numbers, READ,SCAN,WRITE,TRANSACTION,STORAGE, and {} are given",
            prices.len()
        ))),
    }
}
