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

async fn a_range_is_no_point(staff: Table<Employee>) {
    let _ = staff.get(Employee::primary().department("Sales").id_range(100..=199)).await;
}

async fn a_prefix_is_no_point(staff: Table<Employee>) {
    let _ = staff.delete_at(Employee::by_name().department("Sales").name_prefix("J")).await;
}

async fn a_partition_is_no_point(staff: Table<Employee>) {
    let all: Partition<Employee> = Employee::primary().department("Sales").into();
    let _ = staff.update(all, |one| Ok(one.name.clear())).await;
}

fn a_scan_is_no_point(transaction: &mut Transaction) {
    let _ = transaction.delete_at(Employee::scan());
}

async fn a_point_is_no_index(staff: Table<Employee>) {
    let _ = staff.rebuild(Employee::primary().department("Sales").id(223)).await;
}

async fn a_point_is_no_list(staff: Table<Employee>) {
    let _ = staff.keys(Employee::primary().department("Sales").id(223)).await;
}

fn main() {}
