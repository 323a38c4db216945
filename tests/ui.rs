//! What the compiler says about mistakes: one mistake, one message, at its place.

#[test]
fn mistakes_are_shown_where_they_are_made() {
    let cases = trybuild::TestCases::new();
    cases.compile_fail("ui/*/*.rs");
}
