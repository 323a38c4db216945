use entable::prelude::*;

#[derive(TableEntity)]
#[table(partition_key = "{department}", row_key = "{id:06}")]
struct Employee {
    department: String,
    id: u32,
    age: i32,
}

async fn update(staff: Table<Employee>) {
    let _ = staff.update(Employee::primary().department("Sales"), |one| Ok(one.age += 1)).await;
}

async fn update_or_insert(staff: Table<Employee>, don: Employee) {
    let _ = staff.update_or_insert(Employee::primary(), don, |one| Ok(one.age += 1)).await;
}

async fn patch_at(staff: Table<Employee>) {
    let _ = staff.patch_at(Employee::primary().department("Sales"), Employee::patch().age(35)).await;
}

async fn delete_at(staff: Table<Employee>) {
    let _ = staff.delete_at(Employee::primary().department("Sales")).await;
}

async fn unlock(staff: Table<Employee>) {
    let _ = staff.unlock(Employee::primary().department("Sales")).await;
}

async fn transfer(staff: Table<Employee>, archive: Table<Employee>) {
    let _ = staff.transfer(Employee::primary().department("Sales"), &archive).await;
}

fn patch_in_transaction(transaction: &mut Transaction) {
    let _ = transaction.patch_at(Employee::primary().department("Sales"), Employee::patch().age(35));
}

fn delete_in_transaction(transaction: &mut Transaction) {
    let _ = transaction.delete_at(Employee::primary().department("Sales"));
}

fn delete_in_bulk(staff: Table<Employee>) {
    let _ = staff.bulk().delete_all([Employee::primary().department("Sales")]);
}

fn main() {}
