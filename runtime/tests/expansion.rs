//! What `#[derive(TableEntity)]` writes, by hand, for the entity of the design:
//! the contract between the macro crate and the runtime.
#![allow(missing_docs, dead_code, unreachable_pub, non_upper_case_globals)]
#![no_implicit_prelude]

use ::entable::{DynamicEntity, Filter, Keys, Path as _, Row, Stored, TableEntity as _};
use ::std::{
    assert, assert_eq,
    boxed::Box,
    convert::Into,
    option::Option,
    result::Result::{self, Ok},
    string::String,
    string::ToString,
};

#[derive(Debug, Clone, PartialEq)]
pub struct Employee {
    pub department: String,
    pub id: u32,
    pub first_name: String,
    pub age: i32,
    pub salary: Option<f64>,
    pub tags: ::std::vec::Vec<String>, // #[table(json)]
    pub home: Address,                 // #[table(flatten(prefix = "Home"))]
}

#[derive(Debug, Clone, PartialEq)]
pub struct Address {
    pub city: String,
}
use ::std::{clone::Clone, cmp::PartialEq, fmt::Debug};

const _: () = {
    use ::entable::__private as _rt;

    pub struct Slots<'r> {
        city: _rt::Option<_rt::ValueRef<'r>>,
        _of: _rt::PhantomData<&'r ()>,
    }
    impl<'r> _rt::Default for Slots<'r> {
        fn default() -> Self {
            Slots { city: _rt::None, _of: _rt::PhantomData }
        }
    }
    impl _rt::Properties for Address {
        type Slots<'r> = Slots<'r>;
        const COLUMNS: &'static [_rt::ColumnSchema] = &[_rt::ColumnSchema {
            name: "City",
            edm: _rt::Some(<<String as _rt::Property>::Scalar as _rt::EdmValue>::EDM),
            optional: <String as _rt::Property>::OPTIONAL,
            stored: true,
            nested: &[],
        }];
        fn write(&self, out: &mut _rt::PropertyWriter<'_>) -> _rt::Result<()> {
            _rt::PropertyWriter::put(out, "City", &self.city)?;
            _rt::Ok(())
        }
        fn offer<'r>(
            slots: &mut Self::Slots<'r>,
            name: &'r [u8],
            value: _rt::ValueRef<'r>,
        ) -> bool {
            match name {
                b"City" => slots.city = _rt::Some(value),
                _ => return false,
            }
            true
        }
        fn finish(slots: Self::Slots<'_>, prefix: &str) -> _rt::Result<Self> {
            _rt::Ok(Self { city: _rt::finish_property(slots.city, prefix, "City")? })
        }
    }
    impl Address {
        pub const CITY: _rt::Column<Self, String> =
            _rt::Column::property("City", _rt::read_property::<String>);
    }
};

