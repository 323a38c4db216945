//! Tests copies that leave out a flattened struct whose prefix begins the names of other fields.

use entable::prelude::*;

use crate::store::{TestResult, on_both};

#[derive(Debug, Clone, Default, PartialEq, Properties)]
struct Address {
    city: String,
    zip: Option<String>,
}

#[derive(Debug, Clone, Default, PartialEq, Properties)]
struct Badge {
    number: i32,
}

#[derive(Debug, Clone, PartialEq, TableEntity)]
#[table(
    name = "FlatStaff",
    partition_key = "{department}",
    row_key = "empid_{id:06}",
    index(ByName, row_key = "name_{name}_{id:06}", except(home, badge)),
    index(
        Everywhere,
        partition_key = "all_{name}",
        row_key = "at_{department}_{id:06}",
        only(home_phone, home_work)
    )
)]
struct Employee {
    department: String,
    id: u32,
    name: String,
    #[table(flatten)]
    home: Address,
    home_phone: String,
    #[table(flatten)]
    home_work: Address,
    #[table(flatten(prefix = ""))]
    badge: Badge,
}

#[derive(Debug, Clone, PartialEq, Projection)]
#[table(of = Employee)]
struct Phone {
    id: u32,
    home_phone: String,
    home_work: Address,
}

fn address(city: &str) -> Address {
    Address { city: city.into(), zip: None }
}

fn employee() -> Employee {
    Employee {
        department: "Sales".into(),
        id: 1,
        name: "Hall".into(),
        home: address("Bonn"),
        home_phone: "1".into(),
        home_work: address("Kiel"),
        badge: Badge { number: 7 },
    }
}

/// Returns the phone numbers and the cities of work in the copies of both indexes.
async fn in_copies(staff: &Table<Employee>) -> Result<Vec<(String, String)>, Error> {
    let by_name = Employee::by_name().department("Sales").name("Hall").id(1);
    let everywhere = Employee::everywhere().name("Hall").department("Sales").id(1);
    let copies = [
        staff.get_as::<Phone>(by_name).await?.unwrap(),
        staff.get_as::<Phone>(everywhere).await?.unwrap(),
    ];
    let values = copies.into_iter().map(Stored::into_inner);
    Ok(values.map(|copy| (copy.home_phone, copy.home_work.city)).collect())
}

#[tokio::test]
async fn a_patch_changes_the_copies_that_hold_the_property() -> TestResult {
    on_both(async |store| {
        let staff = store.table::<Employee>().await;
        let point = || Employee::primary().department("Sales").id(1);
        let both = |phone: &str, city: &str| vec![(phone.to_owned(), city.to_owned()); 2];
        let don = staff.insert(&employee()).await?;
        let don = staff.patch(&don, Employee::patch().home_phone("2")).await?;
        assert_eq!(in_copies(&staff).await?, both("2", "Kiel"));
        staff.patch_at(point(), Employee::patch().home_phone("3")).await?;
        assert_eq!(in_copies(&staff).await?, both("3", "Kiel"));
        let mut egt = staff.transaction();
        egt.patch_at::<Employee>(point(), Employee::patch().home_work(address("Jena")))?;
        egt.commit().await?;
        assert_eq!(in_copies(&staff).await?, both("3", "Jena"));
        assert!(staff.check().await?.is_clean());
        drop(don);

        // No copy holds the badge, so the primary alone is written, unread.
        store.requests();
        staff.patch_at(point(), Employee::patch().badge(Badge { number: 8 })).await?;
        assert_eq!(store.requests().len(), 1);
        staff.patch_at(point(), Employee::patch().home(address("Ulm"))).await?;
        assert!(staff.check().await?.is_clean());
        Ok(())
    })
    .await
}

#[tokio::test]
async fn a_condition_on_copies_is_refused_for_the_properties_that_they_lack() -> TestResult {
    on_both(async |store| {
        let staff = store.table::<Employee>().await;
        staff.insert(&employee()).await?;
        let copies = |condition| {
            let path = Employee::by_name().department("Sales").name("Hall");
            staff.query(path).filter(condition).select::<Phone>()
        };
        assert_eq!(copies(Employee::HOME_PHONE.eq("1")).collect().await?.len(), 1);
        let at_work = Employee::HOME_WORK.at(Address::CITY).eq("Kiel");
        assert_eq!(copies(at_work).collect().await?.len(), 1);
        for (lacking, property) in [
            (Employee::HOME.at(Address::CITY).eq("Bonn"), "HomeCity"),
            (Employee::BADGE.at(Badge::NUMBER).eq(7), "Number"),
        ] {
            let error = copies(lacking).collect().await.unwrap_err();
            assert!(error.is_invalid() && error.to_string().contains(property), "{error}");
        }
        Ok(())
    })
    .await
}
