//! The name of a dated table: literal text and the date form of a field, as in `name = "Logins{at:%Y%m%d}"`.

use syn::LitStr;

use super::{Field, KeyTemplate, Segment, TemplatePart};
use crate::{
    errors::Errors,
    template::{Fineness, Form},
};

/// The names of dated tables: a prefix and the period of a field, as in `Logins{at:%Y%m%d}`.
#[derive(Debug)]
pub(crate) struct DatedTableName {
    /// The prefix of each table's name.
    pub(crate) prefix: String,
    /// The date form of the period, such as `%Y%m%d`.
    pub(crate) form: String,
    pub(crate) finest: Fineness,
    /// Index of the field among the entity's fields.
    pub(crate) field: usize,
}

/// Returns whether a table's name is a template.
pub(crate) fn is_table_name_template(name: &LitStr) -> bool {
    name.value().contains(['{', '}'])
}

impl DatedTableName {
    /// Reads the template in a table's name. Returns `None` for a name without a template. Reports a malformed
    /// template and returns `None`.
    pub(crate) fn new(name: &LitStr, fields: &[Field], errors: &mut Errors) -> Option<Self> {
        if !is_table_name_template(name) {
            return None;
        }
        let key = KeyTemplate::new(name, fields, errors);
        if !key.is_sound {
            return None;
        }
        match key.segments.as_slice() {
            [Segment::Literal(prefix, _), Segment::Part(part)] => {
                let form =
                    date_form(&key, part).map_err(|message| errors.add_at(name.span(), message));
                let (form, finest) = form.ok()?;
                Some(Self { prefix: prefix.clone(), form, finest, field: part.field })
            }
            _ => {
                let message = "the name of dated tables must be a literal followed by exactly one date form, such as `Logins{at:%Y%m%d}`";
                let end = key.text.chars().count();
                errors.add_at(name.span(), key.template_error_text(&(0..end), message));
                None
            }
        }
    }

    /// Returns the number of digits at the end of each table's name.
    pub(crate) fn digit_count(&self) -> usize {
        match self.finest {
            Fineness::Year => 4,
            Fineness::Month => 6,
            Fineness::Day => 8,
            _ => 10,
        }
    }
}

/// Returns the date form of the part and its smallest unit. Returns an error message if the part is not a date or
/// its form is none of `%Y`, `%Y%m`, `%Y%m%d` and `%Y%m%d%H`.
fn date_form(key: &KeyTemplate, part: &TemplatePart) -> Result<(String, Fineness), String> {
    const FORMS: [&str; 4] = ["%Y", "%Y%m", "%Y%m%d", "%Y%m%d%H"];
    match &part.form {
        Form::Date(form, finest) if FORMS.contains(&form.as_str()) => Ok((form.clone(), *finest)),
        _ => {
            let message = "the date in a table name must be `%Y`, `%Y%m`, `%Y%m%d` or `%Y%m%d%H` without separators, such as `{at:%Y%m%d}`";
            Err(key.template_error_text(&part.place, message))
        }
    }
}
