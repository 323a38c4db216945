//! Draws a table: partitions with their rows, and arrows from primaries to copies and lists.

use super::{
    draw::{Area, SvgWriter, break_code, break_words},
    model::{EntityModel, RowFamilyKind, RowFamilyModel, RowFamilyPlace, TableModel},
};

/// The sizes and positions of the columns of a picture.
#[derive(Debug, Clone, Copy)]
struct Measures {
    class: &'static str,
    width: f64,
    /// The x coordinate and the width of partitions with primaries.
    left: (f64, f64),
    /// The x coordinate and the width of partitions without primaries.
    right: (f64, f64),
    /// Whether other partitions are drawn below this one. Arrows then run along the left side.
    is_narrow: bool,
}

const WIDE: Measures = Measures {
    class: "wide",
    width: 1000.0,
    left: (1.0, 448.0),
    right: (551.0, 448.0),
    is_narrow: false,
};

const NARROW: Measures = Measures {
    class: "narrow",
    width: 360.0,
    left: (36.0, 323.0),
    right: (36.0, 323.0),
    is_narrow: true,
};

const LINE: f64 = 18.0;
const PAD: f64 = 12.0;
/// The width of the space to the left of a partition's rows, for the arrows of its transaction.
const GUTTER: f64 = 22.0;
const BETWEEN: f64 = 14.0;
/// The distance from the top of a box to its arrow to or from another partition.
const ARROW: f64 = 22.0;
/// The distance from the top of a line of text to its baseline.
const FOOT: f64 = 13.0;

const STYLE: &str = concat!(include_str!("palette.css"), include_str!("picture.css"));

/// Returns the picture of a table as a standalone file.
pub(super) fn table_picture_file(table: &TableModel) -> String {
    let (canvas, height) = draw_table(table, WIDE);
    let title = title_of(table);
    canvas.svg.into_file(&title, STYLE, canvas.measures.width, height)
}

/// Returns two pictures of a table as SVG elements, for wide and for narrow screens. The style
/// sheet of the page shows one of the two.
pub(super) fn draw_wide_and_narrow(table: &TableModel) -> String {
    [WIDE, NARROW].map(|measures| draw_picture(table, measures)).concat()
}

fn draw_picture(table: &TableModel, measures: Measures) -> String {
    let (canvas, height) = draw_table(table, measures);
    canvas.svg.into_svg(measures.class, &title_of(table), measures.width, height)
}

fn title_of(table: &TableModel) -> String {
    format!("Partitions, rows and copies of table {}", table.name)
}

/// Draws a table, and returns the picture with its height.
fn draw_table(table: &TableModel, measures: Measures) -> (Canvas, f64) {
    let mut canvas =
        Canvas { svg: SvgWriter::default(), measures, left: 1.0, right: 1.0, trunks: 0 };
    let has_remote = table
        .entities
        .iter()
        .flat_map(|entity| &entity.rows)
        .any(|rows| rows.place != RowFamilyPlace::Local);
    if !has_remote && !measures.is_narrow {
        // Nothing is drawn at the right.
        canvas.measures.left.1 = 640.0;
    }
    for (template, _) in &table.scopes {
        let is_here = |entity: &&EntityModel| {
            entity.rows.first().is_some_and(|rows| rows.partition.template == *template)
        };
        canvas.draw_shared_partition(&table.entities.iter().filter(is_here).collect::<Vec<_>>());
    }
    let height = canvas.left.max(canvas.right);
    (canvas, height)
}

/// A picture that is being drawn.
struct Canvas {
    svg: SvgWriter,
    measures: Measures,
    /// The y coordinate of the next partition with primaries.
    left: f64,
    /// The y coordinate of the next partition without primaries.
    right: f64,
    /// The number of entities that have arrows to other partitions so far.
    trunks: u32,
}

/// An arrow from a primary to remote rows.
struct Arrow {
    places: &'static [RowFamilyPlace],
    line: &'static str,
    tip: &'static str,
    /// The vertical distance from the arrow for uploads, if the picture has one.
    below: f64,
}

const UPLOADS: Arrow =
    Arrow { places: &[RowFamilyPlace::Upload], line: "up", tip: "utip", below: 0.0 };

const FOLLOWERS: Arrow = Arrow {
    places: &[RowFamilyPlace::Remote, RowFamilyPlace::Blob],
    line: "late",
    tip: "ltip",
    below: 12.0,
};

/// The lines of a box of text, and its height.
struct Lines {
    lines: Vec<(&'static str, f64, String)>,
    height: f64,
}

impl Lines {
    fn new() -> Self {
        Self { lines: Vec::new(), height: 0.0 }
    }

    fn push(&mut self, class: &'static str, text: String) {
        self.lines.push((class, self.height, text));
        self.height += LINE;
    }

    fn add_code(&mut self, class: &'static str, text: &str, width: f64) {
        break_code(text, width).into_iter().for_each(|line| self.push(class, line));
    }

