//! Converts the result of the function from `validate = path`.

use crate::error::BoxError;

/// The result of a function from `#[table(validate = path)]`: `Result<(), E>`, where `E` is an error.
#[diagnostic::on_unimplemented(
    message = "a `validate` function must return `Result<(), E>`, found `{Self}`",
    label = "this function returns `{Self}`",
    note = "declare it as `fn(&self) -> Result<(), BoxError>`, and return `Ok(())` if the entity may be written"
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
