//! Keeps a value unique across partitions: one account for an e-mail address, in all regions.
//!
//! Each region is a partition, and a transaction stays in one partition. The copy by e-mail is remote
//! (in another partition). It serves as the reservation of the address: it is inserted before the
//! account is written, and removed if the write fails. A claim, a row beside the account, names the
//! reservations of a transaction while it runs.
#![allow(clippy::print_stdout, reason = "an example prints what it shows")]

use entable::{
    ErrorKind,
    backend::{Memory, layer::Recorder},
    prelude::*,
};

#[derive(Debug, Clone, PartialEq, TableEntity)]
#[table(
    name = "Accounts",
    partition_key = "region_{region}",
    row_key = "{id:08}",
    index(ByEmail, partition_key = "email_{email:lower}", row_key = "account", unique)
)]
struct Account {
    region: String,
    id: u32,
    name: String,
    email: String,
}

fn account(region: &str, id: u32, name: &str, email: &str) -> Account {
    Account { region: region.into(), id, name: name.into(), email: email.into() }
}

fn point(region: &str, id: u32) -> Point<Account> {
    Account::primary().region(region).id(id)
}

#[tokio::main]
async fn main() -> Result<(), Error> {
    let recorder = Recorder::around(Memory::new());
    let client = Client::builder().backend(recorder.clone()).build()?;
    let accounts: Table<Account> = client.table();
    accounts.create().await?;
    accounts.insert(&account("eu", 1, "Don", "don@contoso.com")).await?;
    client.wait_for_copies().await;

    // An insert takes five requests: the claim, the reservation, the account, and two that confirm. On
    // Azure these two follow the answer; memory and a file answer after them.
    recorder.clear();
    accounts.insert(&account("eu", 2, "Jun", "jun@contoso.com")).await?;
    client.wait_for_copies().await;
    let requests = recorder.take().len();
    println!("an insert with a unique value: {requests} requests");
    assert_eq!(requests, 5);

    // A lookup by the address is one read, whatever the region of the account.
    let jun = accounts.get(Account::by_email().email("Jun@Contoso.com")).await?;
    let requests = recorder.take().len();
    let jun = jun.map(|jun| (jun.region.clone(), jun.id));
    println!("by address: {jun:?}, {requests} request");
    assert_eq!(jun, Some(("eu".into(), 2)));
    assert_eq!(requests, 1);

    // An address that an account of another region has is refused: nothing is written, and the error
    // names the holder.
    let taken = accounts.insert(&account("us", 7, "Donald", "DON@contoso.com")).await;
    let Err(taken) = taken else { return Err(Error::new(ErrorKind::Conflict, "it was free")) };
    println!("refused: {taken}");
    assert!(taken.is_unique_violation());
    assert_eq!(taken.index(), Some("ByEmail"));
    assert_eq!(taken.holder(), Some(("region_eu", "00000001")));
    assert!(accounts.get(point("us", 7)).await?.is_none());

    // A changed address frees the old one.
    let patch = Account::patch().email("donald@contoso.com");
    accounts.patch_at(point("eu", 1), patch).await?;
    client.wait_for_copies().await;
    accounts.insert(&account("us", 7, "Donna", "don@contoso.com")).await?;
    println!("a freed address was taken by another account");

    // Two accounts of one region exchange their addresses in one transaction.
    let (Some(mut don), Some(mut jun)) =
        (accounts.get(point("eu", 1)).await?, accounts.get(point("eu", 2)).await?)
    else {
        return Ok(());
    };
    std::mem::swap(&mut don.email, &mut jun.email);
    let mut both = client.transaction();
    both.replace(&don)?.replace(&jun)?;
    both.commit().await?.wait_for_copies().await.ok();
    println!("two accounts exchanged their addresses in one transaction");

    // A move to another partition takes the address along.
    let Some(mut donna) = accounts.get(point("us", 7)).await? else { return Ok(()) };
    donna.region = "eu".into();
    accounts.move_to(&donna, &accounts).await?.wait().await?;
    let found = accounts.get(Account::by_email().email("don@contoso.com")).await?;
    let region = found.map(|found| found.region.clone());
    println!("after a move the address leads to region {region:?}");
    assert_eq!(region.as_deref(), Some("eu"));

    // A writer that dies between its requests leaves a claim; a worker frees its reservations.
    let stats = client.worker().drain().await?;
    assert_eq!(stats.open, 0);
    Ok(())
}
