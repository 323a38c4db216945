use entable::prelude::*;

async fn read<E: TableEntity>(table: &Table<E>, path: impl Path<Entity = E>) {
    let _ = table.query(path);
}

async fn read_whole<E: TableEntity>(table: &Table<E>, path: impl Path<Entity = E, View: FullView>) {
    let _ = table.query(path);
}

fn main() {}
