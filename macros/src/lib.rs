//! The derives of entable.
