//! Converts the result of the function from `validate = path`.

use crate::error::BoxError;

/// The result of a function from `#[table(validate = path)]`: `Result<(), E>`, where `E` is an error.
#[diagnostic::on_unimplemented(
    message = "a `validate` function returns `Result<(), E>`, found `{Self}`",
    label = "this function returns `{Self}`",
    note = "write `fn(&self) -> Result<(), BoxError>`, which returns `Ok(())` for an entity that may be written"
)]
pub trait ValidateOutcome {
    /// Boxes the error.
    ///
    /// # Errors
    ///
    /// Fails with the function's error.
    fn into_result(self) -> Result<(), BoxError>;
}

#[diagnostic::do_not_recommend]
impl<E: Into<BoxError>> ValidateOutcome for Result<(), E> {
    fn into_result(self) -> Result<(), BoxError> {
        self.map_err(Into::into)
    }
}
