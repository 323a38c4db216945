//! Models the service as a list of entities: slow, plain, and independent of the code under test.

use std::{cmp::Ordering, collections::BTreeMap};

use entable::{Comparison, Continuation, Filter, Value, Verb};

/// Why the service says no: its code, and the operation that it names.
pub(crate) type Refusal = (&'static str, Option<usize>);

/// One entity. A version is a number that no other write has.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Entity {
    pub(crate) keys: (String, String),
    pub(crate) properties: BTreeMap<String, Value>,
    pub(crate) version: usize,
}

/// The condition that a write places on the row.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Expect {
    Any,
    Version(usize),
}

#[derive(Debug, Clone)]
pub(crate) struct Write {
    pub(crate) verb: Verb,
    pub(crate) keys: (String, String),
    pub(crate) properties: BTreeMap<String, Value>,
    pub(crate) expect: Expect,
}

#[derive(Debug, Default)]
pub(crate) struct Model {
    tables: Vec<(String, Vec<Entity>)>,
    writes: usize,
}

impl Model {
    fn find(&self, table: &str) -> Option<usize> {
        self.tables.iter().position(|(name, _)| name.eq_ignore_ascii_case(table))
    }

    /// Section 3, table operations.
    pub(crate) fn create(&mut self, table: &str) -> Result<(), Refusal> {
        if self.find(table).is_some() {
            return Err(("TableAlreadyExists", None));
        }
        self.tables.push((table.to_owned(), Vec::new()));
        Ok(())
    }

    pub(crate) fn drop_table(&mut self, table: &str) -> Result<(), Refusal> {
        let at = self.find(table).ok_or(("ResourceNotFound", None))?;
        self.tables.remove(at);
        Ok(())
    }

    pub(crate) fn table_names(&self) -> Vec<String> {
        let mut names: Vec<String> = self.tables.iter().map(|(name, _)| name.clone()).collect();
        names.sort_by_key(|name| name.to_lowercase());
        names
    }

    pub(crate) fn read(
        &self,
        table: &str,
        keys: &(String, String),
    ) -> Result<Option<Entity>, Refusal> {
        let at = self.find(table).ok_or(("TableNotFound", None))?;
        Ok(self.tables[at].1.iter().find(|entity| entity.keys == *keys).cloned())
    }

    /// Section 4.1: order, and the entities that match.
    pub(crate) fn query(&self, table: &str, filter: &Filter) -> Result<Vec<Entity>, Refusal> {
        let at = self.find(table).ok_or(("TableNotFound", None))?;
        let mut found: Vec<Entity> =
            self.tables[at].1.iter().filter(|entity| matches(entity, filter)).cloned().collect();
        found.sort_by_key(|entity| (units(&entity.keys.0), units(&entity.keys.1)));
        Ok(found)
    }

    /// Section 4.1: what a continuation has ahead of it, which names the next entity.
    pub(crate) fn query_from(
        &self,
        table: &str,
        filter: &Filter,
        from: Option<&Continuation>,
    ) -> Result<Vec<Entity>, Refusal> {
        let mut found = self.query(table, filter)?;
        if let Some(from) = from {
            let first = (units(&from.partition_key), units(from.row_key.as_deref().unwrap_or("")));
            found.retain(|entity| (units(&entity.keys.0), units(&entity.keys.1)) >= first);
        }
        Ok(found)
    }

    /// Section 5: all of it or nothing. The versions that the writes leave.
    pub(crate) fn apply(
        &mut self,
        table: &str,
        writes: &[Write],
    ) -> Result<Vec<Option<usize>>, Refusal> {
        for (index, write) in writes.iter().enumerate() {
            let earlier = &writes[..index];
            if earlier.first().is_some_and(|first| first.keys.0 != write.keys.0) {
                return Err(("CommandsInBatchActOnDifferentPartitions", Some(index)));
            }
            if earlier.iter().any(|other| other.keys.1 == write.keys.1) {
                return Err(("InvalidDuplicateRow", Some(index)));
            }
        }
        let at = self.find(table).ok_or(("TableNotFound", Some(0)))?;
        let mut entities = self.tables[at].1.clone();
        let mut versions = Vec::new();
        let mut count = self.writes;
        for (index, write) in writes.iter().enumerate() {
            count += 1;
            let version = carry_out(&mut entities, write, count);
            versions.push(version.map_err(|code| (code, Some(index)))?);
        }
        self.writes = count;
        self.tables[at].1 = entities;
        Ok(versions)
    }
}