    fn add_words(&mut self, class: &'static str, text: &str, width: f64) {
        break_words(text, width).into_iter().for_each(|line| self.push(class, line));
    }

    fn draw_lines(&self, svg: &mut SvgWriter, x: f64, y: f64) {
        for (class, at, text) in &self.lines {
            svg.draw_text(class, x, y + at + FOOT, text);
        }
    }
}

/// Returns the lines of a row's box.
fn lines_of(entity: &EntityModel, rows: &RowFamilyModel, width: f64) -> Lines {
    let mut lines = Lines::new();
    let name = match rows.kind {
        RowFamilyKind::Primary => entity.name.clone(),
        RowFamilyKind::Index
        | RowFamilyKind::List
        | RowFamilyKind::Part(..)
        | RowFamilyKind::Bytes => {
            format!("{} {}", entity.name, rows.name)
        }
    };
    let words = match rows.kind {
        RowFamilyKind::Primary => "primary".to_owned(),
        _ => rows.kind_words(),
    };
    lines.add_code("m b", &name, width);
    lines.add_words("s", &words, width);
    if rows.kind == RowFamilyKind::Bytes {
        return lines;
    }
    lines.add_code("m", &rows.row.template, width);
    if rows.row.example != rows.row.template {
        lines.add_code("m s", &rows.row.example, width);
    }
    lines
}

/// Returns the lines of a partition's head.
fn head_of(rows: &RowFamilyModel, table: Option<&str>, width: f64) -> Lines {
    let mut lines = Lines::new();
    if let Some(table) = table {
        lines.add_words("b", &format!("Table {table}"), width);
    }
    if rows.kind == RowFamilyKind::Bytes {
        lines.add_words("s", "Blob, with a new name for each value", width);
        let name = |partition: &str, row: &str| {
            format!("{}/{partition}/{row}/{}/..", rows.table, rows.name)
        };
        let template = name(&rows.partition.template, &rows.row.template);
        lines.add_code("m b", &template, width);
        let example = name(&rows.partition.example, &rows.row.example);
        if example != template {
            lines.add_code("m s", &example, width);
        }
        return lines;
    }
    let blob = rows.place == RowFamilyPlace::Blob;
    lines.add_words("s", if blob { "Blob, by PartitionKey" } else { "PartitionKey" }, width);
    lines.add_code("m b", &rows.partition.template, width);
    if rows.partition.example != rows.partition.template {
        lines.add_code("m s", &rows.partition.example, width);
    }
    lines
}

impl Canvas {
    /// Draws the partition that the given entity types share, and then the blobs and the remote
    /// partitions of each type.
    fn draw_shared_partition(&mut self, entities: &[&EntityModel]) {
        let Some(first) = entities.first().and_then(|entity| entity.rows.first()) else { return };
        let (x, width) = self.measures.left;
        let head = head_of(first, None, width - 2.0 * PAD);
        let top = self.left;
        let row = (x + PAD + GUTTER, width - 2.0 * PAD - GUTTER);
        let inner = row.1 - 2.0 * PAD;
        // The box is drawn first, so its height is computed first.
        let mut y = top + PAD + head.height + PAD;
        let mut placed = Vec::new();
        for entity in entities {
            for rows in entity.rows.iter().filter(|rows| rows.place == RowFamilyPlace::Local) {
                let lines = lines_of(entity, rows, inner);
                let area =
                    Area { x: row.0, y, width: row.1, height: lines.height + 2.0 * PAD - 4.0 };
                y = area.bottom() + BETWEEN;
                placed.push((*entity, rows, lines, area));
            }
        }
        let note =
            break_words("One transaction writes all of these rows, or none.", width - 2.0 * PAD);
        let mut foot = Lines::new();
        note.into_iter().for_each(|line| foot.push("ok", line));
        let partition = Area { x, y: top, width, height: y + foot.height + PAD - 6.0 - top };
        self.svg.open_group("partition");
        self.svg.draw_area("box", partition, 10);
        head.draw_lines(&mut self.svg, x + PAD, top + PAD);
        foot.draw_lines(&mut self.svg, x + PAD, y);
        let lane = x + PAD + 6.0;
        let mut primaries: Vec<(&EntityModel, Area)> = Vec::new();
        for (entity, rows, lines, area) in &placed {
            self.draw_rows(rows, lines, *area);
            let middle = area.y + area.height / 2.0;
            match (rows.kind, primaries.last()) {
                (RowFamilyKind::Primary, _) | (_, None) => primaries.push((*entity, *area)),
                (_, Some((_, primary))) => {
                    let from = primary.y + primary.height / 2.0 + 6.0;
                    let points =
                        [(primary.x, from), (lane, from), (lane, middle), (area.x - 7.0, middle)];
                    self.svg.draw_line("go", &points);
                    self.svg.draw_arrow_tip("tip", area.x, middle);
                }
            }
        }
        self.svg.close_group();
        self.left = partition.bottom() + BETWEEN * 1.5;
        for (entity, primary) in primaries {
            self.draw_remote_partitions(entity, primary, partition, &UPLOADS);
            self.draw_remote_partitions(entity, primary, partition, &FOLLOWERS);
        }
    }

