//! Types made from CustomResourceDefinitions: structural schemas, pruning, defaults, validation and CEL rules.
