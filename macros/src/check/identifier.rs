//! The names that the service takes for properties. Uses nothing of this crate, so that a test can compare
//! it with the rule of the runtime, character by character.

use unicode_properties::{GeneralCategory, UnicodeGeneralCategory};

/// Returns whether the name is a C# identifier, as the service requires it.
pub(super) fn is_identifier(name: &str) -> bool {
    use GeneralCategory as Category;
    let is_letter = |c: char| {
        c == '_'
            || matches!(
                c.general_category(),
                Category::UppercaseLetter
                    | Category::LowercaseLetter
                    | Category::TitlecaseLetter
                    | Category::ModifierLetter
                    | Category::OtherLetter
                    | Category::LetterNumber
            )
    };
    let continues = |c: char| {
        is_letter(c)
            || matches!(
                c.general_category(),
                Category::NonspacingMark
                    | Category::SpacingMark
                    | Category::DecimalNumber
                    | Category::ConnectorPunctuation
                    | Category::Format
            )
    };
    name.starts_with(is_letter) && name.chars().all(continues)
}
