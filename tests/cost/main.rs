//! Requests and operations of every verb.
