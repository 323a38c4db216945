//! Sends the load of a plan to a simulated account, and compares the results with the plan's predictions.

use std::{
    collections::{BTreeMap, HashMap},
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    time::Duration,
};

use futures_util::{StreamExt, stream};
use serde::Serialize;
use tokio::{
    task::JoinSet,
    time::{Instant, sleep_until},
};

use super::{
    hot::HotPartition,
    plan::{Plan, PlannedCall, count_to_f64},
    question::PartitionUse,
    steps::{RequestKind, Step},
};
use crate::{
    backend::{Memory, layer::SimulatedAccount},
    error::{Error, ErrorKind, Result},
    limits::{
        ACCOUNT_REQUESTS_PER_SECOND, PAGE_ROWS, PARTITION_ENTITIES_PER_SECOND, saturating_usize,
    },
    random::RandomSource,
    timers,
};

/// The maximum number of requests in a simulation, which limits its time to some seconds and also its memory.
const MOST_REQUESTS: f64 = 5_000_000.0;
/// The mean time that an answer takes longer in a simulation, because timers count whole milliseconds.
const TIMER: Duration = Duration::from_micros(500);

/// The results of a plan's load on a simulated account, with the predictions. [`Plan::simulate`] returns it.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[non_exhaustive]
pub struct Simulation {
    /// The name of the plan.
    pub plan: String,
    /// The seed of the account's answers and of the calls' instants.
    pub seed: u64,
    /// The length of the simulation in seconds: the time in which calls began.
    pub seconds: f64,
    /// The figures of each pattern.
    pub calls: Vec<SimulatedCall>,
    /// The load of the account, then of the hottest partition of each row family.
    pub loads: Vec<SimulatedLoad>,
    /// The partitions that get more load than one partition can take, with advice.
    pub hot: Vec<HotPartition>,
}

/// The calls of one pattern in a simulation.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[non_exhaustive]
pub struct SimulatedCall {
    /// The name of the pattern.
    pub pattern: String,
    /// The calls that began.
    pub calls: u64,
    /// The requests of one call to the table store, as the plan predicts them.
    pub predicted_requests: u64,
    /// The requests that were sent, with those that were refused.
    pub requests: u64,
    /// The requests that were refused because the account or a partition was over its limit.
    pub refused: u64,
    /// The predicted time of a call: its round trips, each with the mean time of an answer.
    pub predicted_millis: f64,
    /// The mean time of the calls that were answered; `None` if there are none.
    pub mean_millis: Option<f64>,
    /// The 99th percentile of the times of the calls that were answered.
    pub p99_millis: Option<f64>,
}

/// The load of an account, or of the hottest partition of a row family.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[non_exhaustive]
pub struct SimulatedLoad {
    /// The table; `None` for the account.
    pub table: Option<String>,
    /// The template of the PartitionKey; `None` for the account.
    pub partition_key: Option<String>,
    /// Requests of the account, or entities of the partition, that the plan predicts for a second.
    pub predicted: f64,
    /// Requests or entities that the load asked for per second, in the unit of `predicted`.
    pub asked: f64,
    /// The part of `asked` that was answered rather than refused.
    pub answered: f64,
    /// The service's published limit of an account or a partition per second.
    pub target: f64,
}

impl SimulatedCall {
    /// Returns the share of the requests that were refused.
    pub fn refused_share(&self) -> f64 {
        count_to_f64(self.refused) / count_to_f64(self.requests.max(1))
    }
}

impl SimulatedLoad {
    /// Returns the refused share of the requests or entities that the load asked for.
    pub fn refused_share(&self) -> f64 {
        if self.asked > 0.0 { 1.0 - self.answered / self.asked } else { 0.0 }
    }
}

impl Plan {
    /// Sends the load of the plan to a [`SimulatedAccount`] for some time, and returns the results. Patterns without a
    /// rate send nothing.
    ///
    /// Each call sends the requests that the plan counts, stage by stage: point reads, pages, and transactions of the
    /// same sizes to partitions that share the load evenly. The requests contain no rows. A call ends with its first
    /// refused request; it is not tried again. Requests to blobs take the mean time of an answer.
    ///
    /// All waits use tokio's clock. Run it where the clock is paused, as a test with `#[tokio::test(start_paused =
    /// true)]` does: a minute of load then passes in less than a second.
    ///
    /// # Errors
    ///
    /// `is_invalid` for a plan without rates, and for more than five million requests.
    ///
    /// ```
    /// # use entable::prelude::*;
    /// use std::time::Duration;
    ///
    /// # #[derive(TableEntity)]
    /// # #[table(name = "Staff", partition_key = "{department}", row_key = "empid_{id:06}")]
    /// # pub struct Employee { pub department: String, pub id: u32 }
    /// entable::access_patterns! {
    ///     STAFF;
    ///     "employee by id" point get(Employee::primary().department("Sales").id(223)) at 4_000/s;
    /// }
    /// # tokio::runtime::Builder::new_current_thread().enable_time().start_paused(true).build().unwrap().block_on(async {
    /// let simulation = STAFF.plan().simulate(7, Duration::from_secs(5)).await?;
    /// // One partition takes 2,000 entities in a second, so about half of the calls are refused.
    /// let calls = &simulation.calls[0];
    /// assert_eq!(calls.calls, 20_000);
    /// assert!((9_000..11_000).contains(&calls.refused), "{calls:?}");
    /// # Ok::<(), Error>(())
    /// # }).unwrap();
    /// ```
    pub async fn simulate(&self, seed: u64, time: Duration) -> Result<Simulation> {
        self.check_size(time)?;
        let run = Arc::new(Run::new(self, seed, time));
        let mut patterns = JoinSet::new();
        for call in 0..self.calls.len() {
            patterns.spawn(run.clone().begin_calls(call, seed));
        }
        while patterns.join_next().await.is_some() {}
        Ok(run.simulation(self, seed))
    }