/// Section 3, row by row of its table.
fn carry_out(
    entities: &mut Vec<Entity>,
    write: &Write,
    version: usize,
) -> Result<Option<usize>, &'static str> {
    let at = entities.iter().position(|entity| entity.keys == write.keys);
    let conditional = matches!(write.verb, Verb::Replace | Verb::Merge | Verb::Delete);
    if conditional {
        let Some(at) = at else { return Err("ResourceNotFound") };
        if let Expect::Version(expected) = write.expect
            && expected != entities[at].version
        {
            return Err("UpdateConditionNotSatisfied");
        }
    }
    if write.verb == Verb::Insert && at.is_some() {
        return Err("EntityAlreadyExists");
    }
    let old = at.map(|at| entities.remove(at));
    if write.verb == Verb::Delete {
        return Ok(None);
    }
    let mut properties = match (write.verb, old) {
        (Verb::Merge | Verb::InsertOrMerge, Some(old)) => old.properties,
        _ => BTreeMap::new(),
    };
    properties.extend(write.properties.clone());
    entities.push(Entity { keys: write.keys.clone(), properties, version });
    Ok(Some(version))
}

fn units(text: &str) -> Vec<u16> {
    text.encode_utf16().collect()
}

/// Sections 4.2 to 4.4.
fn matches(entity: &Entity, filter: &Filter) -> bool {
    let property = |name: &str| match name {
        "PartitionKey" => Some(Value::from(entity.keys.0.as_str())),
        "RowKey" => Some(Value::from(entity.keys.1.as_str())),
        name => entity.properties.get(name).cloned(),
    };
    match filter {
        Filter::Constant(constant) => *constant,
        Filter::Property(name) => property(name) == Some(Value::Boolean(true)),
        Filter::Not(filter) => !matches(entity, filter),
        Filter::And(all) => all.iter().all(|filter| matches(entity, filter)),
        Filter::Or(any) => any.iter().any(|filter| matches(entity, filter)),
        Filter::Compare { property: name, comparison, value } => {
            property(name).is_some_and(|stored| {
                let order = order(&stored, value);
                match comparison {
                    Comparison::Eq => order.is_eq(),
                    Comparison::Ne => order.is_ne(),
                    Comparison::Gt => order.is_gt(),
                    Comparison::Ge => order.is_ge(),
                    Comparison::Lt => order.is_lt(),
                    Comparison::Le => order.is_le(),
                }
            })
        }
        other => panic!("the model knows no {other:?}"),
    }
}

/// Section 4.3. The histories hold small numbers only, which are exact as doubles.
fn order(stored: &Value, literal: &Value) -> Ordering {
    let widens = matches!(
        (stored, literal),
        (Value::Int32(_), Value::Int32(_))
            | (Value::Int64(_), Value::Int32(_) | Value::Int64(_))
            | (Value::Double(_), Value::Int32(_) | Value::Int64(_) | Value::Double(_))
    );
    let number = |value: &Value| match value {
        Value::Int32(n) => f64::from(*n),
        Value::Int64(n) => *n as f64,
        Value::Double(n) => *n,
        other => panic!("{other:?} is no number"),
    };
    match (stored, literal) {
        _ if widens => number(stored).partial_cmp(&number(literal)).expect("no NaN"),
        (Value::String(a), Value::String(b)) => units(a).cmp(&units(b)),
        (Value::Boolean(a), Value::Boolean(b)) => a.cmp(b),
        (Value::Binary(a), Value::Binary(b)) => a.cmp(b),
        (Value::Guid(a), Value::Guid(b)) => a.to_string().cmp(&b.to_string()),
        (Value::DateTime(a), Value::DateTime(b)) => a.get().cmp(&b.get()),
        _ => Ordering::Less,
    }
}
