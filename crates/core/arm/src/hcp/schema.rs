//! Members as data.
