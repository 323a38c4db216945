//! `$filter`: missing properties, keys, logic, and what is refused.

use crate::setup::Setup;
use entable_core::{edm::Value, filter::Filter};

/// Rows `a` with Age 30, `b` with Age 40 and `c` without.
async fn ages(s: &Setup) {
    s.given("p", "a", &[("Age", 30.into()), ("Name", "Don".into()), ("Active", true.into())]).await;
    s.given("p", "b", &[("Age", 40.into()), ("Name", "Jun".into()), ("Active", false.into())])
        .await;
    s.given("p", "c", &[("Name", "O'Brien".into())]).await;
}

/// Whether each filter finds these rows of [`ages`].
async fn ages_found(s: &Setup, cases: &[(&str, &[&str])]) {
    ages(s).await;
    for (text, expected) in cases {
        s.finds(text, expected).await;
    }
}

macro_rules! filters {
    ($($doc:literal $name:ident: $($text:literal => $found:expr),+;)*) => {
        $(#[doc = $doc] pub async fn $name(s: &Setup) {
            ages_found(s, &[$(($text, &$found)),+]).await;
        })*
    };
}

filters! {
    "4.4: `eq` with a missing property is false." missing_eq: "Age eq 30" => ["a"];
    "4.4: `ne` with a missing property is false." missing_ne: "Age ne 30" => ["b"];
    "4.4: `gt` with a missing property is false." missing_gt: "Age gt 30" => ["b"];
    "4.4: `ge` with a missing property is false." missing_ge: "Age ge 30" => ["a", "b"];
    "4.4: `lt` with a missing property is false." missing_lt: "Age lt 40" => ["a"];
    "4.4: `le` with a missing property is false." missing_le: "Age le 40" => ["a", "b"];
    "4.4: `not` of an `eq` with a missing property is true." not_missing_eq:
        "not (Age eq 30)" => ["b", "c"];
    "4.4: `not` of a `ne` with a missing property is true." not_missing_ne:
        "not (Age ne 30)" => ["a", "c"];
    "4.4: the missing property itself is found with `not` of both sides." missing_itself:
        "not (Age ge 0 or Age lt 0)" => ["c"];
    "4.4: a property that no row has matches nothing, and its `not` everything." unknown_property:
        "Nope eq 1" => [], "Nope ne 1" => [], "not (Nope eq 1)" => ["a", "b", "c"];
    "4.2: a Boolean property alone is true where it is." bare_boolean:
        "Active" => ["a"], "Active and Age eq 30" => ["a"];
    "4.4: `not` of a Boolean property alone is true where it is false or missing." not_bare_boolean:
        "not Active" => ["b", "c"];
    "4.2: a property alone that is no Boolean matches nothing." bare_other_type:
        "Age" => [], "Name" => [], "not Age" => ["a", "b", "c"];
    "4.2: a missing property alone matches nothing." bare_missing: "Nope" => [];
    "4.2: a comparison with a Boolean literal." boolean_literal:
        "Active eq true" => ["a"], "Active eq false" => ["b"], "Active ne true" => ["b"];
    "4.2: the constants." constants: "true" => ["a", "b", "c"], "false" => [];
    "4.2: the empty filter matches everything." empty_filter: "" => ["a", "b", "c"];
    "4.2: a constant may stand on the left." constant_on_the_left:
        "30 eq Age" => ["a"], "30 lt Age" => ["b"], "40 gt Age" => ["a"], "40 ge Age" => ["a", "b"];
    "4.2: `and` binds tighter than `or`." and_before_or:
        "Age eq 40 or Age eq 30 and Name eq 'Jun'" => ["b"],
        "Name eq 'Jun' and Age eq 30 or Age eq 40" => ["b"],
        "(Age eq 40 or Age eq 30) and Name eq 'Don'" => ["a"];
    "4.2: `not` binds tighter than `and`." not_before_and:
        "not Active and Age eq 40" => ["b"],
        "not (Active and Age eq 30)" => ["b", "c"];
    "4.2: `not` may be doubled." not_twice: "not not (Age eq 30)" => ["a"];
    "4.2: parentheses nest." nested: "((Age eq 30) or ((Name eq 'Jun')))" => ["a", "b"];
    "4.2: a quote in a text is doubled." quotes: "Name eq 'O''Brien'" => ["c"];
    "4.3: text is compared by case." text_by_case:
        "Name eq 'don'" => [], "Name lt 'a'" => ["a", "b", "c"];
    "4.3: text is compared character by character." text_order:
        "Name ge 'E'" => ["b", "c"], "Name lt 'Jun'" => ["a"], "Name gt 'Jun'" => ["c"];
    "4.3: a range of text finds a prefix." text_prefix: "Name ge 'Ju' and Name lt 'Jv'" => ["b"];
    "2.2: property names are told apart by case." property_by_case:
        "age eq 30" => [], "AGE ne 30" => [];
    "4.3: PartitionKey and RowKey are Strings." keys_are_strings:
        "PartitionKey eq 'p'" => ["a", "b", "c"], "RowKey gt 'a'" => ["b", "c"],
        "RowKey ne 'b'" => ["a", "c"], "RowKey ge 'b' and RowKey lt 'c'" => ["b"];
    "4.3: a key against a number is a mismatch: less than it." keys_against_numbers:
        "RowKey eq 5" => [], "RowKey ne 5" => ["a", "b", "c"], "RowKey lt 5" => ["a", "b", "c"],
        "RowKey gt 5" => [], "PartitionKey le 5L" => ["a", "b", "c"];
    "4.3: Timestamp is a DateTime." timestamp_is_a_time:
        "Timestamp ge datetime'2000-01-01T00:00:00Z'" => ["a", "b", "c"],
        "Timestamp lt datetime'2000-01-01T00:00:00Z'" => [],
        "Timestamp eq '2000'" => [];
    "4.2: conditions that exclude each other match nothing." contradiction:
        "RowKey gt 'b' and RowKey lt 'b'" => [], "RowKey ge 'c' and RowKey le 'a'" => [],
        "PartitionKey eq 'p' and PartitionKey eq 'q'" => [], "RowKey eq 'a' and RowKey eq 'b'" => [];
    "4.2: alternatives of keys." keys_in_or:
        "RowKey eq 'c' or RowKey eq 'a'" => ["a", "c"],
        "PartitionKey eq 'q' or Age eq 40" => ["b"];
    "4.2: negated keys." keys_in_not:
        "not (RowKey eq 'b')" => ["a", "c"], "not (PartitionKey eq 'p')" => [],
        "not (RowKey lt 'b' or RowKey gt 'b')" => ["b"];
}

