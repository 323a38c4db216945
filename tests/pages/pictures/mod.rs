//! The pictures of the book. The drawing code of reports draws them.
//!
//! `ENTABLE_IMAGES=write` writes the files again.

#[path = "../../../runtime/src/report/draw.rs"]
#[allow(dead_code, reason = "these pictures need a part of what reports draw")]
mod draw;

mod column;
mod claims;
mod copies;
mod map;
mod places;
mod requests;
mod rows;
mod worker;

use std::fs;

use self::column::Column;
use crate::{read, workspace};

/// A picture: the name of its file, its title, and what draws it.
type Picture = (&'static str, &'static str, fn(&mut Column));

const PICTURES: [Picture; 25] = [
    ("overview", copies::OVERVIEW, copies::draw_overview),
    ("patterns", map::TITLE, map::draw),
    ("insert", copies::TITLE, copies::draw),
    ("remote-index", copies::REMOTE_INDEX, copies::draw_remote_index),
    ("worker", worker::TITLE, worker::draw),
    ("lease", claims::LEASE, claims::draw_lease),
    ("claim", claims::CLAIM, claims::draw_claim),
    ("requests", requests::TITLE, requests::draw),
    ("table", rows::TABLE, rows::draw_table),
    ("partitions", rows::PARTITIONS, rows::draw_partitions),
    ("local-index", rows::LOCAL_INDEX, rows::draw_local_index),
    ("lists", rows::LISTS, rows::draw_lists),
    ("compound-key", rows::COMPOUND_KEY, rows::draw_compound_key),
    ("denormalisation", rows::DENORMALISATION, rows::draw_denormalisation),
    ("counting", rows::COUNTING, rows::draw_counting),
    ("log-tail", rows::LOG_TAIL, rows::draw_log_tail),
    ("soft-delete", rows::SOFT_DELETE, rows::draw_soft_delete),
    ("expiry", rows::EXPIRY, rows::draw_expiry),
    ("data-series", places::DATA_SERIES, places::draw_data_series),
    ("wide", places::WIDE, places::draw_wide),
    ("large-values", places::LARGE_VALUES, places::draw_large_values),
    ("log-data", places::LOG_DATA, places::draw_log_data),
    ("mass-delete", places::MASS_DELETE, places::draw_mass_delete),
    ("hot", places::HOT, places::draw_hot),
    ("message", places::MESSAGE, places::draw_message),
];

/// Returns the text of a picture's file.
fn drawn(title: &str, draw: fn(&mut Column)) -> String {
    let style = read("runtime/src/report/palette.css") + &read("runtime/src/report/picture.css");
    let mut column = Column::default();
    draw(&mut column);
    column.into_file(title, &style)
}

#[test]
fn pictures_are_what_the_code_draws() {
    for (name, title, draw) in PICTURES {
        let (path, picture) =
            (workspace().join(format!("docs/images/{name}.svg")), drawn(title, draw));
        if std::env::var_os("ENTABLE_IMAGES").is_some() {
            fs::write(&path, &picture).unwrap();
        }
        let stored = fs::read_to_string(&path).unwrap_or_default();
        assert_eq!(stored, picture, "{name}.svg: run with ENTABLE_IMAGES=write");
    }
}

/// A page on a phone shows 360 pixels of 390, and letters are 12.5 high.
#[test]
fn letters_keep_their_size_on_a_phone() {
    let drawn = PICTURES.map(|(name, title, draw)| (name, drawn(title, draw)));
    for (name, picture) in drawn.into_iter().chain([("race", read("docs/images/race.svg"))]) {
        assert!(picture.contains("viewBox=\"0 0 360 "), "{name} is as wide as a phone's page");
        for text in picture.split("<text class=\"").skip(1) {
            let (class, rest) = text.split_once('"').unwrap();
            let x: f64 = rest[" x=\"".len()..].split('"').next().unwrap().parse().unwrap();
            let words = rest.split_once('>').unwrap().1.split("</text>").next().unwrap();
            let letters = words
                .replace("&quot;", "\"")
                .replace("&lt;", "<")
                .replace("&gt;", ">")
                .replace("&amp;", "&");
            let width = if class.contains('m') { 7.7 } else { 7.0 };
            let right = x + width * f64::from(u32::try_from(letters.chars().count()).unwrap());
            assert!(right <= 360.0, "{name}: {words} ends at {right}");
        }
    }
}

/// Two pictures are drawn elsewhere: that of a report, and the figures of the race, which the bench measures.
#[test]
fn every_picture_of_the_book_is_drawn_here() {
    for entry in fs::read_dir(workspace().join("docs/images")).unwrap() {
        let name = entry.unwrap().file_name().into_string().unwrap();
        let is_drawn = PICTURES.iter().any(|(drawn, ..)| name == format!("{drawn}.svg"));
        assert!(is_drawn || ["report.svg", "race.svg"].contains(&&*name), "nothing draws {name}");
    }
}

#[test]
fn the_map_has_every_pattern() {
    let picture = drawn(map::TITLE, map::draw);
    let summary = read("docs/SUMMARY.md");
    let titles = summary.lines().filter_map(|line| {
        let (title, page) = line.strip_prefix("- [")?.split_once("](")?;
        page.starts_with("patterns/").then_some(title)
    });
    let mut patterns = 0;
    for title in titles {
        assert!(picture.contains(&format!(">{title}</text>")), "{title} is not on the map");
        patterns += 1;
    }
    assert!(patterns > 14, "found only {patterns} patterns");
}