const _: () = {
    use ::entable::__private as _rt;

    static PRIMARY: _rt::Family = _rt::Family {
        name: "Primary",
        kind: _rt::FamilyKind::Primary,
        partition: _rt::Template {
            text: "{department}",
            segments: &[_rt::Segment::Part(_rt::Part {
                field: "Department",
                form: _rt::Form::Plain,
                width: <String as _rt::KeyPart>::WIDTH,
            })],
        },
        row: _rt::Template {
            text: "empid_{id:06}",
            segments: &[
                _rt::Segment::Literal("empid_"),
                _rt::Segment::Part(_rt::Part {
                    field: "Id",
                    form: _rt::Form::Width(6),
                    width: _rt::Some(6),
                }),
            ],
        },
    };

    static SCHEMA: _rt::Schema = _rt::Schema {
        entity: "Employee",
        table: "Staff",
        entity_type: "Employee",
        version: 1,
        marker: "Employee",
        discriminator: _rt::Discriminator::Property("EntityType"),
        families: &[PRIMARY_FAMILY],
        columns: &[
            _rt::ColumnSchema {
                name: "Department",
                edm: _rt::None,
                optional: false,
                stored: false,
                nested: &[],
            },
            _rt::ColumnSchema {
                name: "Id",
                edm: _rt::None,
                optional: false,
                stored: false,
                nested: &[],
            },
            _rt::ColumnSchema {
                name: "FirstName",
                edm: _rt::Some(<<String as _rt::Property>::Scalar as _rt::EdmValue>::EDM),
                optional: <String as _rt::Property>::OPTIONAL,
                stored: true,
                nested: &[],
            },
            _rt::ColumnSchema {
                name: "Age",
                edm: _rt::Some(<<i32 as _rt::Property>::Scalar as _rt::EdmValue>::EDM),
                optional: <i32 as _rt::Property>::OPTIONAL,
                stored: true,
                nested: &[],
            },
            _rt::ColumnSchema {
                name: "Salary",
                edm: _rt::Some(<<Option<f64> as _rt::Property>::Scalar as _rt::EdmValue>::EDM),
                optional: <Option<f64> as _rt::Property>::OPTIONAL,
                stored: true,
                nested: &[],
            },
            _rt::ColumnSchema {
                name: "Tags",
                edm: _rt::Some(_rt::EdmType::String),
                optional: false,
                stored: true,
                nested: &[],
            },
            _rt::ColumnSchema {
                name: "Home",
                edm: _rt::None,
                optional: false,
                stored: true,
                nested: <Address as _rt::Properties>::COLUMNS,
            },
        ],
    };
    // In the real expansion PRIMARY and this are one const.
    const PRIMARY_FAMILY: _rt::Family = _rt::Family {
        name: "Primary",
        kind: _rt::FamilyKind::Primary,
        partition: _rt::Template {
            text: "{department}",
            segments: &[_rt::Segment::Part(_rt::Part {
                field: "Department",
                form: _rt::Form::Plain,
                width: <String as _rt::KeyPart>::WIDTH,
            })],
        },
        row: _rt::Template {
            text: "empid_{id:06}",
            segments: &[
                _rt::Segment::Literal("empid_"),
                _rt::Segment::Part(_rt::Part {
                    field: "Id",
                    form: _rt::Form::Width(6),
                    width: _rt::Some(6),
                }),
            ],
        },
    };

    const _: () = _rt::assert_separated(
        &PRIMARY_FAMILY.row,
        "two parts of variable width with nothing between them",
    );
    const _: () = _rt::assert_properties(SCHEMA.columns, 1, "more than 252 properties");

    impl _rt::FromRow for Employee {
        fn columns() -> _rt::Option<_rt::Vec<_rt::String>> {
            _rt::None
        }

        fn from_row(row: &_rt::Row) -> _rt::Result<Self> {
            let [__p0] = _rt::split_key::<1>(
                &PRIMARY.partition,
                "PartitionKey",
                _rt::Row::partition_key(row),
            )?;
            let [__r0] = _rt::split_key::<1>(&PRIMARY.row, "RowKey", _rt::Row::row_key(row))?;
            let mut __f2: _rt::Option<_rt::ValueRef<'_>> = _rt::None;
            let mut __f3: _rt::Option<_rt::ValueRef<'_>> = _rt::None;
            let mut __f4: _rt::Option<_rt::ValueRef<'_>> = _rt::None;
            let mut __f5: _rt::Option<_rt::ValueRef<'_>> = _rt::None;
            let mut __f6: <Address as _rt::Properties>::Slots<'_> = _rt::Default::default();
            let mut __properties = _rt::Row::properties(row);
            while let _rt::Some((__name, __value)) = __properties.next()? {
                match __name {
                    b"FirstName" => __f2 = _rt::Some(__value),
                    b"Age" => __f3 = _rt::Some(__value),
                    b"Salary" => __f4 = _rt::Some(__value),
                    b"Tags" => __f5 = _rt::Some(__value),
                    b"EntityType" => {}
                    _ => {
                        if let _rt::Some(__rest) = <[u8]>::strip_prefix(__name, b"Home") {
                            if <Address as _rt::Properties>::offer(&mut __f6, __rest, __value) {
                                continue;
                            }
                        }
                    }
                }
            }
            _rt::Ok(Employee {
                department: _rt::read_plain("Department", __p0)?,
                id: _rt::read_width("Id", __r0)?,
                first_name: _rt::finish_property(__f2, "", "FirstName")?,
                age: _rt::finish_property(__f3, "", "Age")?,
                salary: _rt::finish_property(__f4, "", "Salary")?,
                tags: _rt::finish_json(__f5, "", "Tags")?,
                home: <Address as _rt::Properties>::finish(__f6, "Home")?,
            })
        }
    }

    impl _rt::Writable for Employee {
        fn table(&self) -> &'static str {
            "Staff"
        }
        fn change(&self, verb: _rt::BulkVerb) -> _rt::Result<_rt::BulkChange> {
            _rt::bulk_change(self, verb)
        }
    }

    impl _rt::TableEntity for Employee {
        type Primary = Primary0;
        type Patch = EmployeePatch;
        const SCHEMA: &'static _rt::Schema = &SCHEMA;
        fn primary() -> Self::Primary {
            Primary0(_rt::Draft::new(&PRIMARY))
        }
        fn patch() -> Self::Patch {
            EmployeePatch(_rt::Patch::new())
        }
        fn to_row(&self) -> _rt::Result<_rt::Row> {
            let mut key = _rt::KeyWriter::new(&PRIMARY.partition, "PartitionKey");
            _rt::KeyWriter::part(&mut key, |out| _rt::KeyPart::encode(&self.department, out))?;
            let partition_key = _rt::KeyWriter::finish(key)?;
            let mut key = _rt::KeyWriter::new(&PRIMARY.row, "RowKey");
            _rt::KeyWriter::part(&mut key, |out| _rt::FixedWidth::encode_width(&self.id, 6, out))?;
            let row_key = _rt::KeyWriter::finish(key)?;
            let mut row = _rt::Row::build(&partition_key, &row_key);
            let mut out = _rt::PropertyWriter::new(&mut row);
            _rt::PropertyWriter::put_value(
                &mut out,
                "EntityType",
                _rt::ValueRef::String("Employee"),
            );
            _rt::PropertyWriter::put(&mut out, "FirstName", &self.first_name)?;
            _rt::PropertyWriter::put(&mut out, "Age", &self.age)?;
            _rt::PropertyWriter::put(&mut out, "Salary", &self.salary)?;
            _rt::PropertyWriter::put_json(&mut out, "Tags", &self.tags)?;
            _rt::PropertyWriter::put_flattened(&mut out, "Home", &self.home)?;
            row.finish()
        }
    }

    // Steps: one type per number of fields given. PK incomplete: not a Path.
    #[derive(_rt::Clone)]
    pub struct Primary0(_rt::Draft);
    impl Primary0 {
        /// Fixes `department`.
        pub fn department<V>(self, value: V) -> Primary1
        where
            V: _rt::Input<String>,
        {
            let value: String = _rt::Input::input(value);
            Primary1(self.0.fix(0, |out| _rt::KeyPart::encode(&value, out)))
        }
    }
    // PK complete, RK open: a Path; `.into()` gives Range (family has a literal RK prefix or bounds) or Partition.
    #[derive(_rt::Clone)]
    pub struct Primary1(_rt::Draft);
    impl _rt::Path for Primary1 {
        type Entity = Employee;
        type View = _rt::PrimaryRow;
        fn access(self) -> _rt::Access {
            _rt::Path::access(_rt::Partition::<Employee>::from_draft(self.0))
        }
    }
    impl _rt::From<Primary1> for _rt::Partition<Employee> {
        fn from(step: Primary1) -> Self {
            _rt::Partition::from_draft(step.0)
        }
    }
    impl _rt::From<Primary1> for _rt::Range<Employee> {
        fn from(step: Primary1) -> Self {
            _rt::Range::from_draft(step.0)
        }
    }
    impl Primary1 {
        /// Fixes `id`: a point.
        pub fn id<V>(self, value: V) -> _rt::Point<Employee>
        where
            V: _rt::Input<u32>,
        {
            let value: u32 = _rt::Input::input(value);
            _rt::Point::from_draft(
                self.0.fix(1, |out| _rt::FixedWidth::encode_width(&value, 6, out)),
            )
        }
        /// Bounds `id` (`true`: the part is the last of its key).
        pub fn id_range<R>(self, range: R) -> _rt::Range<Employee>
        where
            R: _rt::RangeInput<u32, true>,
        {
            _rt::Range::from_draft(self.0.between(
                1,
                _rt::RangeInput::bounds(range),
                &|value: &u32, out: &mut _rt::String| _rt::FixedWidth::encode_width(value, 6, out),
            ))
        }
        /// `P: PrefixInput<u32>` is never met for integers: the call does not compile, and says why.
        pub fn id_prefix<P>(self, prefix: P) -> _rt::Range<Employee>
        where
            P: _rt::PrefixInput<u32>,
        {
            _rt::Range::from_draft(self.0.starting_with(
                1,
                _rt::PrefixInput::prefix(&prefix),
                false,
            ))
        }
    }

    pub struct EmployeePatch(_rt::Patch<Employee>);
    impl EmployeePatch {
        pub fn age<V>(self, value: V) -> Self
        where
            V: _rt::Input<<i32 as _rt::Property>::Scalar>,
        {
            let value: <i32 as _rt::Property>::Scalar = _rt::Input::input(value);
            Self(self.0.set::<i32>("Age", &value))
        }
        pub fn salary<V>(self, value: V) -> Self
        where
            V: _rt::Input<<Option<f64> as _rt::Property>::Scalar>,
        {
            let value: <Option<f64> as _rt::Property>::Scalar = _rt::Input::input(value);
            Self(self.0.set::<Option<f64>>("Salary", &value))
        }
        pub fn remove_salary(self) -> Self {
            Self(self.0.remove("Salary"))
        }
    }
    impl _rt::From<EmployeePatch> for _rt::Patch<Employee> {
        fn from(patch: EmployeePatch) -> Self {
            patch.0
        }
    }

    impl Employee {
        pub const DEPARTMENT: _rt::Column<Self, String, _rt::KeyOnly> = _rt::Column::key(
            "Department",
            |row, name| {
                let [part] = _rt::split_key::<1>(
                    &PRIMARY.partition,
                    "PartitionKey",
                    _rt::Row::partition_key(row),
                )?;
                _rt::read_plain(name_of(name), part)
            },
            _rt::KeyColumn {
                template: &PRIMARY.partition,
                part: 0,
                encode: |value, out| _rt::KeyPart::encode(value, out),
            },
        );
        pub const ID: _rt::Column<Self, u32, _rt::KeyOnly> = _rt::Column::key(
            "Id",
            |row, _| {
                let [part] = _rt::split_key::<1>(&PRIMARY.row, "RowKey", _rt::Row::row_key(row))?;
                _rt::read_width("Id", part)
            },
            _rt::KeyColumn {
                template: &PRIMARY.row,
                part: 0,
                encode: |value, out| _rt::FixedWidth::encode_width(value, 6, out),
            },
        );
        pub const FIRST_NAME: _rt::Column<Self, String> =
            _rt::Column::property("FirstName", _rt::read_property::<String>);
        pub const AGE: _rt::Column<Self, i32> =
            _rt::Column::property("Age", _rt::read_property::<i32>);
        pub const SALARY: _rt::Column<Self, Option<f64>> =
            _rt::Column::property("Salary", _rt::read_property::<Option<f64>>);
        pub const TAGS: _rt::Column<Self, ::std::vec::Vec<String>, _rt::Json> =
            _rt::Column::property("Tags", _rt::read_json);
        pub const HOME: _rt::Flattened<Self, Address> = _rt::Flattened::new("Home");
    }
    fn name_of(_: &str) -> &'static str {
        "Department"
    }
};

