//! The part of JSONPath that printer columns, scale paths and selectable fields use.
