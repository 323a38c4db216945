//! Converts what the function of `validate = path` returns.

use crate::error::BoxError;

/// What a function of `#[table(validate = path)]` returns: `Result<(), E>`, where `E` is an error.
#[diagnostic::on_unimplemented(
    message = "a `validate` function returns `Result<(), E>`, found `{Self}`",
    label = "this function returns `{Self}`",
    note = "write `fn(&self) -> Result<(), BoxError>`, which returns `Ok(())` for an entity that may be written"
)]
pub trait ValidateOutcome {
    /// Converts the error to a boxed one.
    ///
    /// # Errors
    ///
    /// Returns the function's error.
    fn into_result(self) -> Result<(), BoxError>;
}

#[diagnostic::do_not_recommend]
impl<E: Into<BoxError>> ValidateOutcome for Result<(), E> {
    fn into_result(self) -> Result<(), BoxError> {
        self.map_err(Into::into)
    }
}
