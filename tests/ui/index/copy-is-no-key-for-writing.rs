use entable::prelude::*;

#[derive(TableEntity)]
#[table(
    partition_key = "{department}",
    row_key = "id_{id:06}",
    index(ByName, row_key = "name_{name}"),
    index(ByAge, row_key = "age_{age:03}", only(name)),
)]
struct Person {
    department: String,
    id: u32,
    name: String,
    age: u8,
}

async fn remove(staff: Table<Person>) -> Result<(), Error> {
    let path = Person::by_name().department("Sales").name("Jones");
    staff.delete_at(path.clone()).await?;
    staff.update(path.clone(), |one| Ok(one.age += 1)).await?;
    staff.transaction().delete_at(path)?;
    staff.delete_at(Person::by_age().department("Sales").age(34)).await?;
    Ok(())
}

fn main() {}
