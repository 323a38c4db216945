//! Writes SVG elements, and breaks text into lines by the width of its letters.

use std::fmt::Write;

/// The assumed width of a letter in the CSS class `m` (12.5 px high). It is slightly too large, because fonts differ.
const MONO: f64 = 7.8;

/// The assumed average width of a letter of plain text (12.5 px high). It is an upper bound.
const PLAIN: f64 = 7.1;

/// Length and half the width of an arrow's tip.
const TIP: (f64, f64) = (8.0, 4.0);

/// A rectangle in a picture, in the units of the SVG element. `x` and `y` are its left upper corner.
#[derive(Debug, Clone, Copy)]
pub(super) struct Area {
    pub(super) x: f64,
    pub(super) y: f64,
    pub(super) width: f64,
    pub(super) height: f64,
}

impl Area {
    pub(super) fn right(&self) -> f64 {
        self.x + self.width
    }

    pub(super) fn bottom(&self) -> f64 {
        self.y + self.height
    }
}

/// Escapes the characters that have a meaning in XML and HTML.
pub(super) fn escape_markup(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for c in text.chars() {
        match c {
            '&' => out.push_str("&amp;"),
            '<' => out.push_str("&lt;"),
            '>' => out.push_str("&gt;"),
            '"' => out.push_str("&quot;"),
            c => out.push(c),
        }
    }
    out
}

/// Returns the assumed width of a text in the font for code.
fn mono_width(text: &str) -> f64 {
    width_in_letters(text) * MONO
}

/// Returns the assumed width of a text in the font for plain text.
fn plain_width(text: &str) -> f64 {
    width_in_letters(text) * PLAIN
}

fn width_in_letters(text: &str) -> f64 {
    // A count of letters of one line is small.
    u32::try_from(text.chars().count()).map_or(f64::MAX, f64::from)
}

/// Breaks code into lines of at most `width`, before a part of a template if one begins in the second
/// half of the line.
pub(super) fn break_code(text: &str, width: f64) -> Vec<String> {
    let mut lines = vec![String::new()];
    for c in text.chars() {
        // There is one line at first and only more later, so the loop never ends here.
        let Some(line) = lines.last_mut() else { break };
        if mono_width(line) + MONO <= width {
            line.push(c);
            continue;
        }
        let next = match line.rfind('{') {
            Some(at) if c != '{' && at > line.len() / 2 => line.split_off(at),
            _ => String::new(),
        };
        lines.push(next + c.encode_utf8(&mut [0; 4]));
    }
    lines
}

/// Breaks words into lines of at most `width`. A word that is wider than that gets a line of its own.
pub(super) fn break_words(text: &str, width: f64) -> Vec<String> {
    let mut lines: Vec<String> = Vec::new();
    for word in text.split(' ') {
        match lines.last_mut() {
            Some(line) if plain_width(line) + plain_width(word) + PLAIN <= width => {
                line.push(' ');
                line.push_str(word);
            }
            _ => lines.push(word.to_owned()),
        }
    }
    lines
}

/// The text of an SVG picture so far.
#[derive(Debug, Default)]
pub(super) struct SvgWriter {
    body: String,
}

impl SvgWriter {
    /// Adds markup to the picture.
    fn push(&mut self, markup: std::fmt::Arguments<'_>) {
        // A String takes everything.
        let _ = self.body.write_fmt(markup);
    }

    /// Begins a group of elements with a CSS class. The caller ends the group.
    pub(super) fn open_group(&mut self, class: &str) {
        self.push(format_args!("<g class=\"{class}\">\n"));
    }

    pub(super) fn close_group(&mut self) {
        self.body.push_str("</g>\n");
    }

    pub(super) fn draw_area(&mut self, class: &str, area: Area, radius: u32) {
        let Area { x, y, width, height } = area;
        self.push(format_args!(
            "<rect class=\"{class}\" x=\"{x:.1}\" y=\"{y:.1}\" width=\"{width:.1}\" height=\"{height:.1}\" rx=\"{radius}\"/>\n"
        ));
    }

    pub(super) fn draw_text(&mut self, class: &str, x: f64, y: f64, text: &str) {
        let text = escape_markup(text);
        self.push(format_args!(
            "<text class=\"{class}\" x=\"{x:.1}\" y=\"{y:.1}\">{text}</text>\n"
        ));
    }

    /// Draws straight lines through the points.
    pub(super) fn draw_line(&mut self, class: &str, points: &[(f64, f64)]) {
        let mut path = String::new();
        for (at, (x, y)) in points.iter().enumerate() {
            // Writing to a String cannot fail.
            let _ = write!(path, "{}{x:.1} {y:.1}", if at == 0 { "M" } else { "L" });
        }
        self.push(format_args!("<path class=\"{class}\" d=\"{path}\"/>\n"));
    }

    /// Draws the tip of an arrow that ends at `x`, `y` and comes from the left.
    pub(super) fn draw_arrow_tip(&mut self, class: &str, x: f64, y: f64) {
        let (back, top, bottom) = (x - TIP.0, y - TIP.1, y + TIP.1);
        self.push(format_args!(
            "<path class=\"{class}\" d=\"M{x:.1} {y:.1}L{back:.1} {top:.1}L{back:.1} {bottom:.1}Z\"/>\n"
        ));
    }

    /// Returns the complete picture as an SVG element.
    pub(super) fn into_svg(self, class: &str, label: &str, width: f64, height: f64) -> String {
        let label = escape_markup(label);
        format!(
            "<svg class=\"{class}\" viewBox=\"0 0 {width:.0} {height:.0}\" role=\"img\" aria-label=\"{label}\">\n{}</svg>\n",
            self.body
        )
    }

    /// Returns the complete picture as the text of an SVG file.
    pub(super) fn into_file(self, title: &str, style: &str, width: f64, height: f64) -> String {
        let title = escape_markup(title);
        format!(
            "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {width:.0} {height:.0}\" width=\"{width:.0}\" \
             height=\"{height:.0}\" role=\"img\" aria-label=\"{title}\">\n<title>{title}</title>\n<style>\n{style}</style>\n{}</svg>\n",
            self.body
        )
    }
}
