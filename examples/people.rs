//! Shows inheritance and a join: two types of people with a common base, joined in the program with a
//! small table of countries.
#![allow(clippy::print_stdout, reason = "an example prints what it shows")]

use std::time::Duration;

use entable::prelude::*;

/// The base: the fields of every person, flattened into each type.
#[derive(Debug, Clone, PartialEq, Properties)]
struct Person {
    first_name: String,
    last_name: String,
    country: String,
}

#[derive(Debug, Clone, PartialEq, TableEntity)]
#[table(name = "Person", partition_key = "person_{region}", row_key = "customer_{id:06}")]
struct Customer {
    region: String,
    id: u32,
    #[table(flatten(prefix = ""))]
    person: Person,
    credit: f64,
}

#[derive(Debug, Clone, PartialEq, TableEntity)]
#[table(name = "Person", partition_key = "person_{region}", row_key = "employee_{id:06}")]
struct Employee {
    region: String,
    id: u32,
    #[table(flatten(prefix = ""))]
    person: Person,
    salary: Option<f64>,
}

/// A customer or an employee; the property `EntityType` of the row tells which.
#[derive(Debug, Clone, PartialEq, EntitySet)]
enum AnyPerson {
    Customer(Customer),
    Employee(Employee),
}

impl AnyPerson {
    fn person(&self) -> &Person {
        match self {
            Self::Customer(customer) => &customer.person,
            Self::Employee(employee) => &employee.person,
        }
    }
}

/// A small table that rarely changes.
#[derive(Debug, Clone, PartialEq, TableEntity)]
#[table(name = "Countries", partition_key = "countries", row_key = "{code}")]
struct Country {
    code: String,
    name: String,
}

fn person(first_name: &str, country: &str) -> Person {
    Person { first_name: first_name.into(), last_name: "Hall".into(), country: country.into() }
}

#[tokio::main]
async fn main() -> Result<(), Error> {
    let client = Client::memory();
    let countries: Table<Country> = client.table();
    countries.create().await?;
    client.create_table("Person").await?;
    let named = [("de", "Germany"), ("fr", "France")];
    let rows = named.map(|(code, name)| Country { code: code.into(), name: name.into() });
    client.bulk().insert_all(rows).await?.into_result()?;

    // Both types share a partition, so one transaction can write them.
    let region = || "eu".to_owned();
    let don =
        Employee { region: region(), id: 1, person: person("Don", "de"), salary: Some(4_000.0) };
    let jun = Customer { region: region(), id: 1, person: person("Jun", "fr"), credit: 10.0 };
    let people = client.set::<AnyPerson>("Person");
    let mut egt = people.transaction();
    egt.insert(&AnyPerson::from(don))?.insert(&AnyPerson::from(jun))?;
    egt.commit().await?;

    // One query filters by a field of the base. The lookup reads the countries once, however many people
    // are found.
    let lookup = Lookup::new(countries.query(Country::primary()), Duration::from_secs(600));
    let halls = people.query(Keys::partition("person_eu")).filter(Filter::eq("LastName", "Hall"));
    let mut homes = Vec::new();
    for person in halls.collect().await? {
        let country = lookup.get(&Country::primary().code(&person.person().country)).await?;
        let home = country.map(|country| country.name.clone()).unwrap_or_default();
        homes.push((person.member_name(), person.person().first_name.clone(), home));
    }
    let expected = [("Customer", "Jun", "France"), ("Employee", "Don", "Germany")];
    let expected = expected.map(|(kind, name, home)| (kind, name.to_owned(), home.to_owned()));
    homes.iter().for_each(|(kind, name, home)| println!("{kind} {name} lives in {home}"));
    assert_eq!(homes, expected);

    // A lookup may be as old as its time to live. `refresh` reads the table now.
    countries.insert(&Country { code: "it".into(), name: "Italy".into() }).await?;
    let italy = || Country::primary().code("it");
    assert!(lookup.get(&italy()).await?.is_none());
    lookup.refresh().await?;
    assert!(lookup.get(&italy()).await?.is_some());
    println!("a new country is found after a refresh");

    // A raise concerns employees alone: the table of that type reads its own rows, and writes no customer.
    let employees: Table<Employee> = client.table();
    let all = employees.query(Employee::primary().region("eu"));
    let raise = employees.bulk().update_all(all, |employee| {
        if let Some(salary) = &mut employee.salary {
            *salary *= 1.1;
        }
        Ok(())
    });
    let report = raise.await?;
    println!("raised {} salary, requests: {}", report.done, report.requests);
    assert_eq!(report.done, 1);
    Ok(())
}
