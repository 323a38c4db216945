//! Renders the page of a report in a browser, and measures it. `ENTABLE_BROWSER` names the program
//! `chromedriver`; without it there is nothing to render with. `ENTABLE_PICTURES` names a folder that
//! gets the pictures, for people to look at.

use std::{error::Error, path::Path};

use base64::{Engine, engine::general_purpose::STANDARD};
use serde_json::{Value, json};

use crate::{driver::Driver, report::page};

/// Returns what is wrong with the page as it is rendered, a line for each mistake.
const MEASURE: &str = r#"
const wrong = [];
const near = 0.5;
const name = e => e.tagName + '.' + (e.getAttribute('class') || '') + ' "' + e.textContent.trim().slice(0, 40) + '"';
const shown = e => e.getClientRects().length > 0 && e.getBoundingClientRect().width > 0;
const width = document.documentElement.clientWidth;
if (document.documentElement.scrollWidth > width) wrong.push('the page is ' + document.documentElement.scrollWidth + ' wide, the screen ' + width);
for (const e of document.querySelectorAll('body *')) {
  if (!shown(e) || e.closest('svg') && e.tagName !== 'svg') continue;
  const r = e.getBoundingClientRect();
  if (r.left < -near || r.right > width + near) wrong.push('beyond the screen: ' + name(e));
  if (e.scrollWidth > e.clientWidth + 1 && e.clientWidth > 0 && getComputedStyle(e).display !== 'inline') wrong.push('overflows: ' + name(e));
}
const inside = (a, b) => a.left >= b.left - near && a.right <= b.right + near && a.top >= b.top - near && a.bottom <= b.bottom + near;
const apart = (a, b) => a.right <= b.left + near || b.right <= a.left + near || a.bottom <= b.top + near || b.bottom <= a.top + near;
const box = e => e.getBoundingClientRect();
let texts = 0;
for (const figure of document.querySelectorAll('figure')) {
  const pictures = [...figure.querySelectorAll(':scope > svg')].filter(shown);
  if (pictures.length !== 1) { wrong.push(pictures.length + ' pictures are shown in a figure'); continue; }
  const svg = pictures[0];
  const whole = box(svg);
  for (const e of svg.querySelectorAll('rect, text, path')) if (!inside(box(e), whole)) wrong.push('outside the picture: ' + name(e));
  for (const group of svg.querySelectorAll('g')) {
    const frame = box(group.querySelector(':scope > rect'));
    for (const e of group.querySelectorAll(':scope > text, :scope > g > rect')) if (!inside(box(e), frame)) wrong.push('outside its box: ' + name(e));
    if (group.parentNode.tagName === 'g' && !inside(frame, box(group.parentNode.querySelector(':scope > rect')))) wrong.push('outside its partition: ' + name(group));
  }
  const pairs = (selector) => {
    const all = [...svg.querySelectorAll(selector)];
    all.forEach((a, i) => all.slice(i + 1).forEach(b => { if (!apart(box(a), box(b))) wrong.push('overlap: ' + name(a) + ' and ' + name(b)); }));
    return all.length;
  };
  texts += pairs('text');
  pairs('rect.box');
  pairs('rect.row');
}
if (texts < 20) wrong.push('only ' + texts + ' texts in the pictures');
for (const cell of document.querySelectorAll('td')) {
  if (shown(cell) && cell.firstElementChild && !inside(box(cell.firstElementChild), box(cell))) wrong.push('outside its cell: ' + name(cell) + JSON.stringify([box(cell.firstElementChild), box(cell)]));
}
for (const article of document.querySelectorAll('article')) {
  if (!shown(article.querySelector('h3'))) wrong.push('not shown: ' + article.id);
  const drawn = [...article.closest('section').querySelectorAll('figure > svg')].filter(shown)[0];
  if (!drawn.textContent.includes(article.id)) wrong.push('not drawn: ' + article.id);
}
if (getComputedStyle(document.body).backgroundColor !== arguments[0]) wrong.push('the ground is ' + getComputedStyle(document.body).backgroundColor);
return wrong;
"#;

#[test]
fn the_page_fits_desktops_and_phones() -> Result<(), Box<dyn Error>> {
    let Some(program) = std::env::var_os("ENTABLE_BROWSER") else { return Ok(()) };
    let folder = tempfile::tempdir()?;
    let path = folder.path().join("report.html");
    std::fs::write(&path, page())?;
    let pictures = std::env::var_os("ENTABLE_PICTURES");
    let driver = Driver::start(&program.to_string_lossy())?;
    let (light, dark) = ("rgb(255, 255, 255)", "rgb(13, 17, 23)");
    for (width, scheme, ground) in
        [(1280, "light", light), (1280, "dark", dark), (390, "light", light), (320, "dark", dark)]
    {
        let screen = driver.open_screen(width, scheme)?;
        let wrong = screen.measure(&path, MEASURE, &json!([ground]))?;
        if let Some(folder) = &pictures {
            let all = json!({ "captureBeyondViewport": true });
            let picture = screen.devtools("Page.captureScreenshot", &all)?;
            let bytes = STANDARD.decode(picture["data"].as_str().unwrap())?;
            std::fs::write(Path::new(folder).join(format!("report-{width}-{scheme}.png")), bytes)?;
        }
        assert!(wrong.is_empty(), "at {width}, {scheme}: {wrong:#?}");
    }
    // The measure is worth what it finds: a picture and a table that are too wide.
    let name = "name_{last_name}";
    let broken = page().replace(name, &name.repeat(5));
    let broken = broken.replace("overflow-wrap:anywhere", "white-space:nowrap");
    std::fs::write(&path, broken)?;
    let wrong = driver.open_screen(390, "light")?.measure(&path, MEASURE, &json!([light]))?;
    for kind in ["the page is ", "beyond the screen", "outside its box"] {
        let is_kind = |line: &Value| line.as_str().unwrap().starts_with(kind);
        assert!(wrong.iter().any(is_kind), "{kind}: {wrong:#?}");
    }
    Ok(())
}