    fn draw_rows(&mut self, rows: &RowFamilyModel, lines: &Lines, area: Area) {
        self.svg.open_group("rows");
        let class = if rows.kind == RowFamilyKind::Primary { "row main" } else { "row" };
        self.svg.draw_area(class, area, 6);
        lines.draw_lines(&mut self.svg, area.x + PAD, area.y + PAD - 2.0);
        self.svg.close_group();
    }

    /// Draws what an entity has outside of its partition, with arrows from its primary.
    fn draw_remote_partitions(
        &mut self,
        entity: &EntityModel,
        primary: Area,
        partition: Area,
        arrow: &Arrow,
    ) {
        let remote: Vec<&RowFamilyModel> =
            entity.rows.iter().filter(|rows| arrow.places.contains(&rows.place)).collect();
        if remote.is_empty() {
            return;
        }
        let has_uploads = entity.rows.iter().any(|rows| rows.place == RowFamilyPlace::Upload);
        let below = if has_uploads { arrow.below } else { 0.0 };
        let own = entity.rows.first().map(|rows| rows.table.as_str());
        // On a narrow page, only four lanes fit alongside the partition.
        let lane = f64::from(self.trunks % 4);
        self.trunks += 1;
        let (lane, from): (f64, f64) = if self.measures.is_narrow {
            let from = primary.y + primary.height / 2.0 - 6.0 - below;
            (partition.x - 12.0 - lane * 7.0, from)
        } else {
            let from = primary.y + ARROW + below;
            (partition.right() + 20.0 + lane * 12.0, from)
        };
        let mut y = if self.measures.is_narrow {
            self.left
        } else {
            // The first arrow runs straight.
            self.right.max(from - ARROW)
        };
        let mut ends = Vec::new();
        for rows in remote {
            let other = (Some(rows.table.as_str()) != own).then_some(rows.table.as_str());
            let area = self.draw_remote_partition(entity, rows, other, y);
            ends.push(area.1);
            y = area.0.bottom() + BETWEEN;
        }
        if self.measures.is_narrow {
            self.left = y + BETWEEN / 2.0
        } else {
            self.right = y
        }
        let start = if self.measures.is_narrow { primary.x } else { primary.right() };
        // `Iterator::max` needs a total order, which `f64` does not have.
        let lowest = ends.iter().map(|(_, y)| *y).fold(from, f64::max);
        self.svg.draw_line(arrow.line, &[(start, from), (lane, from), (lane, lowest)]);
        for (x, y) in ends {
            self.svg.draw_line(arrow.line, &[(lane, y), (x - 7.0, y)]);
            self.svg.draw_arrow_tip(arrow.tip, x, y);
        }
    }

    /// Draws a partition of remote rows. Returns its area, and where its arrow ends.
    fn draw_remote_partition(
        &mut self,
        entity: &EntityModel,
        rows: &RowFamilyModel,
        table: Option<&str>,
        y: f64,
    ) -> (Area, (f64, f64)) {
        let (x, width) = self.measures.right;
        let head = head_of(rows, table, width - 2.0 * PAD);
        let lines = lines_of(entity, rows, width - 4.0 * PAD);
        let row = Area {
            x: x + PAD,
            y: y + PAD + head.height + PAD / 2.0,
            width: width - 2.0 * PAD,
            height: lines.height + 2.0 * PAD - 4.0,
        };
        let area = Area { x, y, width, height: row.bottom() + PAD - y };
        self.svg.open_group("partition");
        self.svg.draw_area("box", area, 10);
        head.draw_lines(&mut self.svg, x + PAD, y + PAD);
        self.draw_rows(rows, &lines, row);
        self.svg.close_group();
        (area, (x, y + ARROW))
    }
}

/// Returns the legend of the arrows.
pub(super) fn arrow_legend_html(has_uploads: bool) -> String {
    let mut items =
        vec![("go", "tip", "same transaction"), ("late", "ltip", "later, by the outbox")];
    if has_uploads {
        items.insert(0, ("up", "utip", "before the transaction"));
    }
    let mut out = String::from("<p class=\"legend\">");
    for (line, tip, words) in items {
        let mut svg = SvgWriter::default();
        svg.draw_line(line, &[(1.0, 8.0), (30.0, 8.0)]);
        svg.draw_arrow_tip(tip, 38.0, 8.0);
        out.push_str("<span>");
        out.push_str(&svg.into_svg("sign", words, 40.0, 16.0));
        out.push_str(&format!("{words}</span>"));
    }
    out.push_str("</p>\n");
    out
}