/// 4.3: bounds of the PartitionKey find whole partitions.
pub async fn partition_bounds(s: &Setup) {
    for partition_key in ["a", "aa", "b", "ba", "c"] {
        s.given(partition_key, partition_key, &[]).await;
    }
    s.finds("PartitionKey ge 'aa' and PartitionKey lt 'c'", &["aa", "b", "ba"]).await;
    s.finds("PartitionKey gt 'a' and PartitionKey le 'b'", &["aa", "b"]).await;
    s.finds("PartitionKey lt 'b'", &["a", "aa"]).await;
    s.finds("PartitionKey gt 'b'", &["ba", "c"]).await;
    s.finds("PartitionKey ne 'b'", &["a", "aa", "ba", "c"]).await;
}

/// 4.3: bounds of the RowKey hold in every partition.
pub async fn row_bounds_across_partitions(s: &Setup) {
    for (partition_key, row_key) in [("p", "1"), ("p", "2"), ("q", "1"), ("q", "2"), ("q", "3")] {
        s.given(partition_key, row_key, &[]).await;
    }
    s.finds("RowKey ge '2'", &["2", "2", "3"]).await;
    s.finds("PartitionKey ge 'p' and RowKey lt '2'", &["1", "1"]).await;
}

/// 4.3: keys are compared as their UTF-16 units are.
pub async fn keys_by_units(s: &Setup) {
    s.given_rows("p", &["\u{d7ff}", "\u{1f600}", "\u{e000}"]).await;
    s.finds("RowKey lt '\u{e000}'", &["\u{d7ff}", "\u{1f600}"]).await;
    s.finds("RowKey gt '\u{1f600}'", &["\u{e000}"]).await;
}

/// 4.2: a name in a filter is a C# identifier, as the name of a stored property is (Microsoft, "Understanding
/// the Table service data model", property names; C# specification, "Identifiers"): combining marks,
/// connectors and format characters continue it. A name is compared as it is written: a decomposed accent
/// is another name than the composed one.
pub async fn names_of_every_script(s: &Setup) {
    let thai = "\u{e19}\u{e32}\u{e21}\u{e2a}\u{e01}\u{e38}\u{e25}";
    s.given("p", "a", &[(thai, "Srisai".into()), ("cafe\u{301}", 1.into())]).await;
    s.given("p", "b", &[(thai, "Jones".into()), ("caf\u{e9}", 1.into())]).await;
    s.given("p", "c", &[("a\u{203f}b", 1.into()), ("a\u{200d}b", 2.into())]).await;
    s.finds(&format!("{thai} eq 'Srisai'"), &["a"]).await;
    s.finds(&format!("not ({thai} eq 'Srisai')"), &["b", "c"]).await;
    s.finds("cafe\u{301} eq 1", &["a"]).await;
    s.finds("caf\u{e9} eq 1", &["b"]).await;
    s.finds("a\u{203f}b eq 1 and a\u{200d}b eq 2", &["c"]).await;
}

