//! Copies of blobs.

use super::*;

#[derive(Debug, Clone, TableEntity)]
#[table(name = "Papers", partition_key = "{author}", row_key = "paper_{id:04}")]
struct Paper {
    author: String,
    id: u32,
    #[table(blob)]
    text: Option<Blob>,
}

/// Opens a store of the directory with its blobs, as long as `work` runs.
fn with_blobs(place: &Place, store: &str, blobs: &str, work: impl AsyncFnOnce(Table<Paper>)) {
    fs::create_dir_all(place.path(blobs)).unwrap();
    let blobs = Arc::new(LocalFileSystem::new_with_prefix(place.path(blobs)).unwrap());
    tokio::runtime::Runtime::new().unwrap().block_on(async {
        let file = Embedded::open(place.path(store)).unwrap();
        let client = Client::builder().backend(file).blobs(blobs).build().unwrap();
        work(client.table()).await;
        client.close().await.unwrap();
    });
}

#[test]
fn blobs_are_copied_before_the_rows_that_point_to_them() {
    let place = Place(tempdir().unwrap());
    let text = |id: u8| Blob::new(vec![id; 40_000]);
    with_blobs(&place, "papers.db", "here", async |papers| {
        papers.create().await.unwrap();
        for id in 0..3 {
            let paper = Paper { author: "Don".into(), id, text: Some(text(id as u8)) };
            papers.insert(&paper).await.unwrap();
        }
    });
    let copy = |arguments: &[&str]| {
        place.run(&[&["copy", "papers.db", "new.db", "--blobs"], arguments].concat())
    };
    // What cannot be a store of blobs is refused before anything is created.
    copy(&["none", "there"]).fails(3, "opening the directory `none`");
    copy(&["papers.db", "there"]).fails(2, "is not a directory");
    copy(&["here"]).fails(2, "2 values required");
    copy(&["here", "azure:papers"]).fails(2, "is not a directory");
    copy(&["https://me.blob.core.windows.net/papers", "there"]).fails(2, "is not a directory");
    let secret = copy(&["here", "https://me/papers?sig=s3cret"]).fails(2, "contains a secret");
    assert!(!secret.err.contains("s3cret"), "{secret:?}");
    copy(&["here", "there", "--compare"]).fails(3, "opening the directory `there`");
    assert!(!place.path("there").exists() && !place.path("new.db").exists());
    let said = copy(&["here", "there"]).ok();
    assert!(said.contains("blobs: 3 copied (") && said.contains("3 written"), "{said}");
    with_blobs(&place, "new.db", "there", async |papers| {
        for id in 0..3 {
            let path = Paper::primary().author("Don").id(id);
            let paper = papers.get(path).await.unwrap().unwrap();
            let bytes = papers.blob(paper.text.as_ref().unwrap()).bytes().await.unwrap();
            assert_eq!(bytes, vec![id as u8; 40_000]);
        }
    });
    #[cfg(unix)]
    for blob in files(&place.path("there")) {
        assert_eq!(mode(&blob), 0o600, "{}", blob.display());
        for directory in blob.ancestors().skip(1).take_while(|at| *at != place.0.path()) {
            assert_eq!(mode(directory), 0o700, "{}", directory.display());
        }
    }
    let again = copy(&["here", "there", "--json"]).json();
    assert_eq!((&again["equal"], &again["blobs"]["there"]), (&true.into(), &3.into()));
    // A blob that a kill has left out, and one of another length.
    let copies = files(&place.path("there"));
    fs::remove_file(&copies[0]).unwrap();
    fs::write(&copies[1], "half").unwrap();
    let differs = copy(&["here", "there", "--compare"]).fails(5, "the stores differ");
    assert!(differs.out.contains("1 already there, 2 different"), "{differs:?}");
    assert_eq!(fs::read(&copies[1]).unwrap(), b"half");
    assert!(copy(&["here", "there"]).ok().contains("blobs: 2 copied"));
    copy(&["here", "there", "--compare"]).ok();
    let bytes = |folder: &str| {
        let mut all: Vec<_> =
            files(&place.path(folder)).iter().map(|at| fs::read(at).unwrap()).collect();
        all.sort();
        all
    };
    assert_eq!(bytes("here"), bytes("there"));
}
