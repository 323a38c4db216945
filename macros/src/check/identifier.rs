//! The property names that the service accepts. Uses nothing of this crate, because a test compares it with the
//! runtime's rule character by character.

use unicode_properties::{GeneralCategory, UnicodeGeneralCategory};

/// Returns whether the name is a C# identifier, which the service requires.
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