/// 4.3: times are compared at 100 ns.
pub async fn times_at_full_precision(s: &Setup) {
    let times = ["1", "2", "3"].map(|n| format!("2014-08-22T00:50:32.123456{n}Z"));
    for time in &times {
        let at: entable_core::edm::Ticks = time.parse().expect("a time");
        s.given("p", &time[26..27], &[("At", at.into())]).await;
    }
    s.finds(&format!("At eq datetime'{}'", times[1]), &["2"]).await;
    s.finds(&format!("At gt datetime'{}'", times[1]), &["3"]).await;
    s.finds(&format!("At le datetime'{}'", times[1]), &["1", "2"]).await;
}

/// 4.3: a Timestamp equals itself as a literal.
pub async fn timestamp_equals_itself(s: &Setup) {
    s.given_rows("p", &["a"]).await;
    let at = s.get("p", "a").await.and_then(|row| row.timestamp()).expect("a Timestamp");
    s.finds(&Filter::eq("Timestamp", at).to_string(), &["a"]).await;
    s.finds(&Filter::gt("Timestamp", at).to_string(), &[]).await;
}

/// 4.3: wide integers are compared digit by digit.
pub async fn int64_at_full_precision(s: &Setup) {
    for (key, n) in [("a", 9_007_199_254_740_992_i64), ("b", 9_007_199_254_740_993)] {
        s.given("p", key, &[("N", n.into())]).await;
    }
    s.finds("N eq 9007199254740993L", &["b"]).await;
    s.finds("N lt 9007199254740993L", &["a"]).await;
}

/// 4.3: negative numbers are below positive ones.
pub async fn negative_numbers(s: &Setup) {
    let values: [(&str, Value); 3] =
        [("a", (-5).into()), ("b", (-5_i64).into()), ("c", (-5.5).into())];
    for (key, value) in values {
        s.given("p", key, &[("N", value)]).await;
    }
    s.finds("N lt 0", &["a", "b", "c"]).await;
    s.finds("N gt -6", &["a", "b", "c"]).await;
    s.finds("N eq -5", &["a", "b"]).await;
    s.finds("N lt -5.2", &["a", "b", "c"]).await;
}

/// 4.3: a row for each type under one name: each is compared by its own type.
pub async fn mixed_types_under_one_name(s: &Setup) {
    let values: [(&str, Value); 4] =
        [("a", 5.into()), ("b", 5_i64.into()), ("c", 5.0.into()), ("d", "5".into())];
    for (key, value) in values {
        s.given("p", key, &[("N", value)]).await;
    }
    s.finds("N eq 5", &["a", "b", "c"]).await;
    s.finds("N eq 5L", &["b", "c"]).await;
    s.finds("N eq 5.0", &["c"]).await;
    s.finds("N eq '5'", &["d"]).await;
    s.finds("N ne '5'", &["a", "b", "c"]).await;
}

macro_rules! refused_filters {
    ($($doc:literal $name:ident: $status:literal $code:literal [$($text:literal),+];)*) => {
        $(#[doc = concat!("4.2: ", $doc)] pub async fn $name(_: &Setup) {
            for text in [$($text),+] {
                super::setup::refused(Filter::parse(text), $status, $code);
            }
        })*
    };
}

refused_filters! {
    "a syntax error is `InvalidInput`." syntax_errors: 400 "InvalidInput"
        ["Age eq", "eq 5", "Age 5", "(Age eq 5", "Age eq 5)", "Age eq 5 and", "Age = 5", "'a", "Age eq \"a\""];
    "operators are told apart by case." operators_by_case: 400 "InvalidInput"
        ["Age EQ 5", "Age eq 5 AND Age eq 6", "NOT (Age eq 5)"];
    "there is no null test." null_test: 400 "InvalidInput" ["Age eq null", "Age ne null", "null eq Age"];
    "an integer literal without `L` is an Int32." int32_overflow: 400 "InvalidInput"
        ["Age eq 2147483648", "Age eq -2147483649", "Age eq 99999999999"];
    "a literal that is none of its type is `InvalidInput`." bad_literals: 400 "InvalidInput"
        ["At eq datetime'yesterday'", "Id eq guid'5'", "Bytes eq X'0'", "Bytes eq X'zz'", "N eq 5x"];
    "two properties are not compared, nor two constants." one_property_one_constant: 400 "InvalidInput"
        ["Age eq Name", "5 eq 5"];
    "functions are 501 `NotImplemented`." functions: 501 "NotImplemented"
        ["startswith(Name, 'D')", "substringof('D', Name)", "length(Name) eq 3", "contains(Name,'D')"];
    "arithmetic is 501 `NotImplemented`." arithmetic: 501 "NotImplemented"
        ["Age add 1 eq 6", "Age sub 1 eq 6", "Age mul 2 eq 10", "Age div 5 eq 1", "Age mod 2 eq 1", "5 eq Age add 1"];
    "a number that is no decimal digit continues no name (C# specification, \"Identifiers\")."
        other_number_in_a_name: 400 "InvalidInput"
        ["m\u{b2} eq 1", "1 eq m\u{b2}", "a\u{bd} eq 1", "\u{b2} eq 1", "\u{e38}a eq 1"];
}