    fn check_size(&self, time: Duration) -> Result<()> {
        let requests = self.requests_per_second() * time.as_secs_f64();
        let message = match requests {
            _ if !requests.is_finite() || requests > MOST_REQUESTS => format!(
                "the simulation would send {requests:.0} requests, and {MOST_REQUESTS:.0} are the most: choose a \
                 shorter time, or multiply the load by less"
            ),
            _ if requests < 1.0 => format!(
                "the plan sends {requests:.3} requests in {} s, and there is nothing to simulate: give its patterns \
                 a rate, such as `at 20/s`, or choose a longer time",
                time.as_secs_f64()
            ),
            _ => return Ok(()),
        };
        Err(Error::new(ErrorKind::Invalid, message))
    }
}

/// A simulation that is running.
struct Run {
    calls: Vec<PlannedCall>,
    /// The number of each row family.
    families: BTreeMap<PartitionUse, u64>,
    account: SimulatedAccount,
    begun: Instant,
    time: Duration,
    state: Mutex<RunState>,
}

#[derive(Default)]
struct RunState {
    calls: Vec<CallState>,
    /// Entities that were asked for and answered, by row family and partition.
    entities: HashMap<(u64, u64), (u64, u64)>,
    /// Requests that were answered.
    answered: u64,
}

#[derive(Clone, Default)]
struct CallState {
    calls: u64,
    requests: u64,
    refused: u64,
    times: Vec<Duration>,
}

/// One request of a call.
#[derive(Clone, Copy)]
struct OneRequest {
    call: usize,
    /// Row family and partition.
    partition: Option<(u64, u64)>,
    kind: RequestKind,
    entities: u64,
}

impl Run {
    fn new(plan: &Plan, seed: u64, time: Duration) -> Self {
        let families = plan.partition_loads().into_keys().cloned().zip(0..).collect();
        let state =
            RunState { calls: vec![CallState::default(); plan.calls.len()], ..RunState::default() };
        Self {
            calls: plan.calls.clone(),
            families,
            account: SimulatedAccount::around(Memory::new(), seed),
            begun: Instant::now(),
            time,
            state: Mutex::new(state),
        }
    }

    fn lock(&self) -> MutexGuard<'_, RunState> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Begins the calls of a pattern. The time is divided evenly among the calls, and each begins at a random moment of
    /// its interval.
    async fn begin_calls(self: Arc<Self>, call: usize, seed: u64) {
        let Some(rate) = self.calls.get(call).map(|call| call.per_second) else { return };
        let random = RandomSource::seeded(seed ^ call as u64).fork_source();
        let (mut running, mut number) = (JoinSet::new(), 0);
        while count_to_f64(number + 1) <= rate * self.time.as_secs_f64() + 1e-6 {
            let at = (count_to_f64(number) + random_fraction(&random)) / rate;
            sleep_until(self.begun + Duration::from_secs_f64(at)).await;
            running.spawn(self.clone().make_call(call, number));
            while running.try_join_next().is_some() {}
            number += 1;
        }
        while running.join_next().await.is_some() {}
    }

    /// Sends the requests of one call, stage by stage, until one is refused.
    async fn make_call(self: Arc<Self>, call: usize, number: u64) {
        let Some(planned) = self.calls.get(call) else { return };
        if let Some(state) = self.lock().calls.get_mut(call) {
            state.calls += 1;
        }
        let (begun, mut is_answered) = (Instant::now(), false);
        for stage in planned
            .steps
            .chunk_by(|one, next| (one.stage, one.is_after) == (next.stage, next.is_after))
        {
            let is_after = stage.first().is_some_and(|step| step.is_after);
            if is_after && !std::mem::replace(&mut is_answered, true) {
                self.note_time(call, begun);
            }
            if !self.send_stage(call, number, planned, stage).await {
                return;
            }
        }
        if !is_answered {
            self.note_time(call, begun);
        }
    }

    fn note_time(&self, call: usize, begun: Instant) {
        if let Some(state) = self.lock().calls.get_mut(call) {
            state.times.push(begun.elapsed());
        }
    }

