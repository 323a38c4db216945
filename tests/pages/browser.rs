//! Opens the pages of the book in a browser, and measures whether anything is cut off on a desktop or a phone.
//! `ENTABLE_BOOK` names the folder that `mdbook build` wrote, `ENTABLE_BROWSER` the program `chromedriver`. Without
//! them there is nothing to measure.

#[path = "../contract/driver.rs"]
mod driver;

use std::{
    error::Error,
    fs,
    path::{Path, PathBuf},
};

use serde_json::Value;

use self::driver::Driver;

/// Returns what is wrong with a page, a line for each mistake. Tables and code may scroll within themselves. Letters of a
/// picture are compared with the width that it was drawn for, if it was drawn for a phone.
const MEASURE: &str = r#"
const wrong = [];
const width = document.documentElement.clientWidth;
const name = e => e.tagName + ' "' + (e.getAttribute('src') || e.textContent.trim()).slice(0, 40) + '"';
if (document.documentElement.scrollWidth > width) wrong.push('the page is ' + document.documentElement.scrollWidth + ' wide, the screen ' + width);
const main = document.querySelector('main');
if (main.scrollWidth > main.clientWidth + 1) wrong.push('the text is ' + main.scrollWidth + ' wide, its column ' + main.clientWidth);
for (const e of main.querySelectorAll('*')) {
  const r = e.getBoundingClientRect();
  if (r.width > 0 && !e.closest('.table-wrapper, pre') && (r.left < -0.5 || r.right > width + 0.5)) wrong.push('beyond the screen: ' + name(e));
}
for (const e of main.querySelectorAll('img')) {
  if (e.naturalWidth === 0) wrong.push('not found: ' + name(e));
  else if (e.naturalWidth <= 360 && e.getBoundingClientRect().width < e.naturalWidth * 0.9) wrong.push('too small: ' + name(e));
}
return wrong;
"#;

fn pages_below(folder: &Path, into: &mut Vec<PathBuf>) -> Result<(), Box<dyn Error>> {
    for entry in fs::read_dir(folder)? {
        let path = entry?.path();
        if path.is_dir() {
            pages_below(&path, into)?;
        } else if path.extension().is_some_and(|extension| extension == "html") {
            into.push(path);
        }
    }
    Ok(())
}

/// Returns what is wrong with the pages of a folder.
fn mistakes(driver: &Driver, folder: &Path) -> Result<Vec<String>, Box<dyn Error>> {
    let mut pages = Vec::new();
    pages_below(folder, &mut pages)?;
    pages.sort();
    // The list of all pages is not a page of text, and neither is the one for an address that does not exist.
    pages.retain(|page| !["toc.html", "404.html"].iter().any(|name| page.ends_with(name)));
    assert!(!pages.is_empty(), "no pages in {}", folder.display());
    let mut mistakes = Vec::new();
    for (width, scheme) in [(1300, "light"), (390, "dark")] {
        let screen = driver.open_screen(width, scheme)?;
        for page in &pages {
            let wrong = screen.measure(page, MEASURE, &Value::Array(Vec::new()))?;
            mistakes.extend(
                wrong.iter().map(|wrong| format!("{} at {width}: {wrong}", page.display())),
            );
        }
    }
    Ok(mistakes)
}

#[test]
fn no_page_is_cut_on_a_desktop_or_a_phone() -> Result<(), Box<dyn Error>> {
    let (Some(program), Some(book)) =
        (std::env::var_os("ENTABLE_BROWSER"), std::env::var_os("ENTABLE_BOOK"))
    else {
        return Ok(());
    };
    let driver = Driver::start(&program.to_string_lossy())?;
    let mistakes = mistakes(&driver, Path::new(&book))?;
    assert!(mistakes.is_empty(), "{}", mistakes.join("\n"));
    Ok(())
}

/// The measure is worth what it finds: a table outside of its frame, a picture that is not there.
#[test]
fn a_page_that_is_cut_is_found() -> Result<(), Box<dyn Error>> {
    let Some(program) = std::env::var_os("ENTABLE_BROWSER") else { return Ok(()) };
    let folder = tempfile::tempdir()?;
    let cell = "x".repeat(500);
    let page = format!(
        "<!doctype html><meta name=viewport content=\"width=device-width\"><main><table><td>{cell}</table>\
         <img src=none.svg></main>"
    );
    fs::write(folder.path().join("page.html"), page)?;
    let driver = Driver::start(&program.to_string_lossy())?;
    let mistakes = mistakes(&driver, folder.path())?;
    for kind in ["beyond the screen", "not found"] {
        assert!(mistakes.iter().any(|mistake| mistake.contains(kind)), "{kind}: {mistakes:?}");
    }
    Ok(())
}
