//! Tests that the derives and the runtime take the names of properties alike.

use entable::limits::is_identifier;

// The file of the derives itself: a crate of derives exports nothing else.
#[path = "../../macros/src/check/identifier.rs"]
mod of_derives;

#[test]
fn derives_and_runtime_take_every_character_alike() {
    let (mut first, mut later) = (0, 0);
    for c in char::MIN..=char::MAX {
        let (alone, behind) = (c.to_string(), format!("a{c}"));
        let expected = (of_derives::is_identifier(&alone), of_derives::is_identifier(&behind));
        assert_eq!((is_identifier(&alone), is_identifier(&behind)), expected, "{c:?}");
        // A character that may begin a name may stand in it as well.
        assert!(expected.1 || !expected.0, "{c:?}");
        first += u32::from(expected.0);
        later += u32::from(expected.1);
    }
    // Neither rule takes everything or ASCII alone: Unicode has over 130,000 letters.
    assert!(first > 130_000 && later > first + 2_000, "{first}, {later}");
    assert!(later < 200_000, "{later}");
    for name in ["", "9a", "a b", "m\u{b2}"] {
        assert!(!is_identifier(name) && !of_derives::is_identifier(name), "{name:?}");
    }
}
