//! Drives the load of a plan on a simulated account, on virtual time.

use std::{thread, time::Duration};

use entable::patterns::{Plan, Simulation};
use serde_json::{Value, json};
use tokio::runtime::Builder;

use crate::{args::PlanOptions, failure::Failure, output::Output};

/// Prints what the load of a plan does to a simulated account.
pub(super) fn simulate(output: &Output, plan: &Plan, options: &PlanOptions) -> Result<(), Failure> {
    let seconds = Duration::try_from_secs_f64(options.seconds)
        .ok()
        .filter(|time| !time.is_zero())
        .ok_or_else(|| {
            Failure::usage(format!(
                "`--seconds` is a number above 0, such as `--seconds 30`, and {} is given",
                options.seconds
            ))
        })?;
    let simulation = run_on_virtual_time(plan, options.seed, seconds)?;
    let text = simulation.markdown();
    output.say(|| text.trim_end().to_owned(), || json_of(&simulation, &text))
}

/// Runs the simulation in a runtime of its own, whose clock moves when every task waits.
fn run_on_virtual_time(plan: &Plan, seed: u64, time: Duration) -> Result<Simulation, Failure> {
    let run = || {
        let runtime = Builder::new_current_thread().enable_time().start_paused(true).build();
        let runtime = runtime.map_err(|error| Failure::io("starting the runtime", &error))?;
        Ok(runtime.block_on(plan.simulate(seed, time))?)
    };
    // A thread of its own, because this one runs the command's tasks.
    thread::scope(|scope| scope.spawn(run).join()).unwrap_or_else(|_| {
        Err(Failure::new(crate::failure::FAILED, "Failed", "the simulation ended with a panic"))
    })
}

fn json_of(simulation: &Simulation, text: &str) -> Value {
    let mut value = json!(simulation);
    if let Value::Object(members) = &mut value {
        members.insert("markdown".to_owned(), json!(text));
    }
    value
}