// #[derive(Projection)] #[table(of = Employee)] struct Contact { id: u32, first_name: String }
struct Contact {
    id: u32,
    first_name: String,
}
const _: () = {
    use ::entable::__private as _rt;
    impl _rt::FromRow for Contact {
        fn columns() -> _rt::Option<_rt::Vec<_rt::String>> {
            let mut names = _rt::Vec::new();
            _rt::ReadColumn::select(&<Employee>::ID, &mut names);
            _rt::ReadColumn::select(&<Employee>::FIRST_NAME, &mut names);
            _rt::Some(names)
        }
        fn from_row(row: &_rt::Row) -> _rt::Result<Self> {
            _rt::Ok(Contact {
                id: _rt::ReadColumn::read(&<Employee>::ID, row)?,
                first_name: _rt::ReadColumn::read(&<Employee>::FIRST_NAME, row)?,
            })
        }
    }
    impl _rt::Projection for Contact {
        type Entity = Employee;
    }
};

fn don() -> Employee {
    Employee {
        department: "Sales".into(),
        id: 223,
        first_name: "Don".into(),
        age: 34,
        salary: Option::None,
        tags: ::std::vec!["a".into()],
        home: Address { city: "Berlin".into() },
    }
}

#[test]
fn row_and_back() -> Result<(), Box<dyn ::std::error::Error>> {
    let row: Row = don().to_row()?;
    assert_eq!(row.row_key(), "empid_000223");
    assert_eq!(<Employee as ::entable::FromRow>::from_row(&row)?, don());
    let contact = <Contact as ::entable::FromRow>::from_row(&row)?;
    assert_eq!((contact.id, contact.first_name.as_str()), (223, "Don"));
    Ok(())
}

