//! Reads the text of a layout.

use super::{
    pattern_lines::read_pattern_line,
    pattern_shape::PatternShape,
    shape::{
        BlobFieldShape, EntityShape, KeyFieldShape, KeyTemplateShape, PropertyEncryptionShape,
        PropertyShape, RowsShape, SeriesShape, StoredTypeShape,
    },
    words::{Words, expect_word, is_end, split_leading_quoted_text, takes_word},
};
use crate::{
    error::{Error, ErrorKind, Result},
    key::FamilyKind,
};

/// The first line that is not a comment: the format's name and version.
pub(super) const HEAD: &str = "layout 1";

/// Reads the entities and access patterns from the text of a layout. The first line that is neither blank nor a
/// comment has to be `HEAD`. Fails with `is_invalid`, naming the line, for a line that is not understood.
pub(super) fn parse(text: &str) -> Result<(Vec<EntityShape>, Vec<PatternShape>)> {
    let is_content = |line: &str| !line.trim().is_empty() && !line.starts_with('#');
    let mut lines = text.lines().enumerate().filter(|(_, line)| is_content(line));
    let head = lines.next().map_or("the end of the text", |(_, line)| line);
    if head != HEAD {
        let message = format!("expected `{HEAD}`, found `{}`", head.escape_debug());
        return Err(Error::new(ErrorKind::Invalid, message));
    }
    let (mut entities, mut patterns) = (Vec::new(), Vec::new());
    // The name of the patterns that the next lines are of.
    let mut group: Option<String> = None;
    for (at, line) in lines {
        let read = if let Some(head) = line.strip_prefix("patterns ") {
            split_leading_quoted_text(head).map(|(name, _)| group = Some(name))
        } else if let Some(group) = &group {
            read_pattern_line(line, group, &mut patterns)
        } else {
            read_line(line, &mut entities)
        };
        read.ok_or_else(|| {
            let message = format!(
                "line {} of the layout is not understood: `{}`; a later version of entable may have written it",
                at + 1,
                line.escape_debug()
            );
            Error::new(ErrorKind::Invalid, message)
        })?;
    }
    Ok((entities, patterns))
}

fn read_line(line: &str, entities: &mut Vec<EntityShape>) -> Option<()> {
    if let Some(head) = line.strip_prefix("entity ") {
        let (entity_type, rest) = split_leading_quoted_text(head)?;
        entities.push(EntityShape {
            entity_type,
            version: rest.strip_prefix(" version ")?.parse().ok()?,
            table: String::new(),
            parts: 1,
            dated_by: None,
            discriminator: None,
            is_sealed: false,
            expires: None,
            rows: Vec::new(),
            key_fields: Vec::new(),
            properties: Vec::new(),
            series: Vec::new(),
            blobs: Vec::new(),
        });
        return Some(());
    }
    let entity = entities.last_mut()?;
    // Compared first, because these lines begin with the shorter indentation too.
    match line.strip_prefix("    ") {
        Some(line) => read_key(line, entity.rows.last_mut()?),
        None => read_member(line.strip_prefix("  ")?, entity),
    }
}

