//! The binaries and tests of this package are in the folders beside this one.
