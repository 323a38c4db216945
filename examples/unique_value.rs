//! A value that is unique across partitions: one e-mail address, one account, whatever the region.
//!
//! The accounts of a region are in a partition of their own, and a transaction stays in one. The
//! copy by e-mail is in another partition, and is what keeps the address: it is reserved before the
//! account is written, and belongs to nobody if that fails.

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

fn at(region: &str, id: u32) -> Point<Account> {
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

    // Five requests: the claim, the reservation, the account, and two after the answer.
    recorder.clear();
    accounts.insert(&account("eu", 2, "Jun", "jun@contoso.com")).await?;
    client.wait_for_copies().await;
    assert_eq!(recorder.take().len(), 5);

    // Signing in is one read, in whatever region the account is.
    let jun = accounts.get(Account::by_email().email("Jun@Contoso.com")).await?;
    assert_eq!(jun.map(|jun| (jun.region.clone(), jun.id)), Some(("eu".into(), 2)));
    assert_eq!(recorder.take().len(), 1);

    // Another region, the same address: nothing is written, and the error says whose it is.
    let taken = accounts.insert(&account("us", 7, "Donald", "DON@contoso.com")).await;
    let Err(taken) = taken else { return Err(Error::new(ErrorKind::Conflict, "it was free")) };
    assert!(taken.is_unique_violation());
    assert_eq!(taken.index(), Some("ByEmail"));
    assert_eq!(taken.holder(), Some(("region_eu", "00000001")));
    assert!(accounts.get(at("us", 7)).await?.is_none());

    // Who changes the address leaves the old one to others.
    let patch = Account::patch().email("donald@contoso.com");
    accounts.patch_at(at("eu", 1), patch).await?;
    client.wait_for_copies().await;
    accounts.insert(&account("us", 7, "Donna", "don@contoso.com")).await?;

    // Two accounts of one region exchange their addresses in one transaction.
    let (Some(mut don), Some(mut jun)) =
        (accounts.get(at("eu", 1)).await?, accounts.get(at("eu", 2)).await?)
    else {
        return Ok(());
    };
    std::mem::swap(&mut don.email, &mut jun.email);
    let mut both = client.transaction();
    both.replace(&don)?.replace(&jun)?;
    both.commit().await?.wait_for_copies().await.ok();

    // An address moves with its account.
    let Some(mut donna) = accounts.get(at("us", 7)).await? else { return Ok(()) };
    donna.region = "eu".into();
    accounts.move_to(&donna, &accounts).await?.wait().await?;
    let found = accounts.get(Account::by_email().email("don@contoso.com")).await?;
    assert_eq!(found.map(|found| found.region.clone()).as_deref(), Some("eu"));

    // A writer that dies between its requests leaves a claim; a worker gives back what it reserved.
    let stats = client.worker().drain().await?;
    assert_eq!(stats.open, 0);
    Ok(())
}