    /// Sends the requests of one stage, and returns whether all were answered.
    async fn send_stage(
        &self,
        call: usize,
        number: u64,
        planned: &PlannedCall,
        stage: &[Step],
    ) -> bool {
        let at_once = stage.iter().map(|step| step.at_once).fold(0, u64::saturating_add);
        let mut requests = Vec::new();
        for step in stage {
            let family = step.partition.as_ref().and_then(|partition| self.families.get(partition));
            for index in 0..step.requests {
                let partition =
                    family.map(|family| (*family, partition_of(planned, step, number, index)));
                let entities = share_of(step.entities, step.requests, index);
                let request = OneRequest { call, partition, kind: step.kind, entities };
                requests.push(self.send(request));
            }
        }
        let sent = stream::iter(requests);
        // All answers are waited for: a refused request does not take the others back.
        sent.buffer_unordered(saturating_usize(at_once))
            .fold(true, |all, one| std::future::ready(all && one))
            .await
    }

    /// Sends one request, and returns whether it was answered.
    async fn send(&self, request: OneRequest) -> bool {
        let entities = saturating_usize(request.entities);
        let partition = request.partition.map(|(family, partition)| (family << 40) | partition);
        let answer = match request.kind {
            RequestKind::Blob => {
                timers::sleep(self.account.mean_latency()).await;
                return true;
            }
            // The rows of a page are known after it was read.
            RequestKind::Page => {
                self.account.answer(partition, 0, entities.min(PAGE_ROWS as usize)).await
            }
            _ => self.account.answer(partition, entities, 0).await,
        };
        let (mut state, is_answered) = (self.lock(), answer.is_ok());
        if let Some(call) = state.calls.get_mut(request.call) {
            call.requests += 1;
            call.refused += u64::from(!is_answered);
        }
        state.answered += u64::from(is_answered);
        if let Some(partition) = request.partition {
            let (asked, answered) = state.entities.entry(partition).or_default();
            *asked += request.entities;
            *answered += if is_answered { request.entities } else { 0 };
        }
        is_answered
    }

    fn simulation(&self, plan: &Plan, seed: u64) -> Simulation {
        let mut state = self.lock();
        let answer = self.account.mean_latency() + TIMER;
        let calls = self.calls.iter().zip(&mut state.calls);
        let calls = calls.map(|(planned, state)| state.figures(planned, answer)).collect();
        Simulation {
            plan: plan.name.clone(),
            seed,
            seconds: self.time.as_secs_f64(),
            calls,
            loads: self.loads(plan, &state),
            hot: plan.hot_partitions(),
        }
    }

    fn loads(&self, plan: &Plan, state: &RunState) -> Vec<SimulatedLoad> {
        let a_second = |count: u64| count_to_f64(count) / self.time.as_secs_f64();
        let requests = state.calls.iter().map(|call| call.requests).sum();
        let account = SimulatedLoad {
            table: None,
            partition_key: None,
            predicted: plan.requests_per_second(),
            asked: a_second(requests),
            answered: a_second(state.answered),
            target: ACCOUNT_REQUESTS_PER_SECOND.into(),
        };
        let partitions = plan.partition_loads().into_iter().map(|(partition, load)| {
            let family = self.families.get(partition);
            let of_family = state.entities.iter().filter(|((of, _), _)| Some(of) == family);
            let hottest = of_family.map(|(_, entities)| *entities).max().unwrap_or_default();
            SimulatedLoad {
                table: Some(partition.table.clone()),
                partition_key: Some(partition.key.clone()),
                predicted: load.total(),
                asked: a_second(hottest.0),
                answered: a_second(hottest.1),
                target: PARTITION_ENTITIES_PER_SECOND.into(),
            }
        });
        std::iter::once(account).chain(partitions).collect()
    }
}

impl CallState {
    fn figures(&mut self, planned: &PlannedCall, answer: Duration) -> SimulatedCall {
        self.times.sort_unstable();
        let millis = |time: Duration| time.as_secs_f64() * 1_000.0;
        let answered = self.times.len();
        let sum: Duration = self.times.iter().sum();
        SimulatedCall {
            pattern: planned.name.clone(),
            calls: self.calls,
            predicted_requests: planned.requests.total(),
            requests: self.requests,
            refused: self.refused,
            predicted_millis: millis(answer) * count_to_f64(planned.requests.round_trips),
            mean_millis: (answered > 0).then(|| millis(sum) / count_to_f64(answered as u64)),
            p99_millis: self.times.get(answered * 99 / 100).copied().map(millis),
        }
    }
}

/// Returns the partition of a request. The calls of a pattern use the pattern's partitions in turn. The requests of one
/// call use in turn the partitions that the call is spread over.
fn partition_of(planned: &PlannedCall, step: &Step, number: u64, index: u64) -> u64 {
    let spread = step.spread.max(1);
    (number % planned.partitions.max(1)) * spread + index % spread
}

/// Divides `whole` rows evenly among `requests` requests, and returns the rows of request `index`.
fn share_of(whole: u64, requests: u64, index: u64) -> u64 {
    let requests = requests.max(1);
    whole / requests + u64::from(index < whole % requests)
}

/// Returns a random number that is at least 0 and below 1.
fn random_fraction(random: &RandomSource) -> f64 {
    count_to_f64(random.random_number() >> 11) / count_to_f64(1 << 53)
}
