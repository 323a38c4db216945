//! Frames of a journal that nobody wrote.

use entable_embedded::__fuzz::{frames_of_changes, read_frame};

/// Reads bytes as a frame, and as the changes of one. Changes that are all read have to be the same when they are written.
pub(crate) fn journal(data: &[u8]) {
    read_frame(data);
    if let Some((given, again)) = frames_of_changes(data) {
        assert_eq!(given, again);
    }
}
