//! The binaries and tests of this package are in the folders beside this one.

/// The examples of the derives, whose own package has no entable to run them with.
#[cfg(doctest)]
mod examples_of_derives {
    #[doc = include_str!("../../macros/docs/edm_enum.md")]
    struct EdmEnum;
    #[doc = include_str!("../../macros/docs/entity_set.md")]
    struct EntitySet;
    #[doc = include_str!("../../macros/docs/key_part.md")]
    struct KeyPart;
    #[doc = include_str!("../../macros/docs/message.md")]
    struct Message;
    #[doc = include_str!("../../macros/docs/projection.md")]
    struct Projection;
    #[doc = include_str!("../../macros/docs/properties.md")]
    struct Properties;
    #[doc = include_str!("../../macros/docs/table_entity.md")]
    struct TableEntity;
}
