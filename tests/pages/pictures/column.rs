//! A column of boxes and arrows, narrow enough for a phone: what the pictures of the book are made of.

use super::draw::{Area, SvgWriter, break_code, break_words};

/// The width of a page's text on a phone.
const WIDTH: f64 = 360.0;

/// Space between a box and its contents.
const PAD: f64 = 12.0;

/// The height of a line of text.
const LINE: f64 = 18.0;

/// X of arrows between boxes.
const ARROW: f64 = 24.0;

/// A text of a box.
#[derive(Debug, Clone, Copy)]
pub(super) enum Words<'t> {
    Strong(&'t str),
    Plain(&'t str),
    Soft(&'t str),
    /// What is sure.
    Sure(&'t str),
    Code(&'t str),
}

impl Words<'_> {
    /// Breaks the text into lines, each with its CSS class.
    fn lines(self, width: f64) -> Vec<(&'static str, String)> {
        let (class, lines) = match self {
            // Bold letters are wider.
            Words::Strong(text) => ("b", break_words(text, width * 0.94)),
            Words::Sure(text) => ("ok", break_words(text, width * 0.94)),
            Words::Plain(text) => ("", break_words(text, width)),
            Words::Soft(text) => ("s", break_words(text, width)),
            Words::Code(text) => ("m", break_code(text, width)),
        };
        lines.into_iter().map(|line| (class, line)).collect()
    }
}

/// A row in a partition: whether it is the entity's own row, and its texts.
pub(super) type PictureRow<'t> = (bool, &'t [Words<'t>]);

/// A picture that grows downwards.
#[derive(Debug, Default)]
pub(super) struct Column {
    svg: SvgWriter,
    bottom: f64,
}

impl Column {
    /// Draws texts from `x`, `y`, and returns the Y below them.
    fn draw_words(&mut self, words: &[Words<'_>], x: f64, y: f64, width: f64) -> f64 {
        let mut y = y;
        for (class, line) in words.iter().flat_map(|words| words.lines(width)) {
            self.svg.draw_text(class, x, y + 13.0, &line);
            y += LINE;
        }
        y
    }

    fn height(words: &[Words<'_>], width: f64) -> f64 {
        words.iter().flat_map(|words| words.lines(width)).map(|_| LINE).sum()
    }

    /// Draws text without a box.
    pub(super) fn text(&mut self, words: &[Words<'_>]) {
        self.bottom = self.draw_words(words, 1.0, self.bottom + 4.0, WIDTH - 2.0) + 4.0;
    }

    /// Draws a box with text.
    pub(super) fn step(&mut self, words: &[Words<'_>]) {
        self.bottom = self.draw_row(false, words, 1.0, self.bottom + 1.0);
    }

    /// Draws a row from `x`, `y` to the same distance from the right side. Returns the Y below it.
    fn draw_row(&mut self, is_main: bool, words: &[Words<'_>], x: f64, y: f64) -> f64 {
        let width = WIDTH - 2.0 * x;
        let inner = width - 2.0 * PAD;
        let height = Self::height(words, inner) + PAD + 2.0;
        let class = if is_main { "row main" } else { "row" };
        self.svg.draw_area(class, Area { x, y, width, height }, 6);
        self.draw_words(words, x + PAD, y + PAD / 2.0, inner);
        y + height
    }

    /// Draws a partition: its name, its rows, and a text below them.
    pub(super) fn partition(
        &mut self,
        head: &[Words<'_>],
        rows: &[PictureRow<'_>],
        foot: &[Words<'_>],
    ) {
        let (x, y, inner) = (1.0, self.bottom + 1.0, WIDTH - 2.0 - 2.0 * PAD);
        let row_inner = WIDTH - 2.0 * (x + PAD) - 2.0 * PAD;
        let rows_height: f64 =
            rows.iter().map(|(_, words)| Self::height(words, row_inner) + PAD + 2.0 + 8.0).sum();
        let height =
            PAD + Self::height(head, inner) + 6.0 + rows_height + Self::height(foot, inner) + 6.0;
        self.svg.open_group("partition");
        self.svg.draw_area("box", Area { x, y, width: WIDTH - 2.0, height }, 10);
        let mut at = self.draw_words(head, x + PAD, y + PAD / 2.0 + 2.0, inner) + 6.0;
        for (is_main, words) in rows {
            at = self.draw_row(*is_main, words, x + PAD, at) + 8.0;
        }
        self.draw_words(foot, x + PAD, at - 2.0, inner);
        self.svg.close_group();
        self.bottom = y + height;
    }

    /// Draws an arrow to what is drawn next, with a text beside it.
    pub(super) fn arrow(&mut self, words: &[Words<'_>]) {
        self.draw_arrow("go", "tip", words);
    }

    /// Draws an arrow for what happens later.
    pub(super) fn late_arrow(&mut self, words: &[Words<'_>]) {
        self.draw_arrow("late", "ltip", words);
    }

    fn draw_arrow(&mut self, line: &str, tip: &str, words: &[Words<'_>]) {
        let (x, width) = (ARROW + 16.0, WIDTH - ARROW - 18.0);
        let from = self.bottom + 1.0;
        let to = from + Self::height(words, width).max(LINE) + 14.0;
        self.draw_words(words, x, from + 5.0, width);
        self.svg.draw_line(line, &[(ARROW, from), (ARROW, to - 8.0)]);
        self.svg.draw_line(tip, &[(ARROW, to), (ARROW - 4.0, to - 8.0), (ARROW + 4.0, to - 8.0)]);
        self.bottom = to;
    }

    /// Leaves space between two parts of a picture.
    pub(super) fn gap(&mut self) {
        self.bottom += 14.0;
    }

    /// Returns the text of an SVG file.
    pub(super) fn into_file(self, title: &str, style: &str) -> String {
        self.svg.into_file(title, style, WIDTH, self.bottom + 2.0)
    }
}
