//! The built-in types of Kubernetes as data: what they are, their defaults and rules, how they are listed and described.