#[test]
fn paths() -> Result<(), Box<dyn ::std::error::Error>> {
    let keys =
        Employee::primary().department("Sales").id_range(100..=199).keys().filter().to_string();
    assert_eq!(
        keys,
        "(PartitionKey eq 'Sales') and (RowKey ge 'empid_000100') and (RowKey le 'empid_000199')"
    );
    let keys = Employee::primary().department("Sales").keys().filter().to_string();
    assert_eq!(keys, "(PartitionKey eq 'Sales') and (RowKey ge 'empid_') and (RowKey lt 'empid`')");
    let filter = (Employee::AGE.ge(30)
        & !Employee::HOME.at(Address::CITY).eq("Berlin")
        & Employee::SALARY.lt(1.0))
    .into_filter()?;
    assert_eq!(
        filter.to_string(),
        "(Age ge 30) and (not (HomeCity eq 'Berlin')) and (Salary lt 1.0)"
    );
    let _ = Employee::patch().age(35).remove_salary();
    let _ = Employee::ID.ge(5_u32);
    Ok(())
}

fn employee(id: u32, age: i32) -> Employee {
    Employee { id, age, ..don() }
}

#[test]
fn verbs() -> Result<(), Box<dyn ::std::error::Error>> {
    use ::std::iter::Iterator as _;
    ::tokio::runtime::Runtime::new()?.block_on(verbs_inner())
}
async fn verbs_inner() -> Result<(), Box<dyn ::std::error::Error>> {
    use ::entable::{
        Client, Table,
        backend::{Memory, layer::Recorder},
    };
    use ::std::iter::Iterator as _;
    let recorder = Recorder::around(Memory::new());
    let client = Client::builder().backend(recorder.clone()).build()?;
    let staff: Table<Employee> = client.table();
    staff.create_if_missing().await?;
    recorder.clear();
    let mut don = staff.insert(&don()).await?;
    assert_eq!(recorder.count(), 1);
    don.age = 36;
    let old = don.clone();
    let don = staff.replace(&don).await?;
    assert_eq!(don.age, 36);
    assert!(staff.replace(&old).await.unwrap_err().is_precondition_failed());
    let point = Employee::primary().department("Sales").id(223);
    let read = staff.get(point.clone()).await?.unwrap();
    assert_eq!(*read, *don);
    assert_eq!(read.etag(), don.etag());
    staff.patch(point.clone(), Employee::patch().age(35).salary(10.5)).await?;
    staff.patch(point.clone(), Employee::patch().remove_salary()).await?;
    let don = staff
        .update(point.clone(), |e| {
            e.age += 1;
            Ok(())
        })
        .await?;
    assert_eq!((don.age, don.salary), (36, Option::None));
    let contact = staff.get_as::<Contact>(point.clone()).await?.unwrap();
    assert_eq!(contact.id, 223);
    let report = client
        .bulk()
        .concurrency(4)
        .insert_all((1..=250).map(|id| employee(id, id as i32)))
        .await?;
    assert_eq!((report.done, report.failed.len()), (249, 1));
    assert_eq!(report.failed[0].index, 222);
    let q = staff
        .query(Employee::primary().department("Sales"))
        .filter(Employee::AGE.ge(100))
        .take(120)
        .page_size(50);
    recorder.clear();
    assert_eq!(q.collect().await?.len(), 120);
    assert_eq!(recorder.count(), 3);
    let all = staff.query(Employee::scan()).filter(Employee::ID.ge(240)).select::<Contact>();
    assert_eq!(all.collect().await?.len(), 11);
    let mut egt = client.atomic();
    egt.insert(&employee(1000, 1))?.delete(&don)?;
    let done = egt.commit().await?;
    assert_eq!(done.len(), 2);
    let mut cursor = Option::None;
    let mut n = 0;
    loop {
        let page = staff
            .query(Employee::primary().department("Sales").id_range(..))
            .page_size(100)
            .page(cursor)
            .await?;
        n += page.items.len();
        cursor = page.next;
        if cursor.is_none() {
            break;
        }
    }
    assert_eq!(n, 250);
    Ok(())
}
