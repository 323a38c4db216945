//! Opens an account of Azure Table storage by an identity of Microsoft Entra ID, without any key.
//!
//! The identity needs a role on the account, `Storage Table Data Contributor`; the owner of the account has
//! none by default:
//!
//! ```sh
//! account=$(az storage account show --name contosostaff --query id --output tsv)
//! me=$(az ad signed-in-user show --query id --output tsv)
//! az role assignment create --assignee "$me" --scope "$account" --role "Storage Table Data Contributor"
//! cargo run --features azure --example azure_identity -- contosostaff developer
//! ```
//!
//! Without arguments the example shows what it would do, and sends nothing.
#![allow(clippy::print_stdout, reason = "an example prints what it shows")]

use std::sync::Arc;

use azure_identity::{
    DeveloperToolsCredential, ManagedIdentityCredential, WorkloadIdentityCredential,
};
use entable::{TokenCredential, prelude::*};

#[derive(Debug, Clone, PartialEq, TableEntity)]
#[table(name = "IdentityExample", partition_key = "{department}", row_key = "{id:06}")]
struct Employee {
    department: String,
    id: u32,
    name: String,
}

/// Returns the identity for the place where the program runs.
fn identity(place: &str) -> Result<Arc<dyn TokenCredential>, BoxError> {
    Ok(match place {
        // Yours, on your own machine: of `az login` or `azd auth login`.
        "developer" => DeveloperToolsCredential::new(None)?,
        // That of a virtual machine, an app service, a function or a container app.
        "machine" => ManagedIdentityCredential::new(None)?,
        // That of a pod in Kubernetes with workload identity.
        "workload" => WorkloadIdentityCredential::new(None)?,
        other => return Err(format!("`{other}` is none of developer, machine, workload").into()),
    })
}

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), BoxError> {
    let mut arguments = std::env::args().skip(1);
    let (account, place) = (arguments.next(), arguments.next());
    let place = place.as_deref().unwrap_or("developer");
    let credential = identity(place)?;
    let options = AzureOptions::from_token_credential(
        account.as_deref().unwrap_or("contosostaff"),
        credential,
    )?;
    // A token is fetched with the first request, shared by all requests, and renewed before it expires.
    let client = Client::azure(options)?;
    let staff: Table<Employee> = client.table();
    println!("{} opens by the identity of the {place}", client.table_url(staff.name())?);
    if account.is_none() {
        println!("nothing was sent: name an account to write and read an employee there");
        return Ok(());
    }

    staff.create_if_not_exists().await?;
    let don = Employee { department: "Sales".into(), id: 1, name: "Don Hall".into() };
    staff.insert_or_replace(&don).await?;
    let found = staff.get(Employee::primary().department("Sales").id(1)).await?;
    assert_eq!(found.as_deref(), Some(&don));
    println!("written and read: {don:?}");
    client.delete_table(staff.name()).await?;
    Ok(())
}
