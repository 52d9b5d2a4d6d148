//! Programs with a command line, served as tools.

#![cfg(test)]

mod support;
