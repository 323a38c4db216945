use entable::prelude::*;

#[derive(TableEntity)]
#[table(
    partition_key = "{department}",
    row_key = "{id:06}",
    index(ByName, row_key = "name_{name}_{id:06}")
)]
struct Employee {
    department: String,
    id: u32,
    name: String,
}

#[derive(Projection)]
#[table(of = Employee)]
struct Name {
    name: String,
}

struct Plain {
    name: String,
}

async fn read(staff: Table<Employee>) -> Result<(), Error> {
    staff.get(Employee::primary().departmnet("Sales").id(7)).await?;
    staff.get(Employee::by_nmae().department("Sales").name("Jones").id(7)).await?;
    let point = Employee::primary().department("Sales").id(7);
    staff.get_as::<Nmae>(point.clone()).await?;
    staff.get_as::<Plain>(point.clone()).await?;
    staff.patch_at(point, Employee::patch().nmae("Jones")).await?;
    staff.query(Employee::scan()).filter(Employee::NMAE.eq("Jones")).collect().await?;
    Ok(())
}

fn main() {}
