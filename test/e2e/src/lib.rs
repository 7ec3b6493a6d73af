//! End-to-end tests live in `tests/`: whole stacks, real clients, real servers.
