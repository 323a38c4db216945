//! Runs the body of a fuzz target on its corpus, on changes of it, and on random inputs.

use std::{fs, path::Path};

fn corpus(target: &str) -> Vec<Vec<u8>> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../fuzz/corpus").join(target);
    let mut paths: Vec<_> = fs::read_dir(folder).unwrap().map(|f| f.unwrap().path()).collect();
    paths.sort();
    paths.into_iter().map(|path| fs::read(path).unwrap()).collect()
}

struct Random(u64);

impl Random {
    fn below(&mut self, limit: usize) -> usize {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
        usize::try_from(self.0 >> 33).unwrap() % limit
    }
}

/// Runs the corpus, then `count` inputs that are made of it or of nothing.
pub(crate) fn replay(target: &str, count: usize, body: fn(&[u8])) {
    let corpus = corpus(target);
    assert!(!corpus.is_empty(), "no corpus for {target}");
    corpus.iter().for_each(|input| body(input));
    let many = if std::env::var_os("ENTABLE_LONG").is_some() { 100 } else { 1 };
    let mut random = Random(target.len() as u64);
    for _ in 0..count * many {
        let mut input = match random.below(4) {
            0 => (0..random.below(64)).map(|_| random.below(256).try_into().unwrap()).collect(),
            _ => corpus[random.below(corpus.len())].clone(),
        };
        for _ in 0..random.below(4) {
            if input.is_empty() {
                break;
            }
            let at = random.below(input.len());
            match random.below(4) {
                0 => input[at] = random.below(256).try_into().unwrap(),
                1 => drop(input.remove(at)),
                2 => input.truncate(at),
                _ => {
                    let other = &corpus[random.below(corpus.len())];
                    let from = random.below(other.len() + 1);
                    input.splice(at..at, other[from..].iter().copied());
                }
            }
        }
        body(&input);
    }
}