fn read_member(line: &str, entity: &mut EntityShape) -> Option<()> {
    let mut words = line.split_whitespace().peekable();
    match words.next()? {
        "table" => {
            entity.table = words.next()?.to_owned();
            if takes_word(&mut words, "by") {
                entity.dated_by = Some(words.next()?.to_owned());
            }
        }
        "discriminator" => {
            entity.discriminator = match words.next()? {
                "property" => Some(words.next()?.to_owned()),
                "row_key" => None,
                _ => return None,
            }
        }
        "wide" => entity.parts = words.next()?.parse().ok()?,
        "sealed" => entity.is_sealed = true,
        "expires" => entity.expires = Some(words.next()?.to_owned()),
        "primary" => entity.rows.push(parse_rows(FamilyKind::Primary, "Primary", &mut words)?),
        "index" => {
            let name = words.next()?;
            entity.rows.push(parse_rows(FamilyKind::Copy, name, &mut words)?);
        }
        "list" => {
            let name = words.next()?;
            entity.rows.push(parse_rows(FamilyKind::List, name, &mut words)?);
        }
        "key" => {
            let name = words.next()?.to_owned();
            let stored_type = parse_type(&mut words)?;
            entity.key_fields.push(KeyFieldShape { name, stored_type });
        }
        "property" => entity.properties.push(parse_property(&mut words)?),
        kind @ ("series" | "split") => {
            let (field, slots) = (words.next()?.to_owned(), words.next()?.parse().ok()?);
            expect_word(&mut words, "to")?;
            let last = words.next()?.to_owned();
            expect_word(&mut words, "first")?;
            let first = parse_property(&mut words)?;
            let is_split = kind == "split";
            entity.series.push(SeriesShape { field, is_split, slots, last, first });
        }
        "blob" => {
            let name = words.next()?.to_owned();
            let is_optional = takes_word(&mut words, "optional");
            expect_word(&mut words, "with")?;
            let others = words.by_ref().map(str::to_owned).collect();
            entity.blobs.push(BlobFieldShape { name, is_optional, others });
        }
        _ => return None,
    }
    // A later version of the format may write more words, which must not be ignored.
    is_end(words)
}

fn parse_rows(kind: FamilyKind, name: &str, words: &mut Words<'_>) -> Option<RowsShape> {
    let is_remote = match kind {
        FamilyKind::Primary => false,
        _ => match words.next()? {
            "remote" => true,
            "local" => false,
            _ => return None,
        },
    };
    let empty = || KeyTemplateShape { template: String::new(), widths: Vec::new() };
    Some(RowsShape {
        kind,
        name: name.to_owned(),
        is_remote,
        in_blob: takes_word(words, "blob"),
        is_unique: takes_word(words, "unique"),
        is_conditional: takes_word(words, "conditional"),
        table: if takes_word(words, "table") { Some(words.next()?.to_owned()) } else { None },
        partition: empty(),
        row: empty(),
        left_out: Vec::new(),
    })
}

fn read_key(line: &str, rows: &mut RowsShape) -> Option<()> {
    let (word, rest) = line.split_once(' ')?;
    match word {
        "partition" => rows.partition = parse_key(rest)?,
        "row" => rows.row = parse_key(rest)?,
        "without" => rows.left_out = rest.split_whitespace().map(str::to_owned).collect(),
        _ => return None,
    }
    Some(())
}

fn parse_key(text: &str) -> Option<KeyTemplateShape> {
    let (template, widths) = split_leading_quoted_text(text)?;
    let width = |word: &str| match word {
        "-" => Some(None),
        width => width.parse().ok().map(Some),
    };
    let widths = widths.split_whitespace().map(width).collect::<Option<_>>()?;
    Some(KeyTemplateShape { template, widths })
}

fn parse_type(words: &mut Words<'_>) -> Option<StoredTypeShape> {
    let edm = words.next()?.to_owned();
    let values = if takes_word(words, "as") { words.next()? } else { "" };
    Some(StoredTypeShape { edm, values: values.to_owned() })
}

fn parse_property(words: &mut Words<'_>) -> Option<PropertyShape> {
    Some(PropertyShape {
        name: words.next()?.to_owned(),
        stored_type: parse_type(words)?,
        is_optional: takes_word(words, "optional"),
        has_default: takes_word(words, "default"),
        within: if takes_word(words, "within") {
            Some(words.next()?.trim_start_matches('-').to_owned())
        } else {
            None
        },
        part: if takes_word(words, "part") { words.next()?.parse().ok()? } else { 1 },
        encryption: if takes_word(words, "encrypted") {
            Some(parse_encryption(words)?)
        } else {
            None
        },
    })
}

fn parse_encryption(words: &mut Words<'_>) -> Option<PropertyEncryptionShape> {
    let pad = if takes_word(words, "pad") { words.next()?.parse().ok()? } else { 0 };
    let hides_none = takes_word(words, "hide_none");
    let blind = if takes_word(words, "blind") {
        Some((words.next()?.to_owned(), words.next()?.parse().ok()?))
    } else {
        None
    };
    Some(PropertyEncryptionShape { pad, hides_none, blind })
}
