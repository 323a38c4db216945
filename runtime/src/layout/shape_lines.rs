//! Writes the layout of one version of an entity type as lines of the file.

use std::fmt;

use super::shape::{
    BlobFieldShape, EntityShape, KeyTemplateShape, PropertyShape, RowsShape, SeriesShape,
    StoredTypeShape,
};
use crate::key::FamilyKind;

impl fmt::Display for EntityShape {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(f, "entity \"{}\" version {}", self.entity_type, self.version)?;
        match &self.dated_by {
            Some(property) => writeln!(f, "  table {} by {property}", self.table)?,
            None => writeln!(f, "  table {}", self.table)?,
        }
        match &self.discriminator {
            Some(property) => writeln!(f, "  discriminator property {property}")?,
            None => writeln!(f, "  discriminator row_key")?,
        }
        if self.parts > 1 {
            writeln!(f, "  wide {}", self.parts)?;
        }
        if self.is_sealed {
            writeln!(f, "  sealed")?;
        }
        if let Some(property) = &self.expires {
            writeln!(f, "  expires {property}")?;
        }
        self.rows.iter().try_for_each(|rows| rows.fmt(f))?;
        let mut keys = self.key_fields.iter();
        keys.try_for_each(|key| writeln!(f, "  key {} {}", key.name, key.stored_type))?;
        self.properties.iter().try_for_each(|property| writeln!(f, "  property {property}"))?;
        self.series.iter().try_for_each(|series| writeln!(f, "  {series}"))?;
        self.blobs.iter().try_for_each(|blob| writeln!(f, "  {blob}"))
    }
}

impl fmt::Display for RowsShape {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.kind {
            FamilyKind::Primary => f.write_str("  primary")?,
            FamilyKind::Copy => write!(f, "  index {}", self.name)?,
            FamilyKind::List => write!(f, "  list {}", self.name)?,
        }
        if self.kind != FamilyKind::Primary {
            f.write_str(if self.is_remote { " remote" } else { " local" })?;
        }
        for (word, is_set) in [
            (" blob", self.in_blob),
            (" unique", self.is_unique),
            (" conditional", self.is_conditional),
        ] {
            f.write_str(if is_set { word } else { "" })?;
        }
        if let Some(table) = &self.table {
            write!(f, " table {table}")?;
        }
        writeln!(f)?;
        writeln!(f, "    partition {}", self.partition)?;
        writeln!(f, "    row {}", self.row)?;
        if self.left_out.is_empty() {
            Ok(())
        } else {
            writeln!(f, "    without {}", self.left_out.join(" "))
        }
    }
}

impl fmt::Display for KeyTemplateShape {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "\"{}\"", self.template)?;
        self.widths.iter().try_for_each(|width| match width {
            Some(width) => write!(f, " {width}"),
            None => f.write_str(" -"),
        })
    }
}

impl fmt::Display for StoredTypeShape {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.edm)?;
        match self.values.as_str() {
            "" => Ok(()),
            values => write!(f, " as {values}"),
        }
    }
}

impl fmt::Display for PropertyShape {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} {}", self.name, self.stored_type)?;
        for (word, is_set) in [(" optional", self.is_optional), (" default", self.has_default)] {
            f.write_str(if is_set { word } else { "" })?;
        }
        match self.within.as_deref() {
            Some("") => f.write_str(" within -")?,
            Some(prefix) => write!(f, " within {prefix}")?,
            None => {}
        }
        if self.part > 1 {
            write!(f, " part {}", self.part)?;
        }
        let Some(encryption) = &self.encryption else { return Ok(()) };
        f.write_str(" encrypted")?;
        if encryption.pad > 0 {
            write!(f, " pad {}", encryption.pad)?;
        }
        f.write_str(if encryption.hides_none { " hide_none" } else { "" })?;
        match &encryption.blind {
            Some((name, chars)) => write!(f, " blind {name} {chars}"),
            None => Ok(()),
        }
    }
}

impl fmt::Display for SeriesShape {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let kind = if self.is_split { "split" } else { "series" };
        write!(f, "{kind} {} {} to {} first {}", self.field, self.slots, self.last, self.first)
    }
}

impl fmt::Display for BlobFieldShape {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let optional = if self.is_optional { " optional" } else { "" };
        write!(f, "blob {}{optional} with {}", self.name, self.others.join(" "))
    }
}
