//! Keeps a series of values in one entity: messages per hour of an employee's day.
//!
//! Each hour is a property of the day's row (a data series). One merge of one property counts an hour,
//! and one read gets all of them for a plot. The design that was rejected stands beside it: a row for
//! each hour is as easy to write, and takes 24 reads.
#![allow(clippy::print_stdout, reason = "an example prints what it shows")]
#![allow(clippy::indexing_slicing, reason = "hours are 13 and 14")]

use entable::{
    backend::{
        Memory,
        layer::{Recorder, Request},
    },
    prelude::*,
};
use time::{Date, macros::date};

#[derive(Debug, Clone, PartialEq, TableEntity)]
#[table(name = "Messages", partition_key = "{employee:06}", row_key = "{day:%Y%m%d}")]
struct Day {
    employee: u32,
    day: Date,
    /// Messages in each hour: the properties `Sent00` to `Sent23`.
    #[table(series)]
    sent: [i32; 24],
    /// The employee's report of the day: up to 128 KiB in `Report` and `Report_2`.
    #[table(split(2))]
    report: String,
}

/// The rejected design: a row for each hour.
#[derive(Debug, Clone, PartialEq, TableEntity)]
#[table(name = "Messages", partition_key = "{employee:06}", row_key = "{day:%Y%m%d}_{hour:02}")]
struct Hour {
    employee: u32,
    day: Date,
    hour: u8,
    sent: i32,
}

#[derive(Debug, PartialEq, Projection)]
#[table(of = Day)]
struct Plot {
    sent: [i32; 24],
}

const DAY: Date = date!(2014 - 07 - 31);

fn day(employee: u32) -> Point<Day> {
    Day::primary().employee(employee).day(DAY)
}

#[tokio::main]
async fn main() -> Result<(), Box<dyn std::error::Error>> {
    let recorder = Recorder::around(Memory::new());
    let client = Client::builder().backend(recorder.clone()).build()?;
    let days: Table<Day> = client.table();
    days.create().await?;
    for employee in [223, 224] {
        days.insert(&Day { employee, day: DAY, sent: [0; 24], report: String::new() }).await?;
    }

    // An hour whose count is known: one merge of one property, whatever the other hours are.
    recorder.clear();
    days.patch_at(day(223), Day::patch().sent(9, 12)).await?;
    println!("set one hour:  {}", one(&recorder));

    // Many writers count: each reads, and merges the slot that it changed under the row's ETag.
    let writers: Vec<_> = (0..100)
        .map(|message| {
            let days = days.clone();
            tokio::spawn(async move {
                days.update(day(223), |it| {
                    it.sent[13 + message % 2] += 1;
                    Ok(())
                })
                .await
            })
        })
        .collect();
    for writer in writers {
        writer.await??;
    }

    // The plot takes one request, which asks for the series alone.
    recorder.clear();
    let plot = days.get_as::<Plot>(day(223)).await?.map(Stored::into_inner);
    let sent = plot.map_or([0; 24], |plot| plot.sent);
    assert_eq!((sent[9], sent[13], sent[14]), (12, 50, 50));
    assert_eq!(recorder.take().len(), 1);
    for (hour, sent) in sent.iter().enumerate().filter(|(_, sent)| **sent > 0) {
        println!("{hour:02}:00  {}", "#".repeat(usize::try_from(*sent / 2).unwrap_or_default()));
    }

    // A filter compares one slot.
    let busy = days.query(Day::scan()).filter(Day::SENT.at(13).ge(50));
    println!(
        "busy at one:   {} of {}",
        busy.count().await?,
        days.query(Day::scan()).count().await?
    );
    assert_eq!(busy.count().await?, 1);

    // A slot that the day does not have is returned by the verb; nothing is sent.
    let refused = days.patch_at(day(223), Day::patch().sent(24, 1)).await;
    assert!(refused.as_ref().is_err_and(Error::is_invalid));
    println!("hour 24:       {}", refused.err().map(|error| error.to_string()).unwrap_or_default());

    // The rejected design: 24 rows, and 24 point reads for the plot.
    let hours: Table<Hour> = client.table();
    let rows = (0..24).map(|hour| Hour { employee: 223, day: DAY, hour, sent: 1 });
    hours.bulk().insert_all(rows).await?.into_result()?;
    recorder.clear();
    let at = |hour| Hour::primary().employee(223).day(DAY).hour(hour);
    let read = hours.get_many((0..24).map(at)).await?;
    let total: i32 = read.iter().flatten().map(|hour| hour.sent).sum();
    let reads = recorder.take().len();
    println!("rejected:      {reads} reads for the plot, against 1");
    assert_eq!((total, reads), (24, 24));
    Ok(())
}

/// The one request since the last look.
fn one(recorder: &Recorder) -> String {
    let requests = recorder.take();
    assert_eq!(requests.len(), 1);
    requests.first().map(Request::to_string).unwrap_or_default()
}
